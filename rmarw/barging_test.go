package rmarw_test

import (
	"errors"
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
	"github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
)

// barging is on with a barging leaf.
func barging(t testing.TB, dc rmarw.DC, text string, tl int, tr int64, tdc string, levels ...string) (lock.Info, *topo.Topology) {
	return onWith(t, rmarw.Config{DC: dc, Leaf: rmarw.Barging}, text, tl, tr, tdc, levels...)
}

// bargingRoot is barging with one level and asymmetric counters, whose readers try so often
// before they wait in line, and whose writers keep the lock from the readers after so many
// tenures without one.
func bargingRoot(t testing.TB, text string, tl int, tr int64, tdc string, tries, quietAfter int) (lock.Info, *topo.Topology) {
	in, top := barging(t, rmarw.Asymmetric, text, tl, tr, tdc)
	open := in.Open
	in.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		l, err := open(c, n, home)
		if err == nil {
			l.(*rmarw.Table).SetBarging(tries, quietAfter)
		}
		return l, err
	}
	return in, top
}

// TestBargingRootExhaustive: N = 1, one counter and one for each rank; 3 ranks with 2 acquires
// and up to 2 preemptions. With RMALOCK_DEEP all schedules with one counter, up to 3 preemptions
// with more, and 4 ranks with 1 acquire and up to 2.
func TestBargingRootExhaustive(t *testing.T) {
	for _, tdc := range []string{"4", "1"} {
		for writers := 1; writers <= 3; writers++ {
			for _, s := range []struct{ tl, tries, quiet int }{{1, 0, 0}, {1, 1, 1}, {2, 1, 0}} {
				t.Run(fmt.Sprintf("T_DC %s, %d writers, T_L %d, %d tries, quiet %d", tdc, writers, s.tl, s.tries, s.quiet), func(t *testing.T) {
					t.Parallel()
					in, top := bargingRoot(t, "rank:3", s.tl, 1, min(tdc, "3"), s.tries, s.quiet)
					acquires, bound := 2, 2
					switch {
					case locktest.Quick():
						acquires = 1
					case locktest.Deep() && tdc == "1":
						bound = 3
					case locktest.Deep():
						bound = sim.Unbounded
					}
					locktest.RunWhole(t, check.Plan{Info: in, Ranks: 3, Acquires: acquires, Writers: writers, Topology: top}, bound)
					if locktest.Deep() {
						in, top := bargingRoot(t, "rank:4", s.tl, 1, tdc, s.tries, s.quiet)
						locktest.RunWhole(t, check.Plan{Info: in, Ranks: 4, Acquires: 1, Writers: writers, Topology: top}, 2)
					}
				})
			}
		}
	}
}

// TestBargingRootRandom: 4 and 16 ranks, N = 1, a part with TryLock and deadlines.
func TestBargingRootRandom(t *testing.T) {
	for _, ranks := range []int{4, 16} {
		for _, s := range []struct{ tl, tries, quiet int }{{1, 0, 0}, {3, 1, 1}, {2, 16, 2}} {
			t.Run(fmt.Sprintf("%d ranks, T_L %d, %d tries, quiet %d", ranks, s.tl, s.tries, s.quiet), func(t *testing.T) {
				t.Parallel()
				in, top := bargingRoot(t, fmt.Sprintf("rank:%d", ranks), s.tl, 2, "2", s.tries, s.quiet)
				for seed := range uint64(4) {
					p := check.Plan{Info: in, Ranks: ranks, Acquires: 4, Writers: check.Mixed, Topology: top, Seed: seed, Guard: true, Tries: seed == 1}
					locktest.RunPlan(t, p, sim.Random(seed, 0, locktest.Draws(200)))
					locktest.RunPlan(t, p, sim.PCT(seed, 3, 0, locktest.Draws(200)))
				}
			})
		}
	}
}

// TestBargingLock is the suite of all locks, with ranks that run at once.
func TestBargingLock(t *testing.T) {
	for _, s := range [][2]int{{1, 2}, {1, 4}, {1, 8}, {2, 2}} {
		t.Run(fmt.Sprintf("%dx%d", s[0], s[1]), func(t *testing.T) {
			in, err := lock.Lookup("rmarw")
			if err != nil {
				t.Fatal(err)
			}
			in.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
				return rmarw.New(c, rmarw.Config{Locks: n, Home: home, Leaf: rmarw.Barging})
			}
			locktest.RunOf(t, in, rmatest.Watched(s[0], s[1], time.Minute))
		})
	}
}

// TestBargingExhaustive: all schedules of 3 ranks with 1 acquire, N = 2; those of 3 with 2
// acquires and up to 3 preemptions.
func TestBargingExhaustive(t *testing.T) {
	for _, dc := range dcs {
		for writers := 1; writers <= 3; writers++ {
			for _, th := range []int{1, 2} {
				t.Run(fmt.Sprintf("%v, %d writers, T_L and T_R %d", dc, writers, th), func(t *testing.T) {
					t.Parallel()
					in, top := barging(t, dc, "node:1 rank:3", th, int64(th), "3", "node")
					locktest.RunWhole(t, check.Plan{Info: in, Ranks: 3, Acquires: 1, Writers: writers, Topology: top}, sim.Unbounded)
					if !locktest.Quick() {
						locktest.RunWhole(t, check.Plan{Info: in, Ranks: 3, Acquires: 2, Writers: writers, Topology: top}, 3)
					}
				})
			}
		}
	}
}

// TestBargingRandom: up to 16 ranks, N of 2 and 3, a part with TryLock and deadlines.
func TestBargingRandom(t *testing.T) {
	for _, dc := range dcs {
		for _, s := range []shape{
			{"node:1 rank:4", 4, []string{"node"}},
			{"node:1 rank:16", 16, []string{"node"}},
			{"node:4 rank:4", 16, []string{"node"}},
			{"rack:2 node:2 rank:4", 16, []string{"rack", "node"}},
		} {
			for _, th := range []int{1, 3} {
				t.Run(fmt.Sprintf("%v, %s, T_L and T_R %d", dc, s.text, th), func(t *testing.T) {
					t.Parallel()
					in, top := barging(t, dc, s.text, th, int64(th), "4", s.levels...)
					for seed := range uint64(2) {
						p := check.Plan{Info: in, Ranks: s.ranks, Acquires: 3, Writers: check.Mixed, Topology: top, Seed: seed, Guard: true, Tries: seed == 1}
						locktest.RunPlan(t, p, sim.Random(seed, 0, locktest.Draws(100)))
						locktest.RunPlan(t, p, sim.PCT(seed, 3, 0, locktest.Draws(100)))
					}
				})
			}
		}
	}
}

// TestBargingNeedsLevels: with one level and symmetric counters, or a leaf that spans nodes,
// it is refused.
func TestBargingNeedsLevels(t *testing.T) {
	for text, level := range map[string]string{"node:2 rank:2": "", "rack:1 node:2 rank:2": "rack"} {
		top, err := topo.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var levels []string
		if level != "" {
			levels = []string{level}
		}
		if top, err = top.Pick(levels...); err != nil {
			t.Fatal(err)
		}
		if err := inproc.RunNodes(2, 2, func(c rma.Comm) error {
			if _, err := rmarw.New(c, rmarw.Config{Topology: top, Leaf: rmarw.Barging}); !errors.Is(err, lock.ErrConfig) {
				t.Errorf("%s, level %q: %v", text, level, err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}
