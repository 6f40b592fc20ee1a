package baseline

import (
	"context"

	"github.com/rmalock/rmalock/lock"
)

// handle is one lock of a table, a lock.RWMutex. Handles on the same lock are interchangeable.
type handle struct {
	t  lock.Table
	id int
}

var _ lock.RWMutex = (*handle)(nil)

func (h *handle) Lock(ctx context.Context) error  { return h.t.Lock(ctx, h.id, lock.Exclusive) }
func (h *handle) RLock(ctx context.Context) error { return h.t.Lock(ctx, h.id, lock.Shared) }
func (h *handle) TryLock() (bool, error)          { return h.t.TryLock(h.id, lock.Exclusive) }
func (h *handle) TryRLock() (bool, error)         { return h.t.TryLock(h.id, lock.Shared) }
func (h *handle) Unlock() error                   { return h.t.Unlock(h.id, lock.Exclusive) }
func (h *handle) RUnlock() error                  { return h.t.Unlock(h.id, lock.Shared) }
