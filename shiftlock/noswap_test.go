package shiftlock_test

import (
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/sim"
)

// TestSearchNoSwap: the lock on a transport where the swap by which a writer enters the queue is a
// loop, as on MPI and plain verbs.
func TestSearchNoSwap(t *testing.T) {
	t.Run("battery", func(t *testing.T) {
		locktest.RunNoSwap(t, "shiftlock", func(int) map[string]string { return params{"LEASE": "off", "TRIES": "0", "K": "2"} })
	})
	noSwap := func(c rma.Comm, _ func() check.Position) rma.Comm { return hook.NoSwap(c) }
	for name, plan := range map[string]check.Plan{
		"2 writers":         with(check.Plan{Ranks: 2, Acquires: 2, Writers: 2, Disturb: noSwap}, params{"K": "1"}),
		"writer and reader": with(check.Plan{Ranks: 2, Acquires: 3, Writers: 1, Disturb: noSwap}, params{"K": "1"}),
		"try first":         with(check.Plan{Ranks: 2, Acquires: 2, Writers: 1, Disturb: noSwap}, params{"TRIES": "2", "K": "1"}),
	} {
		t.Run(name, func(t *testing.T) {
			skip(t, short)
			locktest.RunWhole(t, plan, sim.Unbounded)
		})
	}
}
