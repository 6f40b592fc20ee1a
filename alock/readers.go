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

// rlock shares the lock with other readers.
func (p *place) rlock(ctx context.Context) error {
	t := p.t
	k, err := t.claim(p.id, lock.Shared)
	if err != nil {
		return err
	}
	if ctx.Done() != nil {
		return p.pollShared(ctx, k)
	}
	in, _, err := p.arrive()
	if in || err != nil {
		return err
	}
	if err := p.take(k); err != nil {
		return err
	}
	if err := p.count(1); err != nil {
		return err
	}
	return p.leave(k, t.slots[k].budget-1)
}

// arrive counts the rank as a reader if both TAILs are null.
func (p *place) arrive() (in bool, s sight, err error) {
	w := p.t.w
	w.Accumulate(1, p.home, p.at+p.readers, rma.Sum)
	w.Fence(p.home)
	own, other := w.Get(p.home, p.at+p.tail), w.Get(p.home, p.at+p.other)
	if err := w.Flush(p.home); err != nil {
		return false, sight{}, err
	}
	switch {
	case w.Value(own) != null:
		s = sight{p.tail, w.Value(own)}
	case w.Value(other) != null:
		s = sight{p.other, w.Value(other)}
	default:
		return true, sight{}, nil
	}
	return false, s, p.count(-1)
}

// count adds to the readers of the rank's cohort.
func (p *place) count(n int64) error {
	return p.t.w.AccumulateFlush(n, p.home, p.at+p.readers, rma.Sum)
}

// drain waits, as holder of the lock, until each count of readers has been 0.
func (p *place) drain() error {
	busy, _, err := p.occupied()
	if err != nil || !busy {
		return err
	}
	for _, readers := range [...]int{localReaders, remoteReaders} {
		if _, err := p.t.w.Await(p.home, p.at+readers, rma.Equal(0)); err != nil {
			return err
		}
	}
	return nil
}

// occupied reports, to a rank that has its TAIL up, whether readers may be in.
func (p *place) occupied() (bool, sight, error) {
	w := p.t.w
	here, there := w.Get(p.home, p.at+localReaders), w.Get(p.home, p.at+remoteReaders)
	if err := w.Flush(p.home); err != nil {
		return false, sight{}, err
	}
	if n := w.Value(here); n != 0 {
		return true, sight{localReaders, n}, nil
	}
	n := w.Value(there)
	return n != 0, sight{remoteReaders, n}, nil
}

// runlock ends the sharing.
func (p *place) runlock() error {
	p.t.unclaim(p.t.claimed(p.id, lock.Shared))
	return p.count(-1)
}

// tryRLock shares the lock if no rank has it exclusively or waits for it. It fails too while a reader
// that has waited passes it on.
func (p *place) tryRLock() (bool, error) {
	k, err := p.t.claim(p.id, lock.Shared)
	if err != nil {
		return false, err
	}
	in, _, err := p.arrive()
	if !in {
		p.t.unclaim(k)
	}
	return in, err
}

// pollShared shares the lock without queueing, until ctx ends.
func (p *place) pollShared(ctx context.Context, k int) error {
	return p.retry(ctx, k, func(int) (bool, sight, error) { return p.arrive() })
}

// An RWMutex is a handle on one lock of a table with a shared mode.
type RWMutex struct{ Mutex }

var _ lock.RWMutex = (*RWMutex)(nil)

// RLock shares the lock with other readers. With a context that can end it polls TryRLock.
func (m *RWMutex) RLock(ctx context.Context) error { return m.t.place(m.id).rlock(ctx) }

// TryRLock shares the lock if no rank has it exclusively or waits for it. It fails too while a reader
// that has waited passes it on.
func (m *RWMutex) TryRLock() (bool, error) { return m.t.place(m.id).tryRLock() }

// RUnlock ends the sharing.
func (m *RWMutex) RUnlock() error { return m.t.place(m.id).runlock() }

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
