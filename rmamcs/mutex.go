package rmamcs

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/lock"
)

// A Mutex is a handle on one lock of a table.
type Mutex struct {
	t  *Table
	id int
}

var _ lock.Mutex = (*Mutex)(nil)

// Lock takes the lock. With a context that can end it polls TryLock; see package lock.
func (m *Mutex) Lock(ctx context.Context) error {
	if ctx.Done() == nil {
		return m.t.t.Lock(m.id)
	}
	return m.t.poll(ctx, m.id)
}

// TryLock takes the lock if nobody has or wants it.
func (m *Mutex) TryLock() (bool, error) { return m.t.try(m.id) }

// Unlock passes the lock on, or leaves it free.
func (m *Mutex) Unlock() error { return m.t.t.Unlock(m.id) }

// poll takes the lock without queueing, until ctx ends.
func (t *Table) poll(ctx context.Context, id int) error {
	k, err := t.t.Take(id)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		got, err := t.t.Try(k)
		if got || err != nil {
			return err
		}
		if ctx.Err() != nil {
			t.t.Drop(k)
			return fmt.Errorf("rmamcs: lock %d: %w (%w)", id, lock.ErrDeadline, context.Cause(ctx))
		}
		if err := t.t.Pause(id, try); err != nil {
			return err
		}
	}
}

func (t *Table) try(id int) (bool, error) {
	k, err := t.t.Take(id)
	if err != nil {
		return false, err
	}
	got, err := t.t.Try(k)
	if !got {
		t.t.Drop(k)
	}
	return got, err
}
