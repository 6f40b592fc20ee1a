package declock

import "github.com/rmalock/rmalock/lock"

// This file is the right of Figure 10: how a rank of a node lets a lock go.

// releaseLocal is the right of Figure 10 (F10:19).
func (t *Table) releaseLocal(k *member) error {
	if k.alone {
		return t.release(k)
	}
	r, ok, err := t.lockLocal(k.id)
	if err != nil {
		return err
	}
	if !ok {
		return t.leaveBroken(k)
	}
	if stateHolders.Get(r.state) > 1 { // F10:21 to F10:23
		if err := t.locks.Flush(k.home); err != nil { // see Config.Window
			return err
		}
		r.add(-1)
		return t.unlockLocal(&r)
	}
	if k.mode == lock.Exclusive && heldDied.Get(r.held) != 0 {
		r.held = heldRepaired.With(heldDied.With(r.held, 0), 1)
	}
	if r.queue != 0 && !t.late(k) {
		handed, err := t.handOver(&r, k)
		if err != nil {
			return err
		}
		if handed {
			return t.unlockLocal(&r)
		}
	}
	return t.letGo(&r, k)
}

// handOver gives the lock to the first rank of the list (F10:24 F10:25 F10:33), if the policy and
// its mode allow it.
func (t *Table) handOver(r *local, k *member) (bool, error) {
	at := queueHead.Get(r.queue)
	w, err := t.want(at)
	if err != nil || lock.Mode(wantMode.Get(w)) != k.mode || !t.mayPass(r, wantStamp.Get(w)) {
		return false, err
	}
	if err := t.locks.Flush(k.home); err != nil { // see Config.Window; else nothing is pending
		return false, err
	}
	if err := t.remove(r, 0, at); err != nil {
		return false, err
	}
	r.become(k.id, holdsMode(k.mode), 1)
	r.passed()
	if err := t.wake(k.id, at, t.holds(r)); err != nil {
		return false, err
	}
	if k.mode == lock.Shared {
		return true, t.share(r, k)
	}
	return true, nil
}

// letGo releases the lock for the node (F10:26 to F10:31). A rank of the node that waits takes it
// again.
func (t *Table) letGo(r *local, k *member) error {
	k.epoch = heldEpoch.Get(r.held)
	k.died = heldDied.Get(r.held)|heldRepaired.Get(r.held) != 0
	if err := t.set(k, in); err != nil {
		return err
	}
	r.held = 0
	r.become(k.id, localBusy, 0)
	if err := t.unlockLocal(r); err != nil {
		return err
	}
	lost := t.release(k)
	next, ok, err := t.lockLocal(k.id)
	if err == nil && ok {
		err = t.nextLeads(&next, k)
	}
	if err != nil {
		return err
	}
	return lost
}

// nextLeads ends what a rank has done for the node: another one goes on, or the local lock is
// free.
func (t *Table) nextLeads(r *local, k *member) error {
	if r.queue == 0 {
		r.become(k.id, localFree, 0)
		return t.unlockLocal(r)
	}
	before, at, _, err := t.choose(r, k.mode)
	if err != nil {
		return err
	}
	if err := t.remove(r, before, at); err != nil {
		return err
	}
	if err := t.wake(k.id, at, wakeQueues); err != nil {
		return err
	}
	return t.unlockLocal(r)
}
