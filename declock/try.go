package declock

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/lock"
)

// try enters the queue only if the rank holds the lock then. It returns the header that it found
// last.
func (t *Table) try(k *member) (got bool, v int64, err error) {
	h := &t.header
	if err := t.begin(k); err != nil {
		return false, 0, err
	}
	v, err = t.locks.GetFlush(k.home, k.disp)
	for err == nil && h.rst.Get(v) == 0 && h.open(v, k.mode) {
		var found int64
		found, err = t.locks.CompareAndSwapFlush(v+h.enter(k.mode), v, k.home, k.disp)
		if err == nil && found == v {
			k.epoch, k.died = h.epoch.Get(v), h.died.Get(v) != 0
			if got, err = t.keeps(k); got || err != nil {
				return got, v, err
			}
			return false, v, nil
		}
		v = found
	}
	if err != nil {
		return false, v, err
	}
	return false, v, t.set(k, out)
}

// poll tries until ctx ends: a rank in the middle of the queue cannot leave it.
func (t *Table) poll(ctx context.Context, k *member) error {
	last, since := int64(-1), int64(0)
	once := t.try
	if t.near != nil {
		once = t.tryLocal
	}
	for try := 0; ; try++ {
		got, v, err := once(k)
		if t.near != nil {
			err = t.fails(err)
		}
		switch {
		case got || err != nil:
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("declock: lock %d: %w (%w)", k.id, lock.ErrDeadline, context.Cause(ctx))
		case t.alive == nil:
		case v != last:
			last, since = v, t.beaten
		case t.beaten >= since+t.cfg.Lease:
			if err := t.help(k, v); err != nil {
				return err
			}
			last = -1
		}
		if err := t.backoff(k, v, try); err != nil {
			return err
		}
	}
}

// backoff pauses until another try may succeed: until the header changes, or the local lock that
// ranks of this node have in use.
func (t *Table) backoff(k *member, v int64, try int) error {
	if k.turn > 0 {
		return t.near.Backoff(t.localRank(k.id), t.localAt(k.id)+localTurn, k.turn, try)
	}
	return t.locks.Backoff(k.home, k.disp, v, try)
}

// help is mend for a rank that is not in the queue.
func (t *Table) help(k *member, v int64) error {
	if t.header.rst.Get(v) != 0 {
		_, err := t.takeOver(k)
		return err
	}
	k.epoch = t.header.epoch.Get(v)
	if err := t.set(k, in); err != nil {
		return err
	}
	if reset, err := t.mend(k, v); reset || err != nil {
		return err
	}
	return t.set(k, out)
}

// tryLocal is TryLock: it joins readers, or tries to take the lock for the node.
func (t *Table) tryLocal(k *member) (got bool, v int64, err error) {
	if err := t.beat(); err != nil {
		return false, 0, err
	}
	k.alone, k.stamp, k.turn = false, t.stamp(), 0
	r, ok, err := t.lockLocal(k.id)
	if err != nil {
		return false, 0, err
	}
	if !ok {
		k.alone = true
		return t.try(k)
	}
	if r.other(k.id) {
		k.alone = true
		if err := t.unlockLocal(&r); err != nil {
			return false, 0, err
		}
		return t.try(k)
	}
	if stateKind.Get(r.state) == localFree {
		return t.tryLead(&r, k)
	}
	joined, err := t.joins(&r, k)
	if err != nil {
		return false, 0, err
	}
	if err := t.unlockLocal(&r); err != nil {
		return false, 0, err
	}
	if joined {
		if got, err = t.confirm(k); got || err != nil {
			return got, 0, err
		}
	} else {
		k.turn = r.ticket + 1
	}
	v, err = t.locks.GetFlush(k.home, k.disp)
	return false, v, err
}

// tryLead tries to take the lock for the node.
func (t *Table) tryLead(r *local, k *member) (got bool, v int64, err error) {
	if err := t.takes(r, k); err != nil {
		return false, 0, err
	}
	got, v, err = t.try(k)
	if err != nil {
		return false, v, err
	}
	if got {
		if err := t.leads(k); err != nil {
			return false, v, err
		}
		got, err = t.confirm(k)
		return got, v, err
	}
	k.shares = false
	next, ok, err := t.lockLocal(k.id)
	if !ok || err != nil {
		return false, v, err
	}
	return false, v, t.nextLeads(&next, k)
}
