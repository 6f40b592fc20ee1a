package rmamcs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/rmamcs"
	"github.com/rmalock/rmalock/topo"
)

// barging is on with a barging leaf.
func barging(t testing.TB, text string, tl int, levels ...string) (lock.Info, *topo.Topology) {
	return onWith(t, rmamcs.Config{Leaf: rmamcs.Barging}, text, tl, levels...)
}

// TestBargingLock is the suite of all locks, with ranks that run at once.
func TestBargingLock(t *testing.T) {
	in, err := lock.Lookup("rmamcs")
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]string{"LEAF": "barging"}
	open := in
	in.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		return open.With(c, lock.Setting{Locks: n, Home: home, Params: params})
	}
	for _, s := range [][2]int{{1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 2}} {
		t.Run(fmt.Sprintf("%dx%d", s[0], s[1]), func(t *testing.T) {
			locktest.RunOf(t, in, rmatest.Watched(s[0], s[1], time.Minute))
		})
	}
}

// TestDefaultLeaf: unless told, the leaf is the barging one where several ranks share one.
func TestDefaultLeaf(t *testing.T) {
	for _, k := range []struct {
		nodes, ranks int
		in, want     rmamcs.Leaf
	}{
		{1, 1, rmamcs.Auto, rmamcs.MCS},
		{1, 2, rmamcs.Auto, rmamcs.Barging},
		{1, 16, rmamcs.Auto, rmamcs.Barging},
		{1, 16, rmamcs.MCS, rmamcs.MCS},
		{1, 1, rmamcs.Barging, rmamcs.Barging},
		{2, 2, rmamcs.Auto, rmamcs.Barging},
		{2, 1, rmamcs.Auto, rmamcs.MCS},
	} {
		if err := inproc.RunNodes(k.nodes, k.ranks, func(c rma.Comm) error {
			l, err := rmamcs.New(c, rmamcs.Config{Leaf: k.in})
			if err != nil {
				return err
			}
			if got := l.Config().Leaf; got != k.want {
				t.Errorf("%d nodes with %d ranks, %v: %v, want %v", k.nodes, k.ranks, k.in, got, k.want)
			}
			return l.Free()
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestBargingExhaustive: all schedules of 3 ranks with 2 acquires, N = 1 and N = 2, with a
// T_L of 0, 1 and 2 (N = 2 and T_L of 1 and 2: those with up to 4 preemptions, with RMALOCK_DEEP
// all); and of 2 with 3, a part of these with TryLock and deadlines.
func TestBargingExhaustive(t *testing.T) {
	for _, levels := range [][]string{{}, {"node"}} {
		for _, tl := range []int{0, 1, 2} {
			t.Run(fmt.Sprintf("N %d, T_L %d", len(levels)+1, tl), func(t *testing.T) {
				t.Parallel()
				in, top := barging(t, "node:1 rank:3", tl, levels...)
				p := check.Plan{Info: in, Ranks: 3, Acquires: 2, Topology: top}
				if locktest.Quick() {
					p.Acquires = 1
				}
				bound := sim.Unbounded
				if len(levels) > 0 && tl > 0 && !locktest.Deep() { // half a minute
					bound = 4
				}
				whole(t, p, bound)
				in, top = barging(t, "node:1 rank:2", tl, levels...)
				whole(t, check.Plan{Info: in, Ranks: 2, Acquires: 3, Topology: top, Tries: true}, sim.Unbounded)
			})
		}
	}
}

// TestBargingRandom: up to 16 ranks, N of 1 to 3, a part with TryLock and deadlines.
func TestBargingRandom(t *testing.T) {
	for _, s := range []shape{
		{"node:1 rank:4", 4, []string{}},
		{"node:1 rank:16", 16, []string{}},
		{"node:2 rank:2", 4, []string{"node"}},
		{"node:4 rank:4", 16, []string{"node"}},
		{"rack:2 node:2 rank:4", 16, []string{"rack", "node"}},
	} {
		for _, tl := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%s, T_L %d", s.text, tl), func(t *testing.T) {
				t.Parallel()
				in, top := barging(t, s.text, tl, s.levels...)
				for seed := range uint64(2) {
					p := check.Plan{Info: in, Ranks: s.ranks, Acquires: 3, Topology: top, Seed: seed, Guard: true, Tries: seed == 1}
					locktest.RunPlan(t, p, sim.Random(seed, 0, locktest.Draws(150)))
					locktest.RunPlan(t, p, sim.PCT(seed, 3, 0, locktest.Draws(150)))
				}
			})
		}
	}
}
