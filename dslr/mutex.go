package dslr

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
func (m *Mutex) Lock(ctx context.Context) error { return m.t.acquire(ctx, m.id, exclusive, 1) }

// Unlock is Table.Unlock in exclusive mode.
func (m *Mutex) Unlock() error { return m.t.unlock(m.id, exclusive) }

// TryLock is Table.TryLock in exclusive mode.
func (m *Mutex) TryLock() (bool, error) { return m.t.TryLock(m.id, lock.Exclusive) }

// RLock is Table.Lock in shared mode.
func (m *Mutex) RLock(ctx context.Context) error { return m.t.acquire(ctx, m.id, shared, 1) }

// RUnlock is Table.Unlock in shared mode.
func (m *Mutex) RUnlock() error { return m.t.unlock(m.id, shared) }

// TryRLock is Table.TryLock in shared mode.
func (m *Mutex) TryRLock() (bool, error) { return m.t.TryLock(m.id, lock.Shared) }

// ULock takes the lock for reading, with the right to upgrade: section 5.2. It shares the lock
// with readers that came before, and excludes all ranks that come later. The table needs
// Config.Updates.
func (m *Mutex) ULock(ctx context.Context) error {
	if err := m.t.updates(); err != nil {
		return err
	}
	return m.t.acquire(ctx, m.id, update, 1)
}

// Upgrade waits until the readers before a ULock have gone: then the caller may write. With
// lock.ErrGiveWay, because they stay for too long, or lock.ErrLeaseLost the caller does not
// hold the lock any more.
func (m *Mutex) Upgrade() error { return m.t.upgrade(m.id) }

// UUnlock releases a lock that ULock took, upgraded or not.
func (m *Mutex) UUnlock() error { return m.t.unlock(m.id, update) }
