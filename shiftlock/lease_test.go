package shiftlock_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/shiftlock"
)

// lease is long enough that a rank which runs does not exceed it, even on a busy machine, and
// short enough to wait for it.
const lease = int64(500 * time.Millisecond)

// TestHolderDies: ranks that wait for a dead one, which holds two locks, go on after three
// leases, and are told of a dead writer.
func TestHolderDies(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		var told, entered atomic.Int32
		err := inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: 1, MayDie: true}.Run(func(c rma.Comm) error {
			locks, err := shiftlock.New(c, shiftlock.Config{Locks: 2, Lease: lease})
			if err != nil {
				return err
			}
			if c.Rank() == 2 {
				err = errors.Join(locks.Lock(background, 0, mode), locks.Lock(background, 1, mode))
			}
			if err := errors.Join(err, c.Barrier()); err != nil {
				return err
			}
			if c.Rank() == 2 {
				return fmt.Errorf("in the critical section: %w", rma.ErrDied)
			}
			for id := range 2 {
				err := locks.Lock(background, id, lock.Exclusive)
				if errors.Is(err, lock.ErrOwnerDied) {
					told.Add(1)
				} else if err != nil {
					return err
				}
				entered.Add(1)
				if err := locks.Unlock(id, lock.Exclusive); err != nil && !errors.Is(err, lock.ErrLeaseLost) { // a machine may be that slow
					return err
				}
			}
			return nil
		})
		if err != nil || entered.Load() != 6 || mode == lock.Exclusive && told.Load() < 2 {
			t.Errorf("%v holder: %v; %d entries, want 6, and %d told of the death", mode, err, entered.Load(), told.Load())
		}
	}
}

// TestSlowHolder: a holder that exceeds its lease learns it, in both modes and by both ways to
// release, and the lock goes on without it.
func TestSlowHolder(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		for _, release := range []shiftlock.Release{shiftlock.ReleaseByAdd, shiftlock.ReleaseByCAS} {
			err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
				locks, err := shiftlock.New(c, shiftlock.Config{Lease: lease, Release: release})
				if err != nil {
					return err
				}
				if c.Rank() == 0 {
					err = locks.Lock(background, 0, mode)
				}
				if err := errors.Join(err, c.Barrier()); err != nil {
					return err
				}
				if c.Rank() == 1 {
					err := locks.Lock(background, 0, lock.Exclusive)
					if err != nil && !errors.Is(err, lock.ErrOwnerDied) {
						return err
					}
					return errors.Join(locks.Unlock(0, lock.Exclusive), c.Barrier(), c.Barrier())
				}
				if err := c.Barrier(); err != nil { // the other has had the lock
					return err
				}
				if err := locks.Unlock(0, mode); !errors.Is(err, lock.ErrLeaseLost) {
					return fmt.Errorf("unlock after the lease, when another rank had the lock: %w", err)
				}
				if err := locks.Lock(background, 0, lock.Exclusive); err != nil {
					return fmt.Errorf("the lock again: %w", err)
				}
				return errors.Join(locks.Unlock(0, lock.Exclusive), locks.Idle(), c.Barrier())
			})
			if err != nil {
				t.Errorf("%v holder, release %d: %v", mode, release, err)
			}
		}
	}
}

// TestDeadlock: of two ranks that hold a lock each and wait for the other's, one gives way at
// least, and both end with both locks.
func TestDeadlock(t *testing.T) {
	t.Parallel() // it mostly waits
	var gaveWay atomic.Int32
	err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
		locks, err := shiftlock.New(c, shiftlock.Config{Locks: 2, Lease: lease})
		if err != nil {
			return err
		}
		mine, other := c.Rank(), 1-c.Rank()
		for first := true; ; first = false {
			err := locks.Lock(background, mine, lock.Exclusive)
			if err != nil && !errors.Is(err, lock.ErrOwnerDied) {
				return err
			}
			if first {
				if err := c.Barrier(); err != nil {
					return err
				}
			}
			if err := locks.Lock(background, other, lock.Exclusive); errors.Is(err, lock.ErrGiveWay) {
				gaveWay.Add(1)
				if err := locks.Unlock(mine, lock.Exclusive); err != nil && !errors.Is(err, lock.ErrLeaseLost) {
					return err
				}
				c.Sleep(int64(c.Rank()) * lease / 2)
				continue
			} else if err != nil && !errors.Is(err, lock.ErrOwnerDied) {
				return err
			}
			for _, id := range []int{mine, other} {
				if err := locks.Unlock(id, lock.Exclusive); err != nil && !errors.Is(err, lock.ErrLeaseLost) {
					return err
				}
			}
			return nil
		}
	})
	if err != nil || gaveWay.Load() == 0 {
		t.Errorf("%d ranks gave way, %v", gaveWay.Load(), err)
	}
}
