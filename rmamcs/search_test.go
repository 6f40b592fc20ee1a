package rmamcs_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/rma/sim"
)

// quick reports whether tests are to take a second or two; deep, whether many minutes.
func quick() bool { return testing.Short() || rmatest.RaceEnabled }
func deep() bool  { return os.Getenv("RMALOCK_DEEP") != "" }

// some is the number of schedules that are drawn.
func some(n int64) int64 {
	if quick() {
		return max(2, n/30)
	}
	return n
}

// whole runs an exhaustive search, which must come to its end.
func whole(t *testing.T, p check.Plan, preemptions int) {
	t.Helper()
	if quick() {
		p.Acquires = 1
	}
	r := run(t, p, sim.Exhaustive(preemptions))
	if !r.Whole {
		t.Error("the search did not come to its end")
	}
	t.Logf("%d states, %d executions", r.States, r.Stats.Executions+r.Stats.Cut)
}

// TestExhaustive: all schedules of 3 writers with 2 acquires, without and with TryLock and
// deadlines, N = 1 and N = 2, in one element and in three; those of 4 with 2 acquires and up to 3 preemptions, and with 1 in
// two elements, with RMALOCK_DEEP 2.
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
				if s.ranks > 3 && s.levels != nil && !deep() {
					p.Acquires = 1 // millions of states
				}
				if s.ranks > 3 && quick() {
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
			random := run(t, p, sim.Random(1, 0, some(n)))
			pct := run(t, p, sim.PCT(1, 3, 0, some(n)))
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

// TestDeep: 64 and 256 ranks, N = 4, 20 acquires.
func TestDeep(t *testing.T) {
	if !deep() {
		t.Skip("takes many minutes: RMALOCK_DEEP is not set")
	}
	drawn(t, shape{"rack:2 node:4 numa:2 rank:4", 64, []string{"rack", "node", "numa"}}, 20, 100)
	drawn(t, shape{"rack:4 node:4 numa:4 rank:4", 256, []string{"rack", "node", "numa"}}, 20, 10)
}
