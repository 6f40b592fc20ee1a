package dhttest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/dht/dhttest"
	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
	_ "github.com/rmalock/rmalock/rmamcs"
	_ "github.com/rmalock/rmalock/rmarw"
)

// small is a table in which all keys but 0 share a slot, and the heap is soon full.
func small(t *testing.T, way string, ranks, calls int, seed uint64) dhttest.Plan {
	t.Helper()
	p := dhttest.Plan{Ranks: ranks, Calls: calls, Seed: seed, Volumes: 1, Slots: 1, Heap: 2}
	if way != "" {
		info, err := lock.Lookup(way)
		if err != nil {
			t.Fatal(err)
		}
		p.Info = info
	}
	return p
}

// linearizable runs a plan and fails the test where a history is not.
func linearizable(t *testing.T, p dhttest.Plan, s sim.Scheduler) dhttest.Result {
	t.Helper()
	r, err := dhttest.Run(p, s)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Failure; f != nil {
		g, err := dhttest.Shrink(p, f, 300)
		if err != nil {
			t.Fatal(err)
		}
		trace, _, _ := dhttest.Replay(p, g.Schedule)
		var b strings.Builder
		sim.WriteTrace(&b, trace)
		t.Fatalf("%s, seed %d: %v (%s)\n%s", p.Info.Name, p.Seed, g, g.Schedule, b.String())
	}
	return r
}

var ways = []string{"", "dmcs", "fompi-spin", "fompi-rw", "fompi-rw-local", "ompi-rw", "rmamcs", "rmarw"}

// deep reports whether long searches run: make check-deep.
func deep() bool { return os.Getenv("RMALOCK_DEEP") != "" }

// whole demands that a search of all schedules, or of all within a bound, comes to its
// end and finds nothing.
func whole(t *testing.T, p dhttest.Plan, bound int) {
	t.Helper()
	r := linearizable(t, p, sim.Exhaustive(bound))
	if !r.Whole || r.States < 20 {
		t.Errorf("%s, seed %d: whole %v, %d states", p.Info.Name, p.Seed, r.Whole, r.States)
	}
	t.Logf("%s, %d ranks, %d operations each, seed %d, bound %d: %d executions, %d states", p.Info.Name, p.Ranks, p.Calls, p.Seed, bound, r.Stats.Executions+r.Stats.Cut, r.States)
}

// TestSearchExhaustive: all schedules of 3 ranks with 2 operations each, for atomics alone and
// under locks; and of smaller jobs with the words of bulk operations in any order.
func TestSearchExhaustive(t *testing.T) {
	t.Run("any", func(t *testing.T) {
		t.Parallel()
		seeds := uint64(2)
		switch {
		case testing.Short():
			seeds = 1
		case deep():
			seeds = 6
		}
		for seed := range seeds {
			for _, way := range ways {
				if way == "" || seed == 0 {
					whole(t, small(t, way, 2, 2, seed), sim.Unbounded)
				}
			}
			whole(t, small(t, "", 3, 1, seed), sim.Unbounded)
		}
	})
	if testing.Short() {
		return
	}
	for _, way := range ways {
		t.Run("3x2"+way, func(t *testing.T) {
			t.Parallel()
			p := small(t, way, 3, 2, 1)
			p.Ascending = true
			whole(t, p, sim.Unbounded)
		})
	}
}

// TestSearchBounded: 4 ranks with one operation each and up to 3 preemptions, and 3 ranks
// with two and up to 2, for atomics alone and under every lock; under three of them up to
// 2 and 2, with RMALOCK_DEEP as the others.
func TestSearchBounded(t *testing.T) {
	for _, way := range ways {
		t.Run("with"+way, func(t *testing.T) {
			t.Parallel()
			four, three := 3, 2
			switch {
			case testing.Short():
				four, three = 1, 1
			case (way == "rmamcs" || way == "ompi-rw" || way == "rmarw") && !deep():
				four = 2 // with 3 up to ten seconds each
			}
			p := small(t, way, 4, 1, 0)
			p.Ascending = true
			whole(t, p, four)
			p = small(t, way, 3, 2, 0)
			p.Ascending = true
			whole(t, p, three)
		})
	}
}

// TestSearchDrawn: random and PCT schedules of 4 and 16 ranks with 3 operations each, on
// two volumes at two nodes.
func TestSearchDrawn(t *testing.T) {
	two := []int{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}
	const scripts = 20 // of operations; each has its part of the executions
	for _, way := range ways {
		executions := int64(400)
		switch {
		case testing.Short():
			executions = 200
		case way == "" || deep():
			executions = 10_000
		}
		t.Run("with"+way, func(t *testing.T) {
			t.Parallel()
			for _, ranks := range []int{4, 16} {
				for seed := range uint64(scripts) {
					p := small(t, way, ranks, 3, seed)
					p.Volumes, p.Heap = 2, 1+int(seed%4)
					if ranks == 16 {
						p.Node = two
					}
					linearizable(t, p, sim.Random(seed, 0, executions/scripts))
					linearizable(t, p, sim.PCT(seed, 4, 0, executions/scripts))
				}
			}
		})
	}
}

// TestSearchDeep: 64 ranks with 3 operations, and 256 with 20, on four volumes.
func TestSearchDeep(t *testing.T) {
	if !deep() {
		t.Skip("takes many minutes: RMALOCK_DEEP is not set")
	}
	for _, way := range ways {
		for _, size := range []struct {
			ranks, calls int
			executions   int64
		}{{64, 3, 100}, {256, 20, 2}} {
			t.Run(fmt.Sprintf("with%s/%dx%d", way, size.ranks, size.calls), func(t *testing.T) {
				t.Parallel()
				p := small(t, way, size.ranks, size.calls, 1)
				p.Volumes, p.Slots, p.Heap = 4, 4, 16
				for key := range int64(32) {
					p.Keys = append(p.Keys, key)
				}
				for r := range size.ranks {
					p.Node = append(p.Node, r/16)
				}
				linearizable(t, p, sim.Random(1, 0, size.executions))
				linearizable(t, p, sim.PCT(1, 4, 0, size.executions))
			})
		}
	}
}

// TestSearchFindsBadLocks: a lock that does not exclude makes the histories wrong, and the
// schedule that shows it replays.
func TestSearchFindsBadLocks(t *testing.T) {
	p := small(t, "dmcs", 3, 3, 4)
	p.Heap = 8
	open := p.Info.Open
	p.Info.Name = "broken"
	p.Info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		inner, err := open(c, n, home)
		return broken{inner}, err
	}
	for name, s := range map[string]sim.Scheduler{"random": sim.Random(1, 0, 5000), "pct": sim.PCT(1, 3, 0, 5000)} {
		r, err := dhttest.Run(p, s)
		if err != nil {
			t.Fatal(err)
		}
		if r.Failure == nil {
			t.Errorf("%s: nothing found", name)
			continue
		}
		if !errors.Is(r.Failure, dhttest.ErrHistory) && !errors.Is(r.Failure, sim.ErrFlag) {
			t.Errorf("%s: %v", name, r.Failure)
		}
		_, f, err := dhttest.Replay(p, r.Failure.Schedule)
		if err != nil || f == nil || f.Error() != r.Failure.Error() {
			t.Errorf("%s: replay: %v, %v; want %v", name, f, err, r.Failure)
		}
	}
}

// TestBadPlansRefused: a bad plan is refused.
func TestBadPlansRefused(t *testing.T) {
	good := small(t, "", 2, 1, 0)
	for i, change := range []func(*dhttest.Plan){
		func(p *dhttest.Plan) { p.Ranks = 0 },
		func(p *dhttest.Plan) { p.Calls = 0 },
		func(p *dhttest.Plan) { p.Keys = []int64{} },
	} {
		p := good
		change(&p)
		if _, err := dhttest.Run(p, sim.Random(1, 0, 1)); !errors.Is(err, lock.ErrConfig) {
			t.Errorf("%d: %v", i, err)
		}
	}
	bad := good
	bad.Slots = -1
	if r, err := dhttest.Run(bad, sim.Random(1, 0, 1)); err != nil || r.Failure == nil {
		t.Error(fmt.Sprint(r, err))
	}
}

// broken is a table of locks that admits all ranks.
type broken struct{ lock.Table }

func (broken) Lock(context.Context, int, lock.Mode) error { return nil }
func (broken) Unlock(int, lock.Mode) error                { return nil }

// TestOpenedOnce: a table that is opened once for all executions is searched as one that is
// opened for each, under atomics alone and under every lock.
func TestOpenedOnce(t *testing.T) {
	for _, in := range append(lock.All(), lock.Info{Name: "atomic"}) {
		if in.Serves {
			continue // the hashtable's ranks all take locks
		}
		for what, sched := range map[string]func() sim.Scheduler{
			"bounded": func() sim.Scheduler { return sim.Exhaustive(1) },
			"random":  func() sim.Scheduler { return sim.Random(1, 0, 50) },
		} {
			t.Run(in.Name+"/"+what, func(t *testing.T) {
				p := dhttest.Plan{Info: in, Ranks: 2, Calls: 2, Volumes: 1, Slots: 1, Heap: 2}
				once, anew, err := dhttest.OpenedOnce(p, sched)
				if err != nil {
					t.Fatal(err)
				}
				if once.Failure != nil && (errors.Is(once.Failure, errors.ErrUnsupported) || errors.Is(once.Failure, sim.ErrClock)) {
					t.Skip(once.Failure)
				}
				if once.Failure != nil || anew.Failure != nil {
					t.Fatalf("opened once: %v; for each execution: %v", once.Failure, anew.Failure)
				}
				if once != anew {
					t.Errorf("opened once: %+v; for each execution: %+v", once, anew)
				}
			})
		}
	}
}
