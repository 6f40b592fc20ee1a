package rmamcs_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma/sim"
)

// whole is RunWhole, with 1 acquire where tests are quick.
func whole(t *testing.T, p check.Plan, preemptions int) {
	t.Helper()
	if locktest.Quick() {
		p.Acquires = 1
	}
	locktest.RunWhole(t, p, preemptions)
}

// TestExhaustive: all schedules of 3 writers with 2 acquires, without and with TryLock and
// deadlines, N = 1 and N = 2, in one element and in three; those of 4 with 2 acquires and
// up to 3 preemptions, and with 1 in two elements, with RMALOCK_DEEP 2.
func TestExhaustive(t *testing.T) {
	for _, s := range []struct {
		shape
		preemptions int
	}{
		{shape{"rank:3", 3, nil}, sim.Unbounded},
		{shape{"node:1 rank:3", 3, []string{"node"}}, sim.Unbounded},
		{shape{"node:3 rank:1", 3, []string{"node"}}, sim.Unbounded},
		{shape{"rank:4", 4, nil}, 3},
		{shape{"node:2 rank:2", 4, []string{"node"}}, 3},
	} {
		for _, tl := range []int{1, 2} {
			if s.levels == nil && tl > 1 {
				continue // with one level T_L,i has no meaning
			}
			t.Run(fmt.Sprintf("%s, T_L %d", s.text, tl), func(t *testing.T) {
				t.Parallel()
				in, top := on(t, s.text, tl, s.levels...)
				p := check.Plan{Info: in, Ranks: s.ranks, Acquires: 2, Topology: top}
				if s.ranks > 3 && s.levels != nil && !locktest.Deep() {
					p.Acquires = 1 // millions of states
				}
				if s.ranks > 3 && locktest.Quick() {
					t.Skip("takes ten seconds")
				}
				whole(t, p, s.preemptions)
				if s.ranks == 3 {
					p.Tries = true
					whole(t, p, s.preemptions)
				}
			})
		}
	}
}

// A shape is a machine, and the levels that are picked.
type shape struct {
	text   string
	ranks  int
	levels []string
}

// drawn checks random schedules and those of PCT, a part with TryLock and deadlines.
func drawn(t *testing.T, s shape, acquires int, n int64) {
	for _, tl := range []int{1, 2, 5} {
		t.Run(fmt.Sprintf("%s, T_L %d", s.text, tl), func(t *testing.T) {
			t.Parallel()
			in, top := on(t, s.text, tl, s.levels...)
			p := check.Plan{Info: in, Ranks: s.ranks, Acquires: acquires, Topology: top, Guard: true, Tries: tl == 2}
			random := locktest.RunPlan(t, p, sim.Random(1, 0, locktest.Draws(n)))
			pct := locktest.RunPlan(t, p, sim.PCT(1, 3, 0, locktest.Draws(n)))
			t.Logf("%d executions, %d steps", random.Stats.Executions+pct.Stats.Executions, random.Stats.Steps+pct.Stats.Steps)
		})
	}
}

// TestRandom: up to 16 ranks, N of 1 to 4.
func TestRandom(t *testing.T) {
	for _, s := range []shape{
		{"rank:4", 4, nil},
		{"rank:16", 16, nil},
		{"node:4 rank:4", 16, []string{"node"}},
		{"rack:2 node:4 rank:2", 16, []string{"rack", "node"}},
		{"rack:2 node:2 rank:4", 16, []string{"rack"}},
		{"rack:2 node:2 numa:2 rank:2", 16, []string{"rack", "node", "numa"}},
	} {
		drawn(t, s, 3, 250)
	}
}

// TestRandomDeep: 64 and 256 ranks, N = 4, 20 acquires.
func TestRandomDeep(t *testing.T) {
	if !locktest.Deep() {
		t.Skip("takes many minutes: RMALOCK_DEEP is not set")
	}
	drawn(t, shape{"rack:2 node:4 numa:2 rank:4", 64, []string{"rack", "node", "numa"}}, 20, 100)
	drawn(t, shape{"rack:4 node:4 numa:4 rank:4", 256, []string{"rack", "node", "numa"}}, 20, 10)
}
