package rmarw_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
)

// exhaust runs exhaustive searches with T_L and T_R of 1 and 2, as far as they matter: T_L
// where there are two writers, T_R where there is a reader.
func exhaust(t *testing.T, text, tdc string, p check.Plan, preemptions int) {
	for _, dc := range dcs {
		exhaustOn(t, dc, text, tdc, p, preemptions)
	}
}

// countersInNodes reports whether counters are within the nodes of a machine, all of which is one
// where no nodes are described.
func countersInNodes(text, tdc string) bool {
	top, err := topo.Parse(text)
	if err != nil {
		panic(err)
	}
	d, err := rmarw.ParseTDC(tdc)
	if err != nil {
		panic(err)
	}
	c, err := rmarw.NewCounters(top, d)
	if err != nil {
		panic(err)
	}
	return c.Within("node") || !strings.Contains(text, "node")
}

// exhaustOn is exhaust for one way in which readers and writers meet, where it can be.
func exhaustOn(t *testing.T, dc rmarw.DC, text, tdc string, p check.Plan, preemptions int) {
	if dc == rmarw.Asymmetric && !countersInNodes(text, tdc) {
		return
	}
	for _, tl := range []int{1, 2} {
		for _, tr := range []int{1, 2} {
			if tl > 1 && p.Writers < 2 || tr > 1 && p.Writers == p.Ranks {
				continue
			}
			t.Run(fmt.Sprintf("%v, %s, %dx%d, %d writers, T_DC %s, T_L %d, T_R %d", dc, text, p.Ranks, p.Acquires, p.Writers, tdc, tl, tr), func(t *testing.T) {
				t.Parallel()
				p := p
				var levels []string
				if strings.HasPrefix(text, "node") {
					levels = []string{"node"}
				}
				in, top := on(t, dc, text, tl, int64(tr), tdc, levels...)
				p.Info, p.Topology = in, top
				locktest.RunWhole(t, p, preemptions)
			})
		}
	}
}

// TestExhaustive: with one counter, all schedules of 2 and 3 ranks with 2 acquires each,
// any number of them writers, N = 1, and of 3 writers, N = 2; of 4 ranks with 1 those
// with up to 3 preemptions, N = 1 and N = 2. TestExhaustiveDeep goes on.
func TestExhaustive(t *testing.T) {
	for writers := range 3 {
		exhaust(t, "rank:2", "2", check.Plan{Ranks: 2, Acquires: 2, Writers: writers}, sim.Unbounded)
	}
	if locktest.Quick() {
		return
	}
	for writers := range 4 {
		exhaust(t, "rank:3", "3", check.Plan{Ranks: 3, Acquires: 2, Writers: writers}, sim.Unbounded)
	}
	exhaust(t, "node:1 rank:3", "3", check.Plan{Ranks: 3, Acquires: 2, Writers: 3}, sim.Unbounded)
	exhaust(t, "node:3 rank:1", "3", check.Plan{Ranks: 3, Acquires: 1, Writers: 3}, sim.Unbounded)
	for writers := 1; writers <= 3; writers++ {
		exhaust(t, "rank:4", "4", check.Plan{Ranks: 4, Acquires: 1, Writers: writers}, 3)
	}
	for writers := 2; writers <= 3; writers++ {
		exhaust(t, "node:2 rank:2", "4", check.Plan{Ranks: 4, Acquires: 1, Writers: writers}, 3)
	}
	// A reader that has arrived and not yet looked at ADMISSION is passed by two tenures.
	exhaustOn(t, rmarw.Asymmetric, "rank:4", "4", check.Plan{Ranks: 4, Acquires: 2, Writers: 2}, 2)
}

// TestExhaustiveDeep is the deep part of TestExhaustive.
func TestExhaustiveDeep(t *testing.T) {
	if !locktest.Deep() {
		t.Skip("takes many minutes: RMALOCK_DEEP is not set")
	}
	exhaust(t, "node:3 rank:1", "3", check.Plan{Ranks: 3, Acquires: 2, Writers: 3}, sim.Unbounded)
	for writers := range 3 {
		exhaust(t, "rank:2", "1", check.Plan{Ranks: 2, Acquires: 2, Writers: writers}, sim.Unbounded)
	}
	for writers := range 3 {
		exhaust(t, "rank:3", "1", check.Plan{Ranks: 3, Acquires: 1, Writers: writers}, sim.Unbounded)
	}
	three := check.Plan{Ranks: 3, Acquires: 1, Writers: 3}
	exhaustOn(t, rmarw.Asymmetric, "rank:3", "1", three, sim.Unbounded)
	exhaustOn(t, rmarw.Symmetric, "rank:3", "1", three, 3) // all of T_L 1 and 2 held 18.8 GB when they were ended
	for writers := range 5 {
		exhaust(t, "rank:4", "4", check.Plan{Ranks: 4, Acquires: 1, Writers: writers}, 3)
		exhaust(t, "node:2 rank:2", "4", check.Plan{Ranks: 4, Acquires: 1, Writers: writers}, 3)
		exhaustOn(t, rmarw.Asymmetric, "rank:4", "4", check.Plan{Ranks: 4, Acquires: 2, Writers: writers}, 3)
		exhaustOn(t, rmarw.Symmetric, "rank:4", "4", check.Plan{Ranks: 4, Acquires: 2, Writers: writers}, 2)
	}
}

// A shape is a machine, and the levels that are picked.
type shape struct {
	text   string
	ranks  int
	levels []string
}

// drawn checks random schedules and those of PCT, modes drawn, a part with TryLock and
// deadlines.
func drawn(t *testing.T, s shape, tdcs []string, acquires int, n int64) {
	for _, dc := range dcs {
		drawnOn(t, dc, s, tdcs, acquires, n)
	}
}

func drawnOn(t *testing.T, dc rmarw.DC, s shape, tdcs []string, acquires int, n int64) {
	for k, th := range []int{1, 2, 5} {
		for _, tdc := range tdcs {
			if dc == rmarw.Asymmetric && !countersInNodes(s.text, tdc) {
				continue
			}
			t.Run(fmt.Sprintf("%v, %s, T_L and T_R %d, T_DC %s", dc, s.text, th, tdc), func(t *testing.T) {
				t.Parallel()
				in, top := on(t, dc, s.text, th, int64(th), tdc, s.levels...)
				p := check.Plan{Info: in, Ranks: s.ranks, Acquires: acquires, Writers: check.Mixed, Seed: uint64(k), Topology: top, Guard: k > 0, Tries: k == 1}
				random := locktest.RunPlan(t, p, sim.Random(1, 0, locktest.Draws(n)))
				pct := locktest.RunPlan(t, p, sim.PCT(1, 3, 0, locktest.Draws(n)))
				t.Logf("%d executions, %d steps", random.Stats.Executions+pct.Stats.Executions, random.Stats.Steps+pct.Stats.Steps)
			})
		}
	}
}

// TestExhaustiveTries: all schedules of 3 ranks with 2 acquires, one of them a TryLock or
// one with a deadline. A reader that polls looked at DEPART when another one had added a
// phase to it and not yet to OPENED; it took the phase before for full, and waited for a
// departure that had been: seed 13, execution 3,188.
func TestExhaustiveTries(t *testing.T) {
	if locktest.Quick() {
		t.Skip("takes a minute")
	}
	seeds := []uint64{1, 17}
	if locktest.Deep() {
		seeds = []uint64{0, 1, 13, 14, 15, 17, 20}
	}
	for _, dc := range dcs {
		for _, seed := range seeds {
			for tr := int64(1); tr <= 2; tr++ {
				if tr == 1 && !locktest.Deep() {
					continue // half a minute
				}
				t.Run(fmt.Sprintf("%v, seed %d, T_R %d", dc, seed, tr), func(t *testing.T) {
					t.Parallel()
					in, top := on(t, dc, "rank:3", 1, tr, "3")
					locktest.RunWhole(t, check.Plan{Info: in, Ranks: 3, Acquires: 2, Writers: check.Mixed, Seed: seed, Tries: true, Topology: top}, sim.Unbounded)
				})
			}
		}
	}
	t.Run("sym, seed 13, the first", func(t *testing.T) {
		t.Parallel()
		in, top := on(t, rmarw.Symmetric, "rank:3", 1, 2, "3")
		x := sim.Exhaustive(sim.Unbounded)
		x.Limit = 200_000
		locktest.RunPlan(t, check.Plan{Info: in, Ranks: 3, Acquires: 2, Writers: check.Mixed, Seed: 13, Tries: true, Topology: top}, x)
	})
}

// TestTriesSeeEachDeparture: a writer with a deadline that found a reader in sleeps until
// DEPART changes. When DEPART began anew with each phase, it held the same again once
// another writer had been there: execution 396 was a deadlock.
func TestTriesSeeEachDeparture(t *testing.T) {
	for tr := int64(1); tr <= 2; tr++ {
		in, _ := on(t, rmarw.Symmetric, "rank:4", 1, tr, "1")
		top, err := topo.Parse("node:2 core:2")
		if err != nil {
			t.Fatal(err)
		}
		p := check.Plan{Info: in, Ranks: 4, Acquires: 2, Writers: check.Mixed, Seed: 7, Topology: top, Guard: true, Tries: true}
		locktest.RunPlan(t, p, sim.PCT(1, 3, 0, locktest.Draws(2000)))
	}
}

// TestRandom: up to 16 ranks, N of 1 to 4, with a counter for each rank, for some, and
// for all.
func TestRandom(t *testing.T) {
	drawn(t, shape{"rank:4", 4, nil}, []string{"1", "4"}, 3, 150)
	for _, s := range []shape{
		{"rank:16", 16, nil},
		{"node:4 rank:4", 16, []string{"node"}},
		{"rack:2 node:4 rank:2", 16, []string{"rack", "node"}},
		{"rack:2 node:2 rank:4", 16, []string{"rack"}},
		{"rack:2 node:2 numa:2 rank:2", 16, []string{"rack", "node", "numa"}},
	} {
		drawn(t, s, []string{"1", "4", "16"}, 3, 40)
	}
}

// TestRandomDeep: 64 and 256 ranks, N = 4, 20 acquires.
func TestRandomDeep(t *testing.T) {
	if !locktest.Deep() {
		t.Skip("takes many minutes: RMALOCK_DEEP is not set")
	}
	drawn(t, shape{"rack:2 node:4 numa:2 rank:4", 64, []string{"rack", "node", "numa"}}, []string{"16", "8"}, 20, 100) // a counter for two nodes cannot be asymmetric
	drawn(t, shape{"rack:4 node:4 numa:4 rank:4", 256, []string{"rack", "node", "numa"}}, []string{"16"}, 20, 10)
}
