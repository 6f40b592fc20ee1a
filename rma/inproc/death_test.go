package inproc_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// TestDeathOfARank: the job goes on without a rank that dies, before collective calls, in the
// middle of them, and with operations that it has not flushed.
func TestDeathOfARank(t *testing.T) {
	for nodes := 1; nodes <= 2; nodes++ {
		job := inproc.Job{Nodes: nodes, PerNode: 4 / nodes, MemoryNodes: 1, MayDie: true}
		done := make([]bool, 4)
		err := job.Run(func(c rma.Comm) error {
			w, err := c.Allocate(rma.CounterSpec("w", 2))
			if err != nil {
				return err
			}
			if c.Rank() == 2 {
				w.Put(1, 3, 1) // takes effect never, or at once on one node
				c.Sleep(2_000_000)
				return fmt.Errorf("rank 2 plays dead: %w", rma.ErrDied)
			}
			for range 3 {
				if err := c.Barrier(); err != nil { // the others wait there when rank 2 dies
					return err
				}
			}
			if err := living(c, w, nodes); err != nil {
				return err
			}
			done[c.Rank()] = true
			return nil
		})
		if err != nil {
			t.Errorf("%d nodes: %v", nodes, err)
		}
		if want := fmt.Sprint([]bool{true, true, false, true}); fmt.Sprint(done) != want {
			t.Errorf("%d nodes: ranks that came to the end: %v, want %s", nodes, done, want)
		}
	}
}

// living has the ranks that live use collective calls and windows, those of the dead too.
func living(c rma.Comm, w *rma.Window, nodes int) error {
	all, err := c.Allgather([]int64{int64(c.Rank()) + 1})
	if err != nil || fmt.Sprint(all) != "[1 2 0 4]" {
		return fmt.Errorf("Allgather without rank 2 returned %v, %w", all, err)
	}
	texts, err := rma.AllgatherBytes(c, []byte{'x'})
	if err != nil || len(texts[2]) != 0 || len(texts[3]) != 1 {
		return fmt.Errorf("AllgatherBytes without rank 2 returned %v, %w", texts, err)
	}
	part, err := c.Split(0, -c.Rank())
	if err != nil || part.Size() != 3 {
		return fmt.Errorf("a Split without rank 2: %v, %w", part, err)
	}
	other, err := part.Allocate(rma.CounterSpec("other", 1))
	if err != nil {
		return err
	}
	for target := range 4 { // the memory of the dead is there
		if err := w.AccumulateFlush(1, target, 0, rma.Sum); err != nil {
			return err
		}
		if v, err := w.Await(target, 0, rma.Equal(3)); err != nil || v != 3 {
			return fmt.Errorf("the count at rank %d is %d, %w", target, v, err)
		}
	}
	if v, err := w.GetFlush(3, 1); err != nil || nodes > 1 && v != 0 {
		return fmt.Errorf("what rank 2 did not flush: %d, %w", v, err)
	}
	return errors.Join(rma.Agree(c, nil), other.Free(), w.Free())
}

// TestDeathIsAFailure where ranks may not die, and another error is one where they may.
func TestDeathIsAFailure(t *testing.T) {
	for _, k := range []struct {
		mayDie bool
		err    error
	}{{false, rma.ErrDied}, {true, errors.New("disk full")}} {
		err := inproc.Job{Nodes: 1, PerNode: 3, MayDie: k.mayDie}.Run(func(c rma.Comm) error {
			if c.Rank() == 1 {
				return k.err
			}
			if err := c.Barrier(); !errors.Is(err, rma.ErrPeer) {
				return fmt.Errorf("a Barrier without rank 1: %w", err)
			}
			return nil
		})
		if !errors.Is(err, k.err) {
			t.Errorf("ranks may die: %v; Run returned %v, want %v", k.mayDie, err, k.err)
		}
	}
}

// TestPlayedDeath: hook.Fault with Dies has a rank die at a step.
func TestPlayedDeath(t *testing.T) {
	err := inproc.Job{Nodes: 2, PerNode: 1, MayDie: true}.Run(func(c rma.Comm) error {
		d := c
		if c.Rank() == 1 {
			d = hook.Fault(c, hook.Failure{Nth: 3, Dies: true})
		}
		w, err := d.Allocate(rma.CounterSpec("w", 1))
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			for range 5 {
				if err := w.AccumulateFlush(1, 0, 0, rma.Sum); err != nil {
					return err
				}
			}
			return errors.New("rank 1 lives")
		}
		if _, err := w.Await(0, 0, rma.Equal(2)); err != nil {
			return err
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if v := w.Peek(0); v != 2 {
			return fmt.Errorf("%d additions, want the 2 before the death", v)
		}
		return w.Free()
	})
	if err != nil {
		t.Error(err)
	}
}
