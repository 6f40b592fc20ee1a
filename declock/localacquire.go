package declock

import (
	"errors"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// This file is the left of Figure 10: how a rank of a node takes a lock.

// acquireInNode takes the lock, and has it for a lease from its return on.
func (t *Table) acquireInNode(k *member) error {
	for {
		if err := t.fails(t.acquireLocal(k)); err != nil {
			return err
		}
		if got, err := t.confirm(k); got || err != nil {
			return err
		}
	}
}

// acquireLocal is the left of Figure 10 (F10:1).
func (t *Table) acquireLocal(k *member) error {
	if err := t.beat(); err != nil {
		return err
	}
	k.alone, k.stamp = false, t.stamp()
	r, ok, err := t.lockLocal(k.id)
	if err != nil {
		return err
	}
	if !ok {
		return t.goAlone(k)
	}
	switch {
	case r.other(k.id):
		if err := t.unlockLocal(&r); err != nil {
			return err
		}
		return t.goAlone(k)
	case stateKind.Get(r.state) == localFree:
		if err := t.takes(&r, k); err != nil {
			return err
		}
		return t.lead(k)
	}
	joined, err := t.joins(&r, k) // F10:4 F10:5
	if err != nil {
		return err
	}
	if joined {
		return t.unlockLocal(&r)
	}
	if k.mode == lock.Exclusive && r.is(k.id, localShared) || k.mode == lock.Shared { // F10:7 F10:8
		t.close(&r)
	}
	if err := t.append(&r, k); err != nil { // F10:9
		return err
	}
	fetch := t.timed() && heldHeld.Get(r.held) != 0 && heldStamped.Get(r.held) == 0
	if err := t.unlockLocal(&r); err != nil {
		return err
	}
	if fetch {
		if err := t.prefetch(k, r.is(k.id, localExclusive)); err != nil {
			return err
		}
	}
	return t.sleep(k)
}

// takes has this rank take the lock for the node, and lets the mutex go.
func (t *Table) takes(r *local, k *member) error {
	r.become(k.id, localBusy, 0)
	if err := t.shares(k); err != nil {
		return err
	}
	return t.unlockLocal(r)
}

// goAlone takes the lock without the local lock.
func (t *Table) goAlone(k *member) error {
	k.alone, k.shares = true, false
	return t.acquire(k)
}

// joins lets a reader join those of its node that hold the lock, under each policy: section 6.3's
// others than by timestamps are phase-fair between readers and writers. The paper's readers
// always may; then a writer of another node waits for ever if readers keep coming, as none of
// them waits, and none prefetches its stamp.
func (t *Table) joins(r *local, k *member) (bool, error) {
	if k.mode != lock.Shared || !r.is(k.id, localShared) || t.timed() && !t.mayPass(r, k.stamp) {
		return false, nil
	}
	if t.cfg.Policy != LocalPrefer && statePasses.Get(r.state) >= int64(4*len(t.c.Node().Ranks)) {
		return false, nil
	}
	if k.unsure || !t.fresh(r.beat) {
		if current, err := t.renew(k, r.held); !current || err != nil {
			return false, err
		}
	}
	r.add(1)
	r.passed()
	k.died = heldDied.Get(r.held) != 0
	return true, t.shares(k)
}

// close keeps readers from joining those that hold the lock.
func (t *Table) close(r *local) {
	if stateKind.Get(r.state) == localShared {
		r.state = stateKind.With(r.state, localClosed)
	}
}

// sleep waits in the list of a local lock (F10:10).
func (t *Table) sleep(k *member) error {
	me, at := t.c.Rank(), t.wakeAt(k.slot)
	still := wakeLock.With(asleep, int64(k.id))
	for {
		v, woken, err := t.near.AwaitUntil(me, at, rma.NotEqual(still), t.until())
		if err == nil && (!woken || t.alive != nil) {
			err = t.beat()
		}
		switch {
		case err != nil:
			return err
		case !woken:
			if quiet, err := t.silent(k.id, t.localRank(k.id)); !quiet || err != nil {
				if err != nil {
					return err
				}
				continue
			}
			if err := t.breaks(t.localRank(k.id), t.localAt(k.id)); err != nil {
				return err
			}
			return t.goAlone(k)
		case wakeLock.Get(v) != int64(k.id): // of a rank that was taken for dead
			if _, err := t.near.CompareAndSwapFlush(still, v, me, at); err != nil {
				return err
			}
		case wakeHow.Get(v) == wakeQueues: // F10:12
			if err := t.shares(k); err != nil {
				return err
			}
			return t.lead(k)
		default:
			k.died = wakeHow.Get(v) == wakeTold
			return t.woken(k)
		}
	}
}

// woken is for a rank that is given the lock in its node.
func (t *Table) woken(k *member) error {
	if t.alive == nil {
		return nil
	}
	beat, err := t.near.GetFlush(t.localRank(k.id), t.localAt(k.id)+localBeat)
	if err != nil {
		return err
	}
	if !t.fresh(beat) {
		k.unsure = true
		return nil
	}
	return t.shares(k)
}

// lead takes the lock for the node (F10:12 to F10:18).
func (t *Table) lead(k *member) error {
	if err := t.acquire(k); err != nil {
		return err
	}
	return t.leads(k)
}

// leads notes that the node has the lock, and shares it.
func (t *Table) leads(k *member) error {
	r, ok, err := t.lockLocal(k.id)
	if err != nil {
		return err
	}
	if !ok { // it has the lock by itself
		k.alone, k.shares = true, false
		return nil
	}
	if err := t.shares(k); err != nil {
		return err
	}
	r.state &^= statePasses.Mask()
	r.become(k.id, holdsMode(k.mode), 1)
	r.held = heldEpoch.With(heldHeld.With(heldLock.With(0, int64(k.id)), 1), k.epoch)
	if k.died {
		r.held = heldDied.With(r.held, 1)
	}
	if k.remote.known {
		r.held = heldStamp.With(heldStamped.With(r.held, 1), k.remote.stamp)
	}
	if k.mode == lock.Shared {
		if err := t.share(&r, k); err != nil {
			return err
		}
	}
	if err := t.unlockLocal(&r); err != nil {
		return err
	}
	return t.set(k, out) // HELD says it from here on
}

// share lets readers in that wait (F10:16 F10:17): task-fair up to the first writer, or the
// first reader that is younger than a rank of another node; else all.
func (t *Table) share(r *local, k *member) error {
	before := int64(0)
	for at := queueHead.Get(r.queue); at != 0; {
		w, err := t.want(at)
		if err != nil {
			return err
		}
		next := wantNext.Get(w)
		reader := lock.Mode(wantMode.Get(w)) == lock.Shared
		if t.cfg.Policy == TaskFair && (!reader || !t.mayPass(r, wantStamp.Get(w))) {
			break
		}
		if !reader {
			before, at = at, next
			continue
		}
		if err := t.remove(r, before, at); err != nil {
			return err
		}
		r.add(1)
		if err := t.wake(k.id, at, t.holds(r)); err != nil {
			return err
		}
		at = next
	}
	if r.queue != 0 {
		t.close(r)
	}
	return nil
}

// holds is how a rank is woken that holds the lock.
func (t *Table) holds(r *local) int64 {
	if heldDied.Get(r.held) != 0 {
		return wakeTold
	}
	return wakeHolds
}

// confirm reports whether a rank has the lock for a lease from now on: if it is late, other nodes
// may have taken this one for dead.
func (t *Table) confirm(k *member) (bool, error) {
	if k.alone {
		return t.keeps(k)
	}
	if !t.late(k) {
		return true, nil
	}
	k.unsure = true
	if err := t.beat(); err != nil {
		return false, err
	}
	held, err := t.near.GetFlush(t.localRank(k.id), t.localAt(k.id)+localHeld)
	if err != nil {
		return false, err
	}
	if current, err := t.renew(k, held); current || err != nil {
		return current, err
	}
	if err := t.releaseLocal(k); err != nil && !errors.Is(err, lock.ErrLeaseLost) {
		return false, err
	}
	k.unsure, k.shares = false, false
	return false, nil
}
