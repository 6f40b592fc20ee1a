package dslr_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma/sim"
)

// TestThreeRanks: all schedules of 3 ranks with 2 acquires in all modes, with a death at any
// step and a reset after 2 and after 3 tickets.
func TestThreeRanks(t *testing.T) {
	if !locktest.Deep() {
		t.Skip("takes minutes: RMALOCK_DEEP is not set")
	}
	for _, countMax := range []int{2, 3} {
		for _, writers := range []int{3, 2, 1, check.Mixed} {
			for _, h := range []struct{ ticks, crashes int }{{1, 0}, {2, 0}, {3, 0}, {2, 1}, {4, 1}} {
				p := check.Plan{Ranks: 3, Acquires: 2, Writers: writers, Ticks: h.ticks, Crashes: h.crashes, MaxDelay: 1, MemoryNodes: 1}
				p.Info = variant("by add", dslr.Config{CountMax: countMax}, nil)
				t.Run(fmt.Sprintf("COUNTMAX %d, %d writers, %d ticks, %d deaths", countMax, writers, h.ticks, h.crashes), func(t *testing.T) {
					x := sim.Exhaustive(sim.Unbounded)
					x.Limit = 2_000_000
					r := passes(t, p, x)
					t.Logf("%d states, whole: %v", r.States, r.Whole)
				})
			}
		}
	}
}
