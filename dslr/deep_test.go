package dslr_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma/sim"
)

// TestDeep: schedules of 3 and 4 ranks in all modes, with deaths at any step and resets after few
// tickets. Of searches that do not come to their end it logs how far they came.
func TestDeep(t *testing.T) {
	if !locktest.Deep() {
		t.Skip("takes minutes: RMALOCK_DEEP is not set")
	}
	for _, h := range []struct {
		ranks, acquires, ticks, crashes, bound int
	}{
		{3, 1, 2, 1, sim.Unbounded},
		{3, 2, 1, 0, 2}, // all do not end in 5 GB
		{3, 2, 2, 1, 2},
		{4, 1, 2, 1, 2},
	} {
		for _, countMax := range []int{2, 3} {
			for writers := h.ranks; writers >= check.Mixed; writers-- {
				if writers == 0 {
					continue
				}
				p := check.Plan{
					Ranks: h.ranks, Acquires: h.acquires, Writers: writers, MemoryNodes: 1,
					Ticks: h.ticks, Crashes: h.crashes, MaxDelay: 1,
					Info: variant("by add", dslr.Config{CountMax: countMax}, nil),
				}
				t.Run(fmt.Sprintf("%dx%d, %d writers, %d ticks, %d deaths, bound %d, COUNTMAX %d",
					h.ranks, h.acquires, writers, h.ticks, h.crashes, h.bound, countMax), func(t *testing.T) {
					x := sim.Exhaustive(h.bound)
					x.Limit = 5_000_000
					r := passes(t, p, x)
					t.Logf("%d states, whole: %v", r.States, r.Whole)
				})
			}
		}
	}
}
