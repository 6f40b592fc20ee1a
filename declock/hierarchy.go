package declock

import (
	"errors"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// A Policy says whether a lock is handed over inside a node, and which of the node's ranks is
// next: section 5.3, and those that section 6.3 compares with.
type Policy uint8

const (
	// None has no local locks: each rank is in the queue of the memory node.
	None Policy = iota
	// TaskFair is first come, first served across nodes, by timestamps.
	TaskFair
	// PhaseFair is TaskFair, but all readers of a node enter together, and come first after
	// a writer.
	PhaseFair
	// RemotePrefer hands over to other nodes always.
	RemotePrefer
	// LocalPrefer hands over to other nodes when no rank of the node waits in the same mode.
	LocalPrefer
	// LocalBound hands over inside the node Config.Bound times in a row.
	LocalBound
)

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

// goAlone takes the lock without the local lock.
func (t *Table) goAlone(k *member) error {
	k.alone, k.shares = true, false
	return t.acquire(k)
}

// takes has this rank take the lock for the node, and lets the mutex go.
func (t *Table) takes(r *local, k *member) error {
	r.become(k.id, localBusy, 0)
	if err := t.shares(k); err != nil {
		return err
	}
	return t.unlockLocal(r)
}

// timed reports whether the policy looks at timestamps.
func (t *Table) timed() bool { return t.cfg.Policy == TaskFair || t.cfg.Policy == PhaseFair }

// close keeps readers from joining those that hold the lock.
func (t *Table) close(r *local) {
	if stateKind.Get(r.state) == localShared {
		r.state = stateKind.With(r.state, localClosed)
	}
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

// mayPass reports whether the policy hands the lock over to a rank of the node that has a stamp.
func (t *Table) mayPass(r *local, stamp int64) bool {
	switch t.cfg.Policy {
	case TaskFair, PhaseFair:
		return heldStamped.Get(r.held) == 0 || t.older(stamp, heldStamp.Get(r.held))
	case LocalPrefer:
		return true
	case LocalBound:
		return statePasses.Get(r.state) < int64(t.cfg.Bound)
	case None, RemotePrefer:
	}
	return false
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

// choose is the rank of the list that takes the lock again for the node: the first one, or,
// phase-fair after a writer, the first reader. A writer that is first, and older than the ranks of
// other nodes, is not asked: handOver gives it the lock.
func (t *Table) choose(r *local, after lock.Mode) (before, at, want int64, err error) {
	at = queueHead.Get(r.queue)
	if want, err = t.want(at); err != nil || t.cfg.Policy == TaskFair || after == lock.Shared {
		return 0, at, want, err
	}
	first := want
	for before, next := int64(0), at; next != 0; {
		w, err := t.want(next)
		if err != nil {
			return 0, 0, 0, err
		}
		if lock.Mode(wantMode.Get(w)) == lock.Shared {
			return before, next, w, nil
		}
		before, next = next, wantNext.Get(w)
	}
	return 0, at, first, nil
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

// tryLocal is TryLock: it joins readers, or tries to take the lock for the node.
func (t *Table) tryLocal(k *member) (got bool, v int64, err error) {
	if err := t.beat(); err != nil {
		return false, 0, err
	}
	k.alone, k.stamp = false, t.stamp()
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

// fails notes an error that leaves a local lock in an unknown state. A later Lock of the rank would
// wait for itself.
func (t *Table) fails(err error) error {
	if err != nil && !errors.Is(err, lock.ErrLeaseLost) {
		t.failed = err
	}
	return err
}
