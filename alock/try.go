package alock

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
)

// TryLock takes the lock if it is free. The paper has none.
func (m *Mutex) TryLock() (bool, error) {
	k, err := m.t.claim(m.id, lock.Exclusive)
	if err != nil {
		return false, err
	}
	got, _, err := m.try(k)
	if !got {
		m.t.unclaim(k)
	}
	return got, err
}

// A sight is what kept a try from the lock: a word of the lock's line and its value.
type sight struct {
	disp int
	seen int64
}

// try takes the lock if the cohort's queue is empty and the other cohort does not want the lock.
// A try that became its cohort's leader in vain leaves as a holder does whose budget is used up: a
// rank that has queued up behind it competes itself.
func (m *Mutex) try(k int) (got bool, s sight, err error) {
	t := m.t
	last, err := t.w.CompareAndSwapFlush(named(t.rank, k), null, m.home, m.at+m.tail)
	if err != nil || last != null {
		return false, sight{m.tail, last}, err
	}
	other, err := t.w.GetFlush(m.home, m.at+m.other)
	if err != nil {
		return false, sight{}, err
	}
	if other != null {
		return false, sight{m.other, other}, m.leave(k, 0)
	}
	if t.cfg.Shared {
		if busy, s, err := m.occupied(); busy || err != nil {
			return false, s, errors.Join(err, m.leave(k, 0))
		}
	}
	t.slots[k].budget = t.budget[m.own]
	return true, sight{}, nil
}

// retry takes the lock by tries, without queueing, until ctx ends.
func (m *Mutex) retry(ctx context.Context, k int, once func(k int) (bool, sight, error)) error {
	for try := 0; ; try++ {
		got, s, err := once(k)
		if got || err != nil {
			return err
		}
		if ctx.Err() != nil {
			m.t.unclaim(k)
			return fmt.Errorf("alock: lock %d: %w (%w)", m.id, lock.ErrDeadline, context.Cause(ctx))
		}
		if err := m.t.w.Backoff(m.home, m.at+s.disp, s.seen, try); err != nil {
			return err
		}
	}
}
