package inproc_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
)

func TestConformance(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {1, 2}, {1, 3}, {1, 8}, {2, 1}, {2, 2}, {3, 2}, {5, 1}} {
		t.Run(fmt.Sprintf("%dx%d", shape[0], shape[1]), func(t *testing.T) {
			rmatest.Run(t, func(body func(rma.Comm) error) error {
				return inproc.RunNodes(shape[0], shape[1], body)
			})
		})
	}
}

// TestConformanceWithMemoryNodes: the suite in jobs that have memory nodes too.
func TestConformanceWithMemoryNodes(t *testing.T) {
	for _, job := range []inproc.Job{{Nodes: 1, PerNode: 2, MemoryNodes: 1}, {Nodes: 2, PerNode: 2, MemoryNodes: 3}} {
		t.Run(fmt.Sprintf("%+v", job), func(t *testing.T) { rmatest.Run(t, job.Run) })
	}
}

// TestManyRanks: ten thousand ranks start, meet, split, share a window and end.
func TestManyRanks(t *testing.T) {
	ranks := 10_000
	if rmatest.RaceEnabled {
		ranks = 2_000 // the race detector takes 8128 goroutines at most
	}
	err := inproc.Run(ranks, func(c rma.Comm) error {
		if err := c.Barrier(); err != nil {
			return err
		}
		part, err := c.Split(c.Rank()%100, 0)
		if err != nil {
			return err
		}
		if want := ranks / 100; part.Size() != want || part.Rank() != c.Rank()/100 {
			return fmt.Errorf("rank %d of %d in its part, want %d of %d", part.Rank(), part.Size(), c.Rank()/100, want)
		}
		w, err := c.Allocate(rma.CounterSpec("w", 1))
		if err != nil {
			return err
		}
		if err := w.AccumulateFlush(1, 0, 0, rma.Sum); err != nil {
			return err
		}
		v, err := w.Await(0, 0, rma.AtLeast(int64(ranks))) // thousands sleep on one word
		if err != nil || v != int64(ranks) {
			return fmt.Errorf("the count is %d, %w", v, err)
		}
		return w.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// waits are the calls in which a rank may wait for others.
var waits = map[string]func(c rma.Comm, w *rma.Window) error{
	"Barrier":   func(c rma.Comm, _ *rma.Window) error { return c.Barrier() },
	"Allgather": func(c rma.Comm, _ *rma.Window) error { _, err := c.Allgather([]int64{1}); return err },
	"Split":     func(c rma.Comm, _ *rma.Window) error { _, err := c.Split(0, 0); return err },
	"Allocate":  func(c rma.Comm, _ *rma.Window) error { _, err := c.Allocate(rma.DataSpec("d", 1)); return err },
	"Free":      func(_ rma.Comm, w *rma.Window) error { return w.Free() },
	"Await":     func(_ rma.Comm, w *rma.Window) error { _, err := w.Await(0, 0, rma.Equal(1)); return err },
	"Backoff": func(_ rma.Comm, w *rma.Window) error {
		for try := 0; ; try++ {
			if err := w.Backoff(0, 0, 0, try); err != nil {
				return err
			}
		}
	},
}

// TestFailureWakesEverybody: whatever ranks wait in, they learn that a peer failed,
// with its rank and text, and Run returns that failure and not theirs.
func TestFailureWakesEverybody(t *testing.T) {
	cause := errors.New("disk full")
	for name, wait := range waits {
		for nodes := 1; nodes <= 2; nodes++ {
			var errs [4]error
			err := inproc.RunNodes(nodes, 4/nodes, func(c rma.Comm) error {
				w, err := c.Allocate(rma.CounterSpec("w", 1))
				if err != nil {
					return err
				}
				if c.Rank() == 2 {
					c.Sleep(100_000)
					return cause
				}
				errs[c.Rank()] = wait(c, w)
				return errs[c.Rank()]
			})
			if !errors.Is(err, cause) || errors.Is(err, rma.ErrPeer) || err.Error() != "rank 2: disk full" {
				t.Errorf("%s: Run returned %v", name, err)
			}
			for r, err := range errs {
				if r != 2 && (!errors.Is(err, rma.ErrPeer) || !strings.Contains(err.Error(), "rank 2 failed: disk full")) {
					t.Errorf("%s: rank %d got %v", name, r, err)
				}
			}
		}
	}
}

// TestFailureLasts: after a failure every further wait fails, so that no rank goes
// on with half of a collective call.
func TestFailureLasts(t *testing.T) {
	err := inproc.Run(3, func(c rma.Comm) error {
		if c.Rank() == 2 {
			return errors.New("gone")
		}
		for i := range 20 {
			if err := c.Barrier(); !errors.Is(err, rma.ErrPeer) {
				return fmt.Errorf("rank %d passed Barrier %d without rank 2: %v", c.Rank(), i, err)
			}
			if all, err := c.Allgather([]int64{7}); !errors.Is(err, rma.ErrPeer) {
				return fmt.Errorf("rank %d passed Allgather %d without rank 2: %v, %v", c.Rank(), i, all, err)
			}
		}
		return nil
	})
	if err == nil || err.Error() != "rank 2: gone" {
		t.Error(err)
	}
}

// TestPanicIsRaisedAgain, in the caller of Run, and wakes the others.
func TestPanicIsRaisedAgain(t *testing.T) {
	var woken atomic.Int32
	defer func() {
		if p := recover(); p != "at the disco" {
			t.Errorf("recovered %v", p)
		}
		if woken.Load() != 2 {
			t.Errorf("%d ranks were woken, want 2", woken.Load())
		}
	}()
	err := inproc.Run(3, func(c rma.Comm) error {
		if c.Rank() == 1 {
			panic("at the disco")
		}
		err := c.Barrier()
		if errors.Is(err, rma.ErrPeer) {
			woken.Add(1)
		}
		return err
	})
	t.Errorf("Run returned %v", err)
}

// TestGoexitIsAFailure: a test's FailNow in a rank must not hang the others.
func TestGoexitIsAFailure(t *testing.T) {
	err := inproc.Run(2, func(c rma.Comm) error {
		if c.Rank() == 0 {
			runtime.Goexit()
		}
		return c.Barrier()
	})
	if err == nil || !strings.Contains(err.Error(), "rank 0: the rank's goroutine ended without returning") {
		t.Error(err)
	}
}

// TestEarlyReturn: ranks that wait in a collective call for one that has returned,
// or come later, are told.
func TestEarlyReturn(t *testing.T) {
	for _, late := range []bool{false, true} {
		var told atomic.Int32
		err := inproc.Run(3, func(c rma.Comm) error {
			if c.Rank() == 0 {
				if !late {
					c.Sleep(1_000_000)
				}
				return nil
			}
			if late {
				c.Sleep(1_000_000)
			}
			err := c.Barrier()
			if errors.Is(err, rma.ErrPeer) && strings.Contains(err.Error(), "returned") {
				told.Add(1)
			}
			return err
		})
		if !errors.Is(err, rma.ErrPeer) || told.Load() != 2 {
			t.Errorf("late %v: %d of 2 ranks were told; Run returned %v", late, told.Load(), err)
		}
	}
}

// TestEarlyReturnFromAPart: a rank may leave while others go on in a part without it.
func TestEarlyReturnFromAPart(t *testing.T) {
	err := inproc.Run(4, func(c rma.Comm) error {
		part, err := c.Split(c.Rank()%2, 0)
		if err != nil || c.Rank()%2 == 1 {
			return err
		}
		for range 100 {
			if err := part.Barrier(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	err = inproc.Run(4, func(c rma.Comm) error {
		part, err := c.Split(c.Rank()%2, 0)
		if err != nil || c.Rank() == 2 {
			return err
		}
		if c.Rank() == 0 {
			return part.Barrier() // which rank 2 does not come to
		}
		return nil
	})
	if !errors.Is(err, rma.ErrPeer) {
		t.Errorf("a part without one of its ranks: %v", err)
	}
}

// TestFailuresAreSummed: all that failed by themselves are named, up to eight.
func TestFailuresAreSummed(t *testing.T) {
	err := inproc.Run(20, func(c rma.Comm) error { return fmt.Errorf("failure of %d", c.Rank()) })
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 8 || lines[0] != "rank 0: failure of 0" {
		t.Errorf("20 failures give %d lines: %v", len(lines), err)
	}
}

func TestBadShapesRefused(t *testing.T) {
	for _, bad := range [][2]int{{0, 1}, {1, 0}, {-1, 2}, {1 << 20, 1 << 20}} {
		err := inproc.RunNodes(bad[0], bad[1], func(rma.Comm) error { t.Error("a rank ran"); return nil })
		if !errors.Is(err, rma.ErrRank) {
			t.Errorf("%d nodes of %d ranks: %v, want ErrRank", bad[0], bad[1], err)
		}
	}
	err := inproc.RunNodes(3, 2, func(c rma.Comm) error {
		if n := c.Node(); n.Count != 3 || n.Index != c.Rank()/2 || len(n.Ranks) != 2 || n.Ranks[0] != c.Rank()/2*2 {
			return fmt.Errorf("rank %d is on node %+v", c.Rank(), n)
		}
		if !strings.Contains(c.Describe(), "3 node(s)") {
			return fmt.Errorf("described as %q", c.Describe())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFarOperationsWaitForTheirFlush: between nodes of pretence a forgotten Flush
// shows, for Far words of one's own too.
func TestFarOperationsWaitForTheirFlush(t *testing.T) {
	err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
		w, err := c.Allocate(rma.CounterSpec("w", 1))
		if err != nil {
			return err
		}
		sees := func(want int64) error {
			for target := 0; target < 2 && c.Rank() == 1; target++ {
				if v, err := w.GetFlush(target, 0); err != nil || v != want {
					return fmt.Errorf("the word at rank %d is %d, %v, want %d", target, v, err, want)
				}
			}
			return nil
		}
		if c.Rank() == 0 {
			w.Accumulate(1, 0, 0, rma.Sum)
			w.Put(1, 1, 0)
		}
		if err := errors.Join(c.Barrier(), sees(0), c.Barrier()); err != nil {
			return err
		}
		if c.Rank() == 0 {
			err = w.FlushAll()
		}
		return errors.Join(err, c.Barrier(), sees(1), w.Free())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSleepersWakeByPart: ranks that sleep on many parts, some of which share a list, are woken
// by writes to their own part.
func TestSleepersWakeByPart(t *testing.T) {
	const ranks = 300
	err := inproc.Run(ranks, func(c rma.Comm) error {
		w, err := c.Allocate(rma.DataSpec("w", 1))
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			time.Sleep(20 * time.Millisecond) // all are asleep
			for r := ranks - 1; r > 0; r-- {
				if err := w.PutFlush(int64(r), r, 0); err != nil {
					return err
				}
			}
		} else if v, err := w.Await(c.Rank(), 0, rma.NotEqual(0)); err != nil || v != int64(c.Rank()) {
			return fmt.Errorf("rank %d woke to %d, %w", c.Rank(), v, err)
		}
		return w.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}
