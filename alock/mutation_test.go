package alock_test

import (
	"testing"

	"github.com/rmalock/rmalock/alock"
	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock/locktest"
)

// equivalent are mistakes that are none.
func equivalent() (out []check.Equivalent) {
	const once = "the word changes once while the rank waits for it, to what it waits for"
	const free = "no rank looks at NEXT of a descriptor whose owner is done, so it may be cleared before the handover; after it is off the successor's way"
	const short = "to take a successor for none costs the CompareAndSwap that then fails, and no more"
	for _, cohort := range []string{"L", "R"} {
		out = append(out, check.Equivalent{Phase: check.Acquiring, Step: "Await alock." + cohort + "_BUDGET", Mutation: check.AnyChange, Why: once})
		for _, phase := range []check.Phase{check.Acquiring, check.Trying, check.Releasing} {
			out = append(out,
				check.Equivalent{Phase: phase, Step: "Await alock." + cohort + "_NEXT", Mutation: check.AnyChange, Why: once},
				check.Equivalent{Phase: phase, Step: "Put alock." + cohort + "_BUDGET", Before: "Await alock." + cohort + "_NEXT", Mutation: check.Late, Why: free},
				check.Equivalent{Phase: phase, Step: "Flush of Get alock." + cohort + "_NEXT", Mutation: check.NoFlush, Why: short},
			)
		}
		out = append(out, check.Equivalent{Phase: check.Releasing, Step: "Put alock." + cohort + "_BUDGET", Before: "Flush of Get alock." + cohort + "_NEXT", Mutation: check.Late, Why: free})
	}
	return out
}

// TestMutants: ALock with a mistake does not pass.
func TestMutants(t *testing.T) {
	locktest.RunMutantsOf(t, 8, equivalent(), with(alock.Config{LocalBudget: 1, RemoteBudget: 1}, -1))
}
