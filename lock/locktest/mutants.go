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
	runMutants(t, search.Effort{Distances: true}, equivalent, append([]lock.Info{info}, more...))
}

// RunMutantsOf is RunMutants for a lock with many places at which to be mistaken, used
// as infos say: a mistake is made at a place for all ranks' words alike. One mutant in
// every is hunted, with RMALOCK_DEEP each of them.
func RunMutantsOf(t *testing.T, every int, equivalent []search.Equivalent, infos ...lock.Info) {
	if Deep() {
		every = 1
	}
	runMutants(t, search.Effort{Every: every}, equivalent, infos)
}

// RunMutantsWithin is RunMutantsOf with a number of executions for each way of searching, which
// the infos share: those of a lock that looks at the clock take longer.
func RunMutantsWithin(t *testing.T, budget int64, every int, equivalent []search.Equivalent, infos ...lock.Info) {
	if Deep() {
		every = 1
	}
	runMutants(t, search.Effort{Budget: budget, Every: every, Turns: true}, equivalent, infos)
}

func runMutants(t *testing.T, e search.Effort, equivalent []search.Equivalent, infos []lock.Info) {
	switch {
	case e.Budget != 0:
	case os.Getenv("RMALOCK_FULL") != "":
		e.Budget = 100_000
	default:
		e.Budget = 6000
	}
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s, err := search.SurveyMutants(e, equivalent, infos...)
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
