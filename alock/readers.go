package alock

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// The shared mode is in no paper. Each cohort counts its readers in a word of its own: L_READERS is
// changed by CPU atomics, R_READERS by the network's. A reader counts itself, and is in if both TAILs
// are null then. A writer is a rank that has taken the lock as all ranks do, and then sees both
// counts at 0 once: its TAIL is up before it looks, so a reader that comes later sees it.
//
// A reader that finds a TAIL takes its count back, takes the lock like a writer, counts itself, and
// passes the lock on at once. So readers wait no longer than writers do.

// RLock shares the lock with other readers.
func (m *RWMutex) RLock(ctx context.Context) error {
	t := m.t
	k, err := t.claim(m.id, lock.Shared)
	if err != nil {
		return err
	}
	if ctx.Done() != nil {
		return m.pollShared(ctx, k)
	}
	in, _, err := m.arrive()
	if in || err != nil {
		return err
	}
	if err := m.take(k); err != nil {
		return err
	}
	if err := m.count(1); err != nil {
		return err
	}
	return m.leave(k, t.slots[k].budget-1)
}

// arrive counts the rank as a reader if both TAILs are null.
func (m *Mutex) arrive() (in bool, s sight, err error) {
	w := m.t.w
	w.Accumulate(1, m.home, m.at+m.readers, rma.Sum)
	w.Fence(m.home)
	own, other := w.Get(m.home, m.at+m.tail), w.Get(m.home, m.at+m.other)
	if err := w.Flush(m.home); err != nil {
		return false, sight{}, err
	}
	switch {
	case w.Value(own) != null:
		s = sight{m.tail, w.Value(own)}
	case w.Value(other) != null:
		s = sight{m.other, w.Value(other)}
	default:
		return true, sight{}, nil
	}
	return false, s, m.count(-1)
}

// count adds to the readers of the rank's cohort.
func (m *Mutex) count(n int64) error {
	return m.t.w.AccumulateFlush(n, m.home, m.at+m.readers, rma.Sum)
}

// drain waits, as holder of the lock, until each count of readers has been 0.
func (m *Mutex) drain() error {
	busy, _, err := m.occupied()
	if err != nil || !busy {
		return err
	}
	for _, readers := range [...]int{localReaders, remoteReaders} {
		if _, err := m.t.w.Await(m.home, m.at+readers, rma.Equal(0)); err != nil {
			return err
		}
	}
	return nil
}

// occupied reports, to a rank that has its TAIL up, whether readers may be in.
func (m *Mutex) occupied() (bool, sight, error) {
	w := m.t.w
	here, there := w.Get(m.home, m.at+localReaders), w.Get(m.home, m.at+remoteReaders)
	if err := w.Flush(m.home); err != nil {
		return false, sight{}, err
	}
	if n := w.Value(here); n != 0 {
		return true, sight{localReaders, n}, nil
	}
	n := w.Value(there)
	return n != 0, sight{remoteReaders, n}, nil
}

// RUnlock ends the sharing.
func (m *RWMutex) RUnlock() error {
	m.t.unclaim(m.t.claimed(m.id, lock.Shared))
	return m.count(-1)
}

// TryRLock shares the lock if no rank has it exclusively or waits for it. It fails too while a reader
// that has waited passes it on.
func (m *RWMutex) TryRLock() (bool, error) {
	k, err := m.t.claim(m.id, lock.Shared)
	if err != nil {
		return false, err
	}
	in, _, err := m.arrive()
	if !in {
		m.t.unclaim(k)
	}
	return in, err
}

// pollShared shares the lock without queueing, until ctx ends.
func (m *Mutex) pollShared(ctx context.Context, k int) error {
	return m.retry(ctx, k, func(int) (bool, sight, error) { return m.arrive() })
}

// An RWMutex is a handle on one lock of a table with a shared mode.
type RWMutex struct{ Mutex }

var _ lock.RWMutex = (*RWMutex)(nil)

// checkCounts is the part of Idle for readers.
func (t *Table) checkCounts() error {
	var errs []error
	for disp := MaxHeld * lineWords; disp < t.w.Words(); disp++ {
		if word := disp % lineWords; word != localReaders && word != remoteReaders {
			continue
		}
		if v := t.w.Peek(disp); v != 0 {
			errs = append(errs, fmt.Errorf("alock: %s of rank %d is %d, want 0", t.w.Spec().WordName(disp), t.rank, v))
		}
	}
	return errors.Join(errs...)
}
