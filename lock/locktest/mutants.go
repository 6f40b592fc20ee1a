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
	budget := int64(6000)
	switch {
	case os.Getenv("RMALOCK_FULL") != "":
		budget = 100_000
	case testing.Short():
		t.Skip("takes seconds")
	}
	s, err := search.SurveyMutants(budget, equivalent, append([]lock.Info{info}, more...)...)
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
