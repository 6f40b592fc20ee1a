package dslr_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// lease is long enough that a rank which runs does not exceed it, even on a busy machine, and
// short enough to wait for it.
const lease = int64(time.Second)

// TestHolderDies: ranks that wait for a dead one go on after two leases, and are told of a dead
// writer.
func TestHolderDies(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		for _, memory := range []int{0, 1} {
			var told, entered atomic.Int32
			job := inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: memory, MayDie: true}
			err := job.Run(func(c rma.Comm) error {
				locks, err := dslr.New(c, dslr.Config{Lease: lease})
				if err != nil {
					return err
				}
				if c.Rank() == 2 {
					err = locks.Lock(background, 0, mode)
				}
				if err := errors.Join(err, c.Barrier()); err != nil {
					return err
				}
				if c.Rank() == 2 {
					return fmt.Errorf("in the critical section: %w", rma.ErrDied)
				}
				err = locks.Lock(background, 0, lock.Exclusive)
				if errors.Is(err, lock.ErrOwnerDied) {
					told.Add(1)
				} else if err != nil {
					return err
				}
				entered.Add(1)
				if err := locks.Unlock(0, lock.Exclusive); !errors.Is(err, lock.ErrLeaseLost) { // a machine may be that slow
					return err
				}
				return nil
			})
			if err != nil {
				t.Errorf("%v holder, %d memory nodes: %v", mode, memory, err)
			}
			// Of a dead reader nobody need be told, but a writer that passes over others that wait
			// cannot know that none of them held the lock.
			if entered.Load() != 3 || mode == lock.Exclusive && told.Load() == 0 {
				t.Errorf("%v holder, %d memory nodes: %d ranks entered, want 3, and %d were told of the death",
					mode, memory, entered.Load(), told.Load())
			}
		}
	}
}

// TestSlowHolder: a holder that exceeds its lease learns it, in both modes and by both
// releases, and the lock goes on without it.
func TestSlowHolder(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		for _, release := range []dslr.Release{dslr.ReleaseByAdd, dslr.ReleaseByCAS} {
			err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
				locks, err := dslr.New(c, dslr.Config{Lease: lease, Release: release})
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

// TestLateButAlone: a holder that exceeds its lease while no rank waits has lost nothing.
func TestLateButAlone(t *testing.T) {
	t.Parallel() // it mostly waits
	err := inproc.Run(1, func(c rma.Comm) error {
		locks, err := dslr.New(c, dslr.Config{Lease: lease})
		for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
			err = errors.Join(err, locks.Lock(background, 0, mode))
			c.Sleep(lease * 5 / 4)
			err = errors.Join(err, locks.Unlock(0, mode), locks.Idle())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestResetterDies: ranks that meet a frozen word reset it in place of a dead rank, those that
// draw tickets and those that try.
func TestResetterDies(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, reset := range []dslr.Reset{dslr.ResetDrained, dslr.ResetExact} {
		err := inproc.Job{Nodes: 3, PerNode: 1, MayDie: true}.Run(func(c rma.Comm) error {
			locks, err := dslr.New(c, dslr.Config{Lease: lease, CountMax: 1, Reset: reset, BackoffFirst: 1000, BackoffLast: lease / 4})
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				err = locks.Lock(background, 0, lock.Shared)
			}
			if err := errors.Join(err, c.Barrier()); err != nil {
				return err
			}
			ctx, cancel := background, func() {}
			switch c.Rank() {
			case 0:
				return rma.ErrDied
			case 1:
				ctx, cancel = context.WithTimeout(background, time.Minute) // so that it tries
			}
			defer cancel()
			for range 3 {
				if err := locks.Lock(ctx, 0, lock.Exclusive); err != nil && !errors.Is(err, lock.ErrOwnerDied) {
					return err
				}
				if err := locks.Unlock(0, lock.Exclusive); err != nil {
					return err
				}
			}
			return errors.Join(c.Barrier(), locks.Idle())
		})
		if err != nil {
			t.Errorf("reset %d: %v", reset, err)
		}
	}
}

// TestDeadlock: of two ranks that hold a lock each and wait for the other's, one gives way at
// least, and both end with both locks.
func TestDeadlock(t *testing.T) {
	t.Parallel() // it mostly waits
	var gaveWay atomic.Int32
	err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
		locks, err := dslr.New(c, dslr.Config{Locks: 2, Lease: lease})
		if err != nil {
			return err
		}
		mine, other := c.Rank(), 1-c.Rank()
		for first := true; ; first = false {
			err := locks.Lock(background, mine, lock.Exclusive)
			if first {
				if err := errors.Join(err, c.Barrier()); err != nil {
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

// TestUpgrade: an update lock reads beside the readers that came before, excludes those that
// come later, and writes when the first have gone.
func TestUpgrade(t *testing.T) {
	t.Parallel() // it mostly waits
	var reading, late atomic.Int32
	err := inproc.Run(3, func(c rma.Comm) error {
		locks, err := dslr.New(c, dslr.Config{Updates: true, Lease: 60e9})
		if err != nil {
			return err
		}
		m := locks.Mutex(0).(*dslr.Mutex)
		if c.Rank() == 0 {
			reading.Add(1)
			err = m.RLock(background)
		}
		if err := errors.Join(err, c.Barrier()); err != nil {
			return err
		}
		if c.Rank() == 1 {
			err = m.ULock(background) // beside the reader
		}
		if err := errors.Join(err, c.Barrier()); err != nil {
			return err
		}
		switch c.Rank() {
		case 0:
			c.Sleep(20_000_000)
			reading.Add(-1)
			return m.RUnlock()
		case 1:
			if err := m.Upgrade(); err != nil {
				return err
			}
			if reading.Load() != 0 || late.Load() != 0 {
				return fmt.Errorf("upgraded with %d readers before and %d after", reading.Load(), late.Load())
			}
			return m.UUnlock()
		}
		if got, err := m.TryRLock(); got || err != nil {
			return fmt.Errorf("a reader behind the update lock got in: %v, %w", got, err)
		}
		if err := m.RLock(background); err != nil {
			return err
		}
		late.Add(1)
		return m.RUnlock()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestUpgradeGivesUp: readers that stay, or die, do not stop an upgrade for ever, and a slow one
// learns that it was taken for dead.
func TestUpgradeGivesUp(t *testing.T) {
	t.Parallel() // it mostly waits
	err := inproc.Run(2, func(c rma.Comm) error {
		locks, err := dslr.New(c, dslr.Config{Updates: true, Lease: lease})
		if err != nil {
			return err
		}
		m := locks.Mutex(0).(*dslr.Mutex)
		if c.Rank() == 0 {
			err = m.RLock(background)
		}
		if err := errors.Join(err, c.Barrier()); err != nil {
			return err
		}
		if c.Rank() == 1 {
			if err := m.ULock(background); err != nil {
				return err
			}
			if err := m.Upgrade(); !errors.Is(err, lock.ErrGiveWay) {
				return fmt.Errorf("Upgrade beside a reader that stays: %w", err)
			}
			return errors.Join(m.Lock(background), m.Unlock(), c.Barrier())
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if err := m.RUnlock(); !errors.Is(err, lock.ErrLeaseLost) {
			return fmt.Errorf("the slow reader's unlock: %w", err)
		}
		return locks.Idle()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestUpdateBeforeReader: an update lock that is released before a reader which came earlier takes
// nothing from it.
func TestUpdateBeforeReader(t *testing.T) {
	err := inproc.Run(2, func(c rma.Comm) error {
		locks, err := dslr.New(c, dslr.Config{Updates: true, Lease: 60e9})
		if err != nil {
			return err
		}
		m := locks.Mutex(0).(*dslr.Mutex)
		if c.Rank() == 0 {
			err = m.RLock(background)
		}
		if err := errors.Join(err, c.Barrier()); err != nil {
			return err
		}
		if c.Rank() == 1 {
			err = errors.Join(m.ULock(background), m.UUnlock())
		}
		if err := errors.Join(err, c.Barrier()); err != nil {
			return err
		}
		if c.Rank() == 0 {
			return errors.Join(m.RUnlock(), locks.Idle())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
