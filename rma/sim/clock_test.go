package sim_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/rma/sim"
)

func layout(nodes, perNode int) []int {
	out := make([]int, nodes*perNode)
	for r := range out {
		out[r] = r / perNode
	}
	return out
}

// TestConformanceInTime: the suite that every backend passes.
func TestConformanceInTime(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {1, 4}, {2, 2}, {3, 1}, {4, 2}} {
		rmatest.Run(t, func(body func(rma.Comm) error) error {
			_, err := sim.Timed{Node: layout(shape[0], shape[1]), Model: sim.Uneven(1)}.Run(body)
			return err
		})
	}
	rmatest.Run(t, func(body func(rma.Comm) error) error {
		_, err := sim.Timed{Node: layout(2, 2), MemoryNodes: 2, Model: sim.Uneven(1)}.Run(body)
		return err
	})
}

// TestConformanceOnVerbs: the same with swaps and Puts that are loops, and no more than two
// operations under way on a connection.
func TestConformanceOnVerbs(t *testing.T) {
	for _, shape := range [][2]int{{1, 4}, {2, 2}, {3, 1}} {
		rmatest.Run(t, func(body func(rma.Comm) error) error {
			_, err := sim.Timed{Node: layout(shape[0], shape[1]), MemoryNodes: 2, Verbs: true, Model: narrow{sim.Uneven(1), 2}}.Run(body)
			return err
		})
	}
}

func BenchmarkFetchAndOp(b *testing.B) {
	for _, n := range []int{2, 64, 4096, 65536} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			each := max(1, b.N/n)
			_, err := sim.Timed{Node: layout(n/2, 2), Model: sim.Uneven(1)}.Run(func(c rma.Comm) error {
				w, err := c.Allocate(rma.CounterSpec("x", 1))
				if err != nil {
					return err
				}
				for i := range each {
					if _, err := w.FetchAndOpFlush(1, (c.Rank()*7+i*13)%n, 0, rma.Sum); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkDMCS counts from when all ranks have their table: 65,536 take a second and
// more to start.
func BenchmarkDMCS(b *testing.B) {
	for _, n := range []int{64, 4096, 65536} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			each := max(10, b.N/n)
			var start time.Time
			e, err := sim.Timed{Node: layout(n/16, 16), Model: sim.Uneven(1)}.Run(func(c rma.Comm) error {
				t, err := dmcs.New(c, dmcs.Config{})
				if err == nil {
					err = c.Barrier()
				}
				if start.IsZero() {
					start = time.Now()
				}
				if err != nil {
					return err
				}
				for range each {
					if err := t.Lock(context.Background(), 0, lock.Exclusive); err != nil {
						return err
					}
					if err := t.Unlock(0, lock.Exclusive); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(e.Operations)/time.Since(start).Seconds(), "ops/s")
		})
	}
}

// TestManyRanks: 65,536 ranks take a lock in less than 4 GiB, and twice in the same
// virtual time.
func TestManyRanks(t *testing.T) {
	n := 65536
	if testing.Short() {
		n = 4096
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	entered := 0
	run := func() sim.Elapsed {
		e, err := sim.Timed{Node: layout(n/16, 16), Model: sim.Uneven(7)}.Run(func(c rma.Comm) error {
			tab, err := dmcs.New(c, dmcs.Config{})
			if err != nil {
				return err
			}
			if err := tab.Lock(context.Background(), 0, lock.Exclusive); err != nil {
				return err
			}
			entered++
			if c.Rank() == n/2 {
				runtime.ReadMemStats(&after)
			}
			return tab.Unlock(0, lock.Exclusive)
		})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	first := run()
	used := after.Sys - before.Sys
	t.Logf("%d ranks: %d MiB, %d events, %.3f ms of virtual time", n, used>>20, first.Events, float64(first.Now)/1e6)
	if used > 4<<30 {
		t.Errorf("%d ranks use %d MiB, want at most 4096", n, used>>20)
	}
	if entered != n {
		t.Errorf("%d entries, want %d", entered, n)
	}
	if testing.Short() {
		if second := run(); second != first {
			t.Errorf("the same run took %+v, and then %+v", first, second)
		}
	}
}

// TestTimedDeadlock: no rank can continue, and the error says what each waits for.
func TestTimedDeadlock(t *testing.T) {
	_, err := sim.Timed{Node: layout(2, 1), Model: sim.Uneven(1)}.Run(func(c rma.Comm) error {
		w, err := c.Allocate(rma.DataSpec("data", 1))
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			_, err = w.Await(0, 0, rma.Equal(1))
		}
		return err
	})
	if !errors.Is(err, sim.ErrDeadlock) || !strings.Contains(err.Error(), "rank 0 awaits data.data@0 == 1, which is 0") {
		t.Errorf("got %v", err)
	}
}

// TestTimedFaults: a rank that stops for a while is late, one that stops for ever
// stops those who wait for it, and a run may be bounded.
func TestTimedFaults(t *testing.T) {
	run := func(s sim.Timed) (sim.Elapsed, error) {
		s.Node, s.Model = layout(3, 1), sim.Uneven(3)
		return s.Run(func(c rma.Comm) error {
			tab, err := dmcs.New(c, dmcs.Config{})
			if err != nil {
				return err
			}
			for range 20 {
				if err := tab.Lock(context.Background(), 0, lock.Exclusive); err != nil {
					return err
				}
				if err := tab.Unlock(0, lock.Exclusive); err != nil {
					return err
				}
			}
			return nil
		})
	}
	plain, err := run(sim.Timed{})
	if err != nil {
		t.Fatal(err)
	}
	late, err := run(sim.Timed{Faults: []sim.TimedFault{{Rank: 1, At: plain.Now / 2, For: 1e9}}})
	if err != nil || late.Now < 1e9 {
		t.Errorf("a rank that stops for a second: %+v, %v", late, err)
	}
	if _, err := run(sim.Timed{Faults: []sim.TimedFault{{Rank: 1, At: plain.Now / 2}}}); !errors.Is(err, sim.ErrDeadlock) {
		t.Errorf("a rank that stops for ever: %v", err)
	}
	if _, err := run(sim.Timed{MaxTime: plain.Now / 2}); !errors.Is(err, sim.ErrTime) {
		t.Errorf("a bounded run: %v", err)
	}
}

// TestTimedLimitAtAWake: the limit of a wait passes between the change of its word and the rank's
// waking from it. The rank goes on once, and what it does then is done when its Flush returns.
func TestTimedLimitAtAWake(t *testing.T) {
	for limit := range int64(3000) {
		_, err := sim.Timed{Node: layout(2, 1), Model: sim.Uneven(3)}.Run(func(c rma.Comm) error {
			w, err := c.Allocate(rma.Spec{Name: "words", Regions: []rma.Region{
				{Count: 1, Words: []rma.Word{{Name: "FLAG", Class: rma.Flag}, {Name: "SUM", Class: rma.Far}}}}})
			if err != nil {
				return err
			}
			if c.Rank() == 1 {
				return w.PutFlush(1, 0, 0)
			}
			if _, _, err := w.AwaitUntil(0, 0, rma.Equal(1), c.Now()+limit); err != nil {
				return err
			}
			for v := range int64(3) {
				if found, err := w.FetchAndOpFlush(1, 1, 1, rma.Sum); found != v || err != nil {
					return fmt.Errorf("limit %d: the word is %d, want %d: %w", limit, found, v, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestBackoffTimes: a rank that tries again until a time has come gets there, though the word never
// changes; one that tries for ever is in a deadlock.
func TestBackoffTimes(t *testing.T) {
	spec := rma.DataSpec("w", 1)
	for until, want := range map[int64]error{300_000: nil, 1 << 62: sim.ErrDeadlock} {
		_, err := sim.Timed{Node: []int{0, 0}, Model: watch()}.Run(func(c rma.Comm) error {
			w, err := c.Allocate(spec)
			for try := 0; err == nil && c.Now() < until; try++ {
				err = w.Backoff(0, 0, 0, try)
			}
			return err
		})
		if !errors.Is(err, want) {
			t.Errorf("until %d: error %v, want %v", until, err, want)
		}
	}
}
