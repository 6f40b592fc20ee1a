package dmcs

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/rmalock/rmalock/lock"
)

// Len is the number of locks.
func (t *Table) Len() int { return t.locks }

// Home is the rank whose memory holds the lock's TAIL.
func (t *Table) Home(id int) int {
	home, _ := t.at(id)
	return home
}

// at is the home of a lock and the displacement of its TAIL there.
func (t *Table) at(id int) (home, tail int) {
	if uint(id) >= uint(t.locks) {
		panic(fmt.Sprintf("dmcs: lock %d of a table of %d", id, t.locks))
	}
	return (t.home + id) % t.size, t.tails + id/t.size
}

// Lock takes lock id, in exclusive mode whatever the mode.
func (t *Table) Lock(ctx context.Context, id int, _ lock.Mode) error {
	m := t.mutex(id)
	return m.Lock(ctx)
}

// TryLock takes lock id if it is free.
func (t *Table) TryLock(id int, _ lock.Mode) (bool, error) {
	m := t.mutex(id)
	return m.TryLock()
}

// Unlock hands lock id on.
func (t *Table) Unlock(id int, _ lock.Mode) error {
	m := t.mutex(id)
	return m.Unlock()
}

// Mutex is a handle on lock id. Handles on the same lock are interchangeable.
func (t *Table) Mutex(id int) lock.Mutex {
	m := t.mutex(id)
	return &m
}

func (t *Table) mutex(id int) Mutex {
	home, tail := t.at(id)
	return Mutex{t: t, id: id, home: home, tail: tail}
}

// Free closes the window. Collective. A held lock is a mistake of the caller.
func (t *Table) Free() error { return t.w.Free() }

// A Mutex is a handle on one lock of a table.
type Mutex struct {
	t          *Table
	id         int
	home, tail int
}

var _ lock.Mutex = (*Mutex)(nil)

// Lock takes the lock. With a context that can end it polls TryLock; see package
// lock.
func (m *Mutex) Lock(ctx context.Context) error {
	k, err := m.t.take(m.id)
	if err != nil {
		return err
	}
	if ctx.Done() == nil {
		return m.t.acquire(k, m.home, m.tail)
	}
	for try := 0; ; try++ {
		got, last, err := m.t.try(k, m.home, m.tail)
		if got || err != nil {
			return err
		}
		if ctx.Err() != nil {
			m.t.drop(k)
			return fmt.Errorf("dmcs: lock %d: %w (%w)", m.id, lock.ErrDeadline, context.Cause(ctx))
		}
		if err := m.t.w.Backoff(m.home, m.tail, last, try); err != nil {
			return err
		}
	}
}

// TryLock takes the lock if its queue is empty.
func (m *Mutex) TryLock() (bool, error) {
	k, err := m.t.take(m.id)
	if err != nil {
		return false, err
	}
	got, _, err := m.t.try(k, m.home, m.tail)
	if !got {
		m.t.drop(k)
	}
	return got, err
}

// Unlock hands the lock to the successor, or leaves it free.
func (m *Mutex) Unlock() error {
	k := m.t.find(m.id)
	if k < 0 {
		panic("dmcs: unlock of unlocked lock")
	}
	err := m.t.release(k, m.home, m.tail)
	m.t.drop(k)
	return err
}

// take finds a queue node for a lock.
func (t *Table) take(id int) (int, error) {
	if t.find(id) >= 0 {
		panic("dmcs: lock of a lock that this rank holds")
	}
	k := bits.TrailingZeros8(^t.busy)
	if k == MaxHeld {
		return 0, fmt.Errorf("dmcs: rank %d holds %d locks: %w", t.rank, MaxHeld, lock.ErrTooManyHeld)
	}
	t.busy |= 1 << k
	t.held[k] = id
	return k, nil
}

func (t *Table) drop(k int) { t.busy &^= 1 << k }

// find is the queue node with which this rank holds a lock, or -1.
func (t *Table) find(id int) int {
	for b := t.busy; b != 0; b &= b - 1 {
		if k := bits.TrailingZeros8(b); t.held[k] == id {
			return k
		}
	}
	return -1
}
