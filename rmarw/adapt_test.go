package rmarw_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
)

// adapting is the lock with thresholds that move, up to 2.
func adapting(t *testing.T, dc rmarw.DC, text string, levels ...string) (lock.Info, *topo.Topology) {
	return onWith(t, rmarw.Config{DC: dc, Adapt: true}, text, 2, 2, "1 per machine", levels...)
}

// TestAdaptExhaustive: 3 ranks with 2 acquires, two of them writers, up to 2 preemptions,
// with RMALOCK_DEEP all schedules; all schedules of 3 writers in one element.
func TestAdaptExhaustive(t *testing.T) {
	if locktest.Quick() {
		t.Skip("takes ten seconds")
	}
	for _, dc := range dcs {
		t.Run(fmt.Sprint(dc), func(t *testing.T) {
			t.Parallel()
			in, top := adapting(t, dc, "rank:3")
			bound := 2
			if locktest.Deep() {
				bound = sim.Unbounded
			}
			locktest.RunWhole(t, check.Plan{Info: in, Ranks: 3, Acquires: 2, Writers: 2, Topology: top}, bound)
			if dc == rmarw.Asymmetric && !locktest.Deep() {
				return
			}
			in, top = adapting(t, dc, "node:1 rank:3", "node")
			locktest.RunWhole(t, check.Plan{Info: in, Ranks: 3, Acquires: 2, Writers: 3, Topology: top}, sim.Unbounded)
		})
	}
}

// TestAdaptRandom: 16 ranks, N of 2 and 3, a part with TryLock and deadlines.
func TestAdaptRandom(t *testing.T) {
	for _, dc := range dcs {
		for _, s := range []shape{{"node:1 rank:16", 16, []string{"node"}}, {"rack:1 node:1 rank:16", 16, []string{"rack", "node"}}} {
			t.Run(fmt.Sprintf("%v, %s", dc, s.text), func(t *testing.T) {
				t.Parallel()
				in, top := adapting(t, dc, s.text, s.levels...)
				for seed := range uint64(2) {
					p := check.Plan{Info: in, Ranks: 16, Acquires: 5, Writers: check.Mixed, Topology: top, Seed: seed, Guard: true, Tries: seed == 1}
					locktest.RunPlan(t, p, sim.Random(seed, 0, locktest.Draws(150)))
					locktest.RunPlan(t, p, sim.PCT(seed, 3, 0, locktest.Draws(150)))
				}
			})
		}
	}
}
