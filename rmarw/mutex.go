package rmarw

import (
	"context"

	"github.com/rmalock/rmalock/internal/queuetree"
	"github.com/rmalock/rmalock/lock"
)

// An RWMutex is a handle on one lock of a table.
type RWMutex struct {
	t      *Table
	writer queuetree.Mutex
	id     int
}

var _ lock.RWMutex = (*RWMutex)(nil)

// Lock takes the lock exclusively. With a context that can end it polls TryLock; see
// package lock.
func (m *RWMutex) Lock(ctx context.Context) error {
	if err := m.t.checkClaim(m.id); err != nil {
		return err
	}
	return m.writer.Lock(ctx)
}

// TryLock takes the lock exclusively if no rank has or wants it.
func (m *RWMutex) TryLock() (bool, error) {
	if err := m.t.checkClaim(m.id); err != nil {
		return false, err
	}
	return m.writer.TryLock()
}

// Unlock passes the lock on, to a writer or to the readers, or leaves it free.
func (m *RWMutex) Unlock() error { return m.writer.Unlock() }

// RLock shares the lock. With a context that can end it polls TryRLock.
func (m *RWMutex) RLock(ctx context.Context) error { return m.t.Lock(ctx, m.id, lock.Shared) }

// TryRLock shares the lock if no writer has or wants it.
func (m *RWMutex) TryRLock() (bool, error) { return m.t.TryLock(m.id, lock.Shared) }

// RUnlock ends the sharing.
func (m *RWMutex) RUnlock() error { return m.t.Unlock(m.id, lock.Shared) }

// checkClaim reports an error if the rank shares as many locks as it may hold.
func (t *Table) checkClaim(id int) error {
	if t.nshared == 0 {
		return nil
	}
	if t.findShared(id) >= 0 {
		panic("rmarw: lock of a lock that this rank holds")
	}
	return t.checkHeld()
}
