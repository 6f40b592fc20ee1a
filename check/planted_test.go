package check_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// planted is a spin lock with a planted bug. It compares the number of holders that a waiter
// read at its arrival with the number at its entry, in a field of few bits. If more others
// than that held the lock meanwhile, the rank takes itself for departed and does not release
// the lock.
//
// The bug takes two events in one order: the rank reads, then all others acquire and release.
type planted struct {
	w     *rma.Window
	home  int
	stale bool
}

const (
	pLock, pCount = 0, 1
	few           = 40 // entries that the bits hold
)

func plantedInfo() lock.Info {
	return lock.Info{Name: "planted", Open: func(c rma.Comm, _, home int) (lock.Table, error) {
		w, err := c.Allocate(rma.CounterSpec("planted", 2))
		return &planted{w: w, home: home}, err
	}}
}

func (t *planted) Len() int             { return 1 }
func (t *planted) Home(int) int         { return t.home }
func (t *planted) Free() error          { return t.w.Free() }
func (t *planted) Mutex(int) lock.Mutex { return nil }

func (t *planted) TryLock(int, lock.Mode) (bool, error) { return false, errors.ErrUnsupported }

func (t *planted) Lock(context.Context, int, lock.Mode) error {
	for try := 0; ; try++ {
		saw, err := t.w.GetFlush(t.home, pCount)
		if err != nil {
			return err
		}
		last, err := t.w.CompareAndSwapFlush(1, 0, t.home, pLock)
		if err != nil {
			return err
		}
		if last == 0 {
			now, err := t.w.FetchAndOpFlush(1, t.home, pCount, rma.Sum)
			t.stale = now-saw > few
			return err
		}
		if err := t.w.Backoff(t.home, pLock, last, try); err != nil {
			return err
		}
	}
}

func (t *planted) Unlock(int, lock.Mode) error {
	if t.stale {
		return nil
	}
	return t.w.AccumulateFlush(-1, t.home, pLock, rma.Sum)
}

func (t *planted) Promise(lock.Mode) lock.Promise {
	return lock.Promise{Bypass: lock.Unbounded, Acquire: 99, Release: 1}
}

func (t *planted) Idle() error {
	if v := t.w.Peek(pLock); v != 0 {
		return fmt.Errorf("the lock is %d", v)
	}
	return nil
}

// TestPCTFindsWhatRandomMisses: the same number of executions each.
func TestPCTFindsWhatRandomMisses(t *testing.T) {
	p := check.Plan{Info: plantedInfo(), Ranks: 16, Acquires: 4}
	const executions = 400
	for seed := range uint64(3) {
		r, err := check.RunParallel(p, executions, func(first, n int64) sim.Scheduler { return sim.Random(seed, first, n) })
		if err != nil || r.Failure != nil {
			t.Errorf("seed %d: random finds %v (%v)", seed, r.Failure, err)
		}
		r, err = check.RunParallel(p, executions, func(first, n int64) sim.Scheduler { return sim.PCT(seed, 2, first, n) })
		if err != nil || r.Failure == nil || !(errors.Is(r.Failure, check.ErrIdle) || errors.Is(r.Failure, sim.ErrDeadlock)) {
			t.Errorf("seed %d: PCT finds %v (%v)", seed, r.Failure, err)
			continue
		}
		t.Logf("seed %d: PCT finds it in execution %d", seed, r.Failure.Execution)
	}
}
