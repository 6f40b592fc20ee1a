package check_test

import (
	"testing"

	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/check"
	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma/sim"
	_ "github.com/rmalock/rmalock/rmamcs"
	_ "github.com/rmalock/rmalock/rmarw"
)

// TestEveryLockPassesExhaustively: 3 ranks with 2 acquires each, all schedules.
func TestEveryLockPassesExhaustively(t *testing.T) {
	for _, name := range []string{"dmcs", "fompi-spin", "fompi-rw-local"} {
		info, err := lock.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := check.Run(check.Plan{Info: info, Ranks: 3, Acquires: 2, Writers: 2}, sim.Exhaustive(sim.Unbounded))
		if err != nil {
			t.Fatal(err)
		}
		if r.Failure != nil {
			t.Errorf("%s: %v (%s)", name, r.Failure, r.Failure.Schedule)
		}
		if !r.Whole || r.States < 100 {
			t.Errorf("%s: whole %v, %d states", name, r.Whole, r.States)
		}
	}
}
