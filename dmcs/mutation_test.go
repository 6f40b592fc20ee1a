package dmcs_test

import (
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock/locktest"
)

// TestSearch: D-MCS under schedules that are searched.
func TestSearch(t *testing.T) { locktest.RunSearch(t, "dmcs") }

// TestMutants: D-MCS with a mistake does not pass.
func TestMutants(t *testing.T) {
	const once = "the word changes once while the rank waits for it, to what it waits for"
	const free = "no rank looks at NEXT of a node whose owner is done, so it may be cleared before the handover; after it is off the successor's way"
	const short = "to take a successor for none costs the CompareAndSwap that then fails, and no more"
	locktest.RunMutants(t, "dmcs", []check.Equivalent{
		{Phase: check.Acquiring, Step: "Await dmcs.WAIT", Mutation: check.AnyChange, Why: once},
		{Phase: check.Releasing, Step: "Await dmcs.NEXT", Mutation: check.AnyChange, Why: once},
		{Phase: check.Releasing, Step: "Put dmcs.WAIT", Mutation: check.Late, Why: free},
		{Phase: check.Releasing, Step: "Flush own of Get dmcs.NEXT", Mutation: check.NoFlush, Why: short},
	})
}
