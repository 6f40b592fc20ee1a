package rmarw

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/lock"
)

// An RWMutex is a handle on one lock of a table.
type RWMutex struct {
	t  *Table
	id int
}

var _ lock.RWMutex = (*RWMutex)(nil)

// Lock takes the lock exclusively. With a context that can end it polls TryLock; see
// package lock.
func (m *RWMutex) Lock(ctx context.Context) error { return m.t.lock(ctx, m.id) }

// TryLock takes the lock exclusively if nobody has or wants it.
func (m *RWMutex) TryLock() (bool, error) { return m.t.try(m.id) }

// Unlock passes the lock on, to a writer or to the readers, or leaves it free.
func (m *RWMutex) Unlock() error { return m.t.tree.Unlock(m.id) }

// RLock shares the lock. With a context that can end it polls TryRLock.
func (m *RWMutex) RLock(ctx context.Context) error { return m.t.Lock(ctx, m.id, lock.Shared) }

// TryRLock shares the lock if no writer has or wants it.
func (m *RWMutex) TryRLock() (bool, error) { return m.t.TryLock(m.id, lock.Shared) }

// RUnlock ends the sharing.
func (m *RWMutex) RUnlock() error { return m.t.Unlock(m.id, lock.Shared) }

func (t *Table) lock(ctx context.Context, id int) error {
	if err := t.mayTake(id); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return t.tree.Lock(id)
	}
	k, err := t.tree.Take(id)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		got, err := t.tree.Try(k)
		if got || err != nil {
			return err
		}
		if ctx.Err() != nil {
			t.tree.Drop(k)
			return fmt.Errorf("rmarw: lock %d: %w (%w)", id, lock.ErrDeadline, context.Cause(ctx))
		}
		if err := t.tree.Pause(id, try); err != nil {
			return err
		}
	}
}

// mayTake reports an error if the rank shares as many locks as it may hold.
func (t *Table) mayTake(id int) error {
	if t.nshared == 0 {
		return nil
	}
	if t.sharing(id) >= 0 {
		panic("rmarw: lock of a lock that this rank holds")
	}
	return t.full()
}

func (t *Table) try(id int) (bool, error) {
	if err := t.mayTake(id); err != nil {
		return false, err
	}
	k, err := t.tree.Take(id)
	if err != nil {
		return false, err
	}
	got, err := t.tree.Try(k)
	if !got {
		t.tree.Drop(k)
	}
	return got, err
}
