package locktest

import (
	"os"
	"strings"
	"testing"

	search "github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
)

// RunMutants makes one mistake after the other in a registered lock, through its
// windows, and fails the test unless package check catches each, those excepted that
// are said to be none. It logs the table. more are other ways of using the same lock.
func RunMutants(t *testing.T, name string, equivalent []search.Equivalent, more ...lock.Info) {
	info, err := lock.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	RunMutantsOf(t, search.Effort{Distances: true}, equivalent, append([]lock.Info{info}, more...)...)
}

// RunMutantsOf is RunMutants for a lock used as infos say, with an Effort. With RMALOCK_DEEP each
// mutant is hunted, whatever e.Every is. An e.Budget of 0 is one that suits most locks.
func RunMutantsOf(t *testing.T, e search.Effort, equivalent []search.Equivalent, infos ...lock.Info) {
	t.Helper()
	switch {
	case testing.Short():
		t.Skip("takes seconds")
	case e.Budget != 0:
	case os.Getenv("RMALOCK_FULL") != "":
		e.Budget = 100_000
	default:
		e.Budget = 6000
	}
	Survey(t, e, func(e search.Effort) (*search.Survey, error) { return search.SurveyMutants(e, equivalent, infos...) })
}

// Survey surveys mutants, with RMALOCK_DEEP each of them. It logs the table, and fails the test with
// the survey's error.
func Survey(t *testing.T, e search.Effort, survey func(e search.Effort) (*search.Survey, error)) {
	t.Helper()
	if Deep() {
		e.Every = 1
	}
	s, err := survey(e)
	if s != nil {
		var b strings.Builder
		if err := s.WriteText(&b); err != nil {
			t.Error(err)
		}
		t.Log("\n" + b.String())
	}
	if err != nil {
		t.Error(err)
	}
}
