package baseline

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Lock takes lock id.
func (t *RW) Lock(ctx context.Context, id int, mode lock.Mode) error {
	m := t.mutex(id)
	return m.lock(ctx, mode)
}

// TryLock takes lock id if it is free.
func (t *RW) TryLock(id int, mode lock.Mode) (bool, error) {
	m := t.mutex(id)
	return m.try(mode)
}

// Unlock frees lock id, which this rank holds in the mode.
func (t *RW) Unlock(id int, mode lock.Mode) error {
	m := t.mutex(id)
	return m.unlock(mode)
}

// LockAll takes all locks of the table in shared mode: ALL, MPI_Win_lock_all. It
// excludes exclusive holders, costs one remote operation at Config.Home, and one
// Get per poll (with Undo two operations per try). The rank must hold no lock of the
// table. The Local variant has none: errors.ErrUnsupported.
func (t *RW) LockAll(ctx context.Context) error {
	if t.variant == Local {
		return fmt.Errorf("baseline: %s: LockAll needs the word for the whole table that this variant leaves out; open fompi-rw: %w",
			t.name, errors.ErrUnsupported)
	}
	if t.held.all || t.held.busy != 0 {
		panic("baseline: lock of a lock that this rank holds")
	}
	err := t.enterShared(ctx, everything, place{t.home, t.g}, allOne, noWriters, t.variant == Undo)
	t.held.all = err == nil
	return err
}

// UnlockAll frees what LockAll took. One remote operation.
func (t *RW) UnlockAll() error {
	if !t.held.all {
		panic("baseline: unlock of unlocked lock")
	}
	t.held.all = false
	return t.w.AccumulateFlush(-allOne, t.home, t.g, rma.Sum)
}

// Mutex is a handle on lock id, a lock.RWMutex. Handles on the same lock are
// interchangeable.
func (t *RW) Mutex(id int) lock.Mutex {
	m := t.mutex(id)
	return &m
}

func (t *RW) mutex(id int) rwMutex {
	home, disp := t.word(id)
	return rwMutex{t: t, id: id, home: home, disp: disp}
}

type rwMutex struct {
	t          *RW
	id         int
	home, disp int
}

var _ lock.RWMutex = (*rwMutex)(nil)

func (m *rwMutex) Lock(ctx context.Context) error  { return m.lock(ctx, lock.Exclusive) }
func (m *rwMutex) RLock(ctx context.Context) error { return m.lock(ctx, lock.Shared) }
func (m *rwMutex) TryLock() (bool, error)          { return m.try(lock.Exclusive) }
func (m *rwMutex) TryRLock() (bool, error)         { return m.try(lock.Shared) }
func (m *rwMutex) Unlock() error                   { return m.unlock(lock.Exclusive) }
func (m *rwMutex) RUnlock() error                  { return m.unlock(lock.Shared) }

func (m *rwMutex) lock(ctx context.Context, mode lock.Mode) error {
	k, err := m.t.held.claim(m.t.name, m.id, mode)
	if err != nil {
		return err
	}
	if mode == lock.Shared {
		err = m.t.enterShared(ctx, m.id, place{m.home, m.disp}, sharedOne, noWriter, m.t.variant == Undo)
	} else {
		err = m.t.lockExclusive(ctx, m.id, m.home, m.disp)
	}
	if err != nil {
		m.t.held.unclaim(k)
	}
	return err
}

func (m *rwMutex) try(mode lock.Mode) (got bool, err error) {
	k, err := m.t.held.claim(m.t.name, m.id, mode)
	if err != nil {
		return false, err
	}
	if mode == lock.Shared {
		got, err = m.t.tryShared(place{m.home, m.disp}, sharedOne, noWriter)
	} else {
		got, _, err = m.t.tryExclusive(m.home, m.disp)
	}
	if !got {
		m.t.held.unclaim(k)
	}
	return got, err
}

func (m *rwMutex) unlock(mode lock.Mode) error {
	m.t.held.unclaim(m.t.held.claimed(m.id, mode))
	if mode == lock.Shared {
		return m.t.w.AccumulateFlush(-sharedOne, m.home, m.disp, rma.Sum)
	}
	return m.t.unlockExclusive(m.home, m.disp)
}
