package alock_test

import (
	"testing"

	"github.com/rmalock/rmalock/alock"
	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock/locktest"
)

// equivalent are mistakes that are none, and one that is not caught, of the lock with a name.
func equivalent(name string) []check.Equivalent {
	const (
		once  = "the word changes once while the rank waits for it, to what it waits for"
		free  = "no rank looks at NEXT of a descriptor whose owner is done, so it may be cleared before the handover; after it is off the successor's way"
		short = "to take a successor for none costs the CompareAndSwap that then fails, and no more"
		later = "not equivalent and not caught here: it takes another acquire and a rank that queues; caught in acquire and release"
	)
	var out []check.Equivalent
	if name == "alock" {
		out = append(out, check.Equivalent{Phase: check.Trying, Step: "Flush of Put " + name + ".L_NEXT", Mutation: check.NoFlush, Why: later})
	}
	for _, cohort := range []string{"L", "R"} {
		out = append(out, check.Equivalent{Phase: check.Acquiring, Step: "Await " + name + "." + cohort + "_BUDGET", Mutation: check.AnyChange, Why: once})
		for _, phase := range []check.Phase{check.Acquiring, check.Trying, check.Releasing} {
			if phase == check.Trying && (cohort == "R" || name != "alock") { // such a try has no rank behind it in these searches
				continue
			}
			out = append(out,
				check.Equivalent{Phase: phase, Step: "Await " + name + "." + cohort + "_NEXT", Mutation: check.AnyChange, Why: once},
				check.Equivalent{Phase: phase, Step: "Put " + name + "." + cohort + "_BUDGET", Before: "Await " + name + "." + cohort + "_NEXT", Mutation: check.Late, Why: free},
				check.Equivalent{Phase: phase, Step: "Put " + name + "." + cohort + "_BUDGET", Before: "Flush of Get " + name + "." + cohort + "_NEXT", Mutation: check.Late, Why: free},
				check.Equivalent{Phase: phase, Step: "Flush of Get " + name + "." + cohort + "_NEXT", Mutation: check.NoFlush, Why: short},
			)
		}
	}
	return out
}

// TestMutants: ALock with a mistake does not pass.
func TestMutants(t *testing.T) {
	locktest.RunMutantsOf(t, check.Effort{Every: 8}, equivalent("alock"), with(alock.Config{LocalBudget: 1, RemoteBudget: 1}, -1))
}

// TestMutantsShared: ALock with a shared mode and a mistake does not pass.
func TestMutantsShared(t *testing.T) {
	locktest.RunMutantsOf(t, check.Effort{Budget: 600, Every: 8, Turns: true}, equivalent("alock-rw"), with(alock.Config{LocalBudget: 1, RemoteBudget: 1, Shared: true}, -1))
}
