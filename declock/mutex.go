package declock

import (
	"context"

	"github.com/rmalock/rmalock/lock"
)

// Mutex is a handle on lock id; it is a lock.RWMutex.
func (t *Table) Mutex(id int) lock.Mutex { return &mutex{t, id} }

type mutex struct {
	t  *Table
	id int
}

var _ lock.RWMutex = (*mutex)(nil)

func (m *mutex) Lock(ctx context.Context) error  { return m.t.Lock(ctx, m.id, lock.Exclusive) }
func (m *mutex) Unlock() error                   { return m.t.Unlock(m.id, lock.Exclusive) }
func (m *mutex) TryLock() (bool, error)          { return m.t.TryLock(m.id, lock.Exclusive) }
func (m *mutex) RLock(ctx context.Context) error { return m.t.Lock(ctx, m.id, lock.Shared) }
func (m *mutex) RUnlock() error                  { return m.t.Unlock(m.id, lock.Shared) }
func (m *mutex) TryRLock() (bool, error)         { return m.t.TryLock(m.id, lock.Shared) }
