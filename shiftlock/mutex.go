package shiftlock

import (
	"context"

	"github.com/rmalock/rmalock/lock"
)

// Mutex is a handle on lock id; it is a *Mutex.
func (t *Table) Mutex(id int) lock.Mutex { return &Mutex{t, id} }

// A Mutex is a handle on one lock of a table.
type Mutex struct {
	t  *Table
	id int
}

var _ lock.RWMutex = (*Mutex)(nil)

// Lock is Table.Lock in exclusive mode.
func (m *Mutex) Lock(ctx context.Context) error { return m.t.Lock(ctx, m.id, lock.Exclusive) }

// Unlock is Table.Unlock in exclusive mode.
func (m *Mutex) Unlock() error { return m.t.Unlock(m.id, lock.Exclusive) }

// TryLock is Table.TryLock in exclusive mode.
func (m *Mutex) TryLock() (bool, error) { return m.t.TryLock(m.id, lock.Exclusive) }

// RLock is Table.Lock in shared mode.
func (m *Mutex) RLock(ctx context.Context) error { return m.t.Lock(ctx, m.id, lock.Shared) }

// RUnlock is Table.Unlock in shared mode.
func (m *Mutex) RUnlock() error { return m.t.Unlock(m.id, lock.Shared) }

// TryRLock is Table.TryLock in shared mode.
func (m *Mutex) TryRLock() (bool, error) { return m.t.TryLock(m.id, lock.Shared) }
