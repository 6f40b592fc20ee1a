package alock

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
)

// tryLock takes the lock if it is free. The paper has none.
func (p *place) tryLock() (bool, error) {
	k, err := p.t.claim(p.id, lock.Exclusive)
	if err != nil {
		return false, err
	}
	got, _, err := p.try(k)
	if !got {
		p.t.unclaim(k)
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
func (p *place) try(k int) (got bool, s sight, err error) {
	t := p.t
	last, err := p.ownTail.CompareAndSwap(named(t.rank, k), null)
	if err != nil || last != null {
		return false, sight{p.tail, last}, err
	}
	other, err := p.otherTail.Get()
	if err != nil {
		return false, sight{}, err
	}
	if other != null {
		return false, sight{p.other, other}, p.leave(k, 0)
	}
	if t.cfg.Shared {
		if busy, s, err := p.occupied(); busy || err != nil {
			return false, s, errors.Join(err, p.leave(k, 0))
		}
	}
	t.slots[k].budget = t.budget[p.own]
	return true, sight{}, nil
}

// retry takes the lock by tries, without queueing, until ctx ends.
func (p *place) retry(ctx context.Context, k int, once func(k int) (bool, sight, error)) error {
	for try := 0; ; try++ {
		got, s, err := once(k)
		if got || err != nil {
			return err
		}
		if ctx.Err() != nil {
			p.t.unclaim(k)
			return fmt.Errorf("alock: lock %d: %w (%w)", p.id, lock.ErrDeadline, context.Cause(ctx))
		}
		if err := p.t.w.Backoff(p.home, p.at+s.disp, s.seen, try); err != nil {
			return err
		}
	}
}
