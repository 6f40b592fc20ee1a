package declock

import (
	"errors"
	"math/bits"

	"github.com/rmalock/rmalock/rma"
)

// This file has what ranks do to be taken for living, and to find the dead: section 4.6 and
// appendix B. The paper resets a lock when a rank has waited for 50 ms. Here a rank that waits
// looks at the header once a lease, and resets the lock only if the header stands still and a
// rank of the queue has died. So a long critical section costs no reset.

// beat says that this rank lives.
func (t *Table) beat() error {
	if t.alive == nil {
		return nil
	}
	before := t.beaten
	t.beaten = t.c.Now()
	err := t.alive.Beat()
	for b := t.busy; b != 0 && err == nil; b &= b - 1 {
		k := &t.all[bits.TrailingZeros64(b)]
		if before != 0 && t.beaten > before+t.cfg.Lease {
			k.unsure = true
		}
		if k.shares { // also while it waits for a reset: others of the node wait for it
			err = t.beatLocal(k, !k.unsure)
		}
	}
	return err
}

// until is when a wait ends, so that the rank beats again.
func (t *Table) until() int64 {
	if t.alive == nil {
		return rma.Forever
	}
	return t.beaten + t.cfg.Lease
}

// late reports whether others may have taken this rank for dead, with what it has of a lock, before
// an operation that it issues now takes effect. They do after two leases; an operation has one.
func (t *Table) late(k *member) bool {
	return t.alive != nil && (k.unsure || t.c.Now() > t.beaten+t.cfg.Lease)
}

// keeps reports whether the rank is in the queue still. If it is late, it beats, and looks at
// the header: a rank that takes it for dead has stopped the lock before it looked. If the lock
// is stopped, the rank has no part in it any more.
func (t *Table) keeps(k *member) (bool, error) {
	if !t.late(k) {
		return true, nil
	}
	stopped, _, err := t.stopped(k)
	return !stopped, err
}

// stopped beats and reports whether the lock is, or was, reset since the rank entered the queue,
// and its header. Then the rank has no part in the lock any more.
func (t *Table) stopped(k *member) (bool, int64, error) {
	if err := t.beat(); err != nil {
		return false, 0, err
	}
	v, err := t.locks.GetFlush(k.home, k.disp)
	switch {
	case err != nil:
	case v&t.header.state != t.header.epoch.With(0, k.epoch):
		return true, v, t.set(k, out)
	default:
		k.unsure = false
		if k.shares && t.alive != nil { // a wait ends after a lease, so that beat was unsure
			err = t.beatLocal(k, true)
		}
	}
	return false, v, err
}

// mend resets a lock whose header has stood still at v for a lease, if it waits for a rank that
// has died. It reports whether it has: then the caller has no part in the lock any more.
func (t *Table) mend(k *member, v int64) (bool, error) {
	if dead, err := t.orphaned(k); !dead || err != nil {
		return false, err
	}
	return t.resetDead(k, v)
}

// orphaned reports whether a lock waits for a rank that has died: all that have a part in it
// wait, or have died. So a rank that waits need not look further than to one that does not wait,
// and lives: that one looks for itself. A rank that was told, and has not seen it yet, does not
// wait. The one that tells it has a part until the message is there. So a look at the parts comes
// before one at the messages.
func (t *Table) orphaned(k *member) (bool, error) {
	for _, acts := range []func(*member, int) (bool, error){t.acts, t.told} {
		for i := range t.c.Size() {
			rank := (k.guess + i) % t.c.Size()
			if does, err := acts(k, rank); does || err != nil {
				k.guess = rank
				return false, err
			}
		}
	}
	return true, nil
}

// told reports whether a rank lives and has been given a lock for which it waited. It may have seen
// that by now.
func (t *Table) told(k *member, rank int) (is bool, err error) {
	defer clear(t.parts)
	t.ranks.GetBulk(t.parts, rank, t.partAt(0))
	if err := t.ranks.Flush(rank); err != nil {
		return false, reachable(err)
	}
	for slot, v := range t.parts {
		if partState.Get(v) == out || partLock.Get(v) != int64(k.id) {
			continue
		}
		is = partState.Get(v) == in && rank != t.c.Rank()
		if partState.Get(v) == waiting {
			m, err := t.ranks.GetFlush(rank, t.grantAt(slot))
			if err != nil {
				return false, reachable(err)
			}
			is = m&addressed == t.message(k, partGeneration.Get(v))
		}
	}
	if !is || rank == t.c.Rank() {
		return is, nil
	}
	dead, err := t.alive.Dead(rank)
	return !dead, err
}

// acts reports whether another rank has a part in a lock, does not wait, and lives; or ranks of a
// node do, whose local lock is at the rank.
func (t *Table) acts(k *member, rank int) (bool, error) {
	if rank != t.c.Rank() {
		state, err := t.part(rank, k.id)
		if err != nil {
			return false, err
		}
		if state == in {
			if dead, err := t.alive.Dead(rank); !dead || err != nil {
				return true, err
			}
		}
	}
	held, dead, err := t.nodeHas(k.id, rank)
	return held && !dead, err
}

// missing reports whether a lock waits for an entry that will not be written: a rank with a part
// in it has died, or no other has one.
func (t *Table) missing(k *member) (bool, error) {
	others := false
	for rank := range t.c.Size() {
		held, dead, err := t.nodeHas(k.id, rank)
		if dead || err != nil {
			return dead, err
		}
		others = others || held
		if rank == t.c.Rank() {
			continue
		}
		state, err := t.part(rank, k.id)
		if err != nil {
			return false, err
		}
		if state == out {
			continue
		}
		others = true
		if dead, err := t.alive.Dead(rank); dead || err != nil {
			return dead, err
		}
	}
	return !others, nil
}

// part is the state of another rank's part in a lock.
func (t *Table) part(rank, id int) (int64, error) {
	t.ranks.GetBulk(t.parts, rank, t.partAt(0))
	err := t.ranks.Flush(rank)
	if unreachable(err) {
		return out, nil
	}
	state := out
	for _, v := range t.parts {
		if partState.Get(v) != out && partLock.Get(v) == int64(id) {
			state = partState.Get(v)
		}
	}
	clear(t.parts)
	return state, err
}

// gone reports whether the rank whose name is the reset id has died: another rank resets the
// lock then.
func (t *Table) gone(k *member, name int64) (bool, error) {
	rank := int(name-1) / generations
	if rank == t.c.Rank() {
		return true, nil // it had this rank's number before
	}
	is, err := t.part(rank, k.id)
	if err != nil || is != in && is != waiting { // one that waits may reset the lock: see wait
		return err == nil, err // a successor has its number
	}
	return t.alive.Dead(rank)
}

// unreachable reports whether an error says that a rank's memory is gone, and the rank with it.
func unreachable(err error) bool { return errors.Is(err, rma.ErrPeer) }

// reachable is an error, but for one that says that a rank's memory is gone.
func reachable(err error) error {
	if unreachable(err) {
		return nil
	}
	return err
}
