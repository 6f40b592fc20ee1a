package declock

import (
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// reset brings the lock back to its initial state, in the three steps of section 4.4, unless
// another rank does. The caller holds nothing. Afterwards it is in no queue.
func (t *Table) reset(k *member) error {
	h, begin := &t.header, t.timeOfReset()
	v, err := t.locks.GetFlush(k.home, k.disp)
	for err == nil && v&h.state == h.epoch.With(0, k.epoch) {
		var mine bool
		if mine, v, err = t.stop(k, v); mine {
			return t.clear(k, false, begin)
		}
	}
	if err != nil {
		return err
	}
	return t.set(k, out)
}

// resetDead is reset after a death, unless the header is not v any more: then the rank goes on,
// and resetDead reports false.
func (t *Table) resetDead(k *member, v int64) (bool, error) {
	begin := t.timeOfReset()
	mine, _, err := t.stop(k, v)
	if mine {
		err = t.clear(k, true, begin)
	}
	return mine, err
}

// timeOfReset is the time, for Stats.ResetNs, where ranks may die, as a rank reads the clock there
// anyway; elsewhere 0.
func (t *Table) timeOfReset() int64 {
	if t.alive == nil {
		return 0
	}
	return t.c.Now()
}

// stop is step 1: it makes this rank's name the reset id of a header. If the header has changed,
// it returns what it is.
func (t *Table) stop(k *member, v int64) (bool, int64, error) {
	found, err := t.locks.CompareAndSwapFlush(t.header.rst.With(v, t.name), v, k.home, k.disp)
	return found == v && err == nil, found, err
}

// clear is steps 2 and 3, of the rank whose name is the reset id. The paper broadcasts a signal,
// which each client answers, idle ones too. Here the rank reads the parts of the others, and
// only those in the queue have anything to do: holders leave, and ranks that wait are told to
// begin again.
func (t *Table) clear(k *member, died bool, begin int64) error {
	t.count(func(s *Stats) *int64 { return &s.Resets })
	defer func() { t.cfg.Stats.ResetNs += t.timeOfReset() - begin }()
	// A node has the lock in a part, then in HELD, then in a part: a look at each in this
	// order misses none.
	rounds := []func(*member) (bool, bool, error){t.emptied, t.letGoBy, t.emptied}
	if t.near == nil {
		rounds = rounds[:1]
	}
	for _, emptied := range rounds { // step 2
		lost, mine, err := emptied(k)
		if err != nil {
			return err
		}
		if !mine {
			return t.set(k, out)
		}
		died = died || lost
	}
	if err := t.initialise(k, died); err != nil { // step 3
		return err
	}
	return t.set(k, out)
}

// emptied returns when no other rank has a part in the lock that is stopped, but dead ones. It
// reports whether one may have died as a writer that held the lock, and whether the reset is still
// the caller's: others may have taken it for dead.
//
// It looks at all ranks and tells all that wait, many in a round trip, before it waits for the
// first. A rank that had no part then meets the reset id if it comes later.
func (t *Table) emptied(k *member) (lost, mine bool, err error) {
	if t.rest == nil {
		t.rest = make([]int32, t.c.Size())
	}
	defer clear(t.rest)
	n := 0
	for first := 0; first < t.c.Size(); first += scanned {
		for rank := first; rank < min(first+scanned, t.c.Size()); rank++ {
			t.rest[n+rank-first] = int32(rank)
		}
		some := t.rest[n:][:min(scanned, t.c.Size()-first)]
		left, err := t.inLock(k, some, true)
		if err != nil {
			return false, false, err
		}
		n += left
	}
	if err := t.sent(); err != nil {
		return false, false, err
	}
	for first := 0; first < n; {
		some := t.rest[first:min(first+scanned, n)]
		left, err := t.inLock(k, some, false)
		if err != nil {
			return false, false, err
		}
		if first += len(some) - left; left == 0 {
			continue
		}
		copy(t.rest[first:], some[:left]) // those that are left, where some ends
		gone, mine, err := t.emptiedBy(k, int(t.rest[first]))
		if !mine || err != nil {
			return false, mine, err
		}
		lost = lost || gone
		first++
	}
	return lost, true, nil
}

// inLock reads the parts of up to scanned ranks, and puts those to the front that have one in a
// lock, or are gone. It returns how many. If tell, it issues a message to those that wait.
func (t *Table) inLock(k *member, ranks []int32, tell bool) (n int, err error) {
	read, err := t.read(ranks)
	if err != nil {
		return 0, err
	}
	for i, rank := range ranks {
		has := !read && int(rank) != t.c.Rank()
		for slot, v := range t.scan[i*t.cfg.Held:][:t.cfg.Held] {
			if partState.Get(v) == out || partLock.Get(v) != int64(k.id) {
				continue
			}
			has = true
			if tell && partState.Get(v) == waiting {
				t.ranks.Put(t.message(k, partGeneration.Get(v)), int(rank), t.resetAt(slot))
			}
		}
		if has {
			ranks[n] = rank
			n++
		}
	}
	clear(t.scan)
	return n, nil
}

// emptiedBy is emptied for one rank.
func (t *Table) emptiedBy(k *member, rank int) (lost, mine bool, err error) {
	t.ranks.GetBulk(t.parts, rank, t.partAt(0))
	if err := t.ranks.Flush(rank); err != nil {
		return true, true, reachable(err)
	}
	mine = true
	for slot, v := range t.parts {
		for mine && partState.Get(v) != out && partLock.Get(v) == int64(k.id) {
			writer := partMode.Get(v) == 0
			if partState.Get(v) == left {
				lost = lost || writer
				break
			}
			if partState.Get(v) == waiting {
				if err := t.ranks.PutFlush(t.message(k, partGeneration.Get(v)), rank, t.resetAt(slot)); err != nil {
					return true, true, reachable(err)
				}
			}
			next, changed, err := t.ranks.AwaitUntil(rank, t.partAt(slot), rma.NotEqual(v), t.until())
			if err != nil {
				return true, true, reachable(err)
			}
			if changed {
				v = next
				continue
			}
			var dead bool
			if dead, mine, err = t.deadInReset(k, rank, t.alive.Dead); err != nil {
				return false, false, err
			}
			if !dead {
				continue
			}
			// It may have left since the wait, and have nothing to do here: then it does not beat.
			now, err := t.ranks.GetFlush(rank, t.partAt(slot))
			if err != nil {
				return true, true, reachable(err)
			}
			if now == v {
				lost = lost || writer && partState.Get(v) == in
				break
			}
			v = now
		}
	}
	clear(t.parts)
	return lost, mine, nil
}

// letGoBy is emptied for local locks: it returns when no node has the lock. It looks at those of
// many ranks in a round trip.
func (t *Table) letGoBy(k *member) (lost, mine bool, err error) {
	var looks [scanned]rma.Result
	var held [scanned]bool
	for first := 0; first < t.c.Size(); first += scanned {
		end := min(first+scanned, t.c.Size())
		for rank := first; rank < end; rank++ {
			looks[rank-first] = t.near.Get(rank, t.localAt(k.id)+localHeld)
		}
		err := t.near.FlushAll()
		if reachable(err) != nil {
			return false, false, err
		}
		for i, look := range looks[:end-first] { // where one is gone, all are looked at again
			held[i] = err != nil || t.near.Value(look)&heldMask == heldOf(k.id)
		}
		for rank := first; rank < end; rank++ {
			if !held[rank-first] {
				continue
			}
			gone, mine, err := t.letGoAt(k, rank)
			if !mine || err != nil {
				return false, mine, err
			}
			lost = lost || gone
		}
	}
	return lost, true, nil
}

// heldMask is what heldOf says.
var heldMask = heldHeld.Mask() | heldLock.Mask()

// heldOf is what HELD has in heldMask when the node has a lock.
func heldOf(id int) int64 { return heldLock.With(heldHeld.Mask(), int64(id)) }

// letGoAt is letGoBy for the local lock at a rank.
func (t *Table) letGoAt(k *member, rank int) (lost, mine bool, err error) {
	at := t.localAt(k.id) + localHeld
	for mine = true; mine; {
		v, err := t.near.GetFlush(rank, at)
		if err == nil && v&heldMask != heldOf(k.id) {
			return false, true, nil
		}
		changed := false
		if err == nil {
			_, changed, err = t.near.AwaitUntil(rank, at, rma.NotEqual(v&heldMask).In(heldMask), t.until())
		} else if unreachable(err) { // ranks of its node may live, and have the lock for a lease
			err = nil
			t.c.Sleep(t.cfg.Lease)
		}
		if err != nil || changed {
			return false, true, err
		}
		silent := func(rank int) (bool, error) { return t.silent(k.id, rank) }
		var dead bool
		if dead, mine, err = t.deadInReset(k, rank, silent); dead || err != nil {
			return true, true, err
		}
	}
	return false, mine, nil
}

// deadInReset beats, and reports whether a rank is dead, or what its node has, and whether the reset
// is still the caller's.
func (t *Table) deadInReset(k *member, rank int, gone func(int) (bool, error)) (dead, mine bool, err error) {
	if err := t.beat(); err != nil {
		return false, false, err
	}
	v, err := t.locks.GetFlush(k.home, k.disp)
	if err != nil || !t.resetting(k, v) {
		return false, false, err
	}
	for later := rank + 1; later < t.c.Size() && err == nil; later++ { // so that each takes no two leases
		_, err = gone(later)
	}
	if err == nil {
		dead, err = gone(rank)
	}
	return dead, true, err
}

// initialise is step 3, unless another rank has taken this one for dead, and resets the lock
// itself. The paper writes the header, which a FetchAndOp may undo: a NIC's atomics and
// its writes are not atomic with each other.
func (t *Table) initialise(k *member, died bool) error {
	h := &t.header
	if t.late(k) {
		if err := t.beat(); err != nil {
			return err
		}
	}
	v, err := t.locks.GetFlush(k.home, k.disp)
	if err != nil || !t.resetting(k, v) {
		return err
	}
	clear(t.queue)
	t.locks.PutBulk(t.queue, k.home, t.entryAt(k, 0))
	if err := t.locks.Flush(k.home); err != nil {
		return err
	}
	for t.resetting(k, v) {
		found, err := t.locks.CompareAndSwapFlush(h.fresh(v, died), v, k.home, k.disp)
		if err != nil || found == v {
			return err
		}
		v = found
	}
	return nil
}

// resetting reports whether this rank is the one that resets the lock.
func (t *Table) resetting(k *member, v int64) bool {
	return v&t.header.state == t.header.rst.With(t.header.epoch.With(0, k.epoch), t.name)
}

// settle waits until a lock is not being reset. If the rank that does it dies, it goes on in
// its place: appendix B.
func (t *Table) settle(k *member) error {
	h := &t.header
	v, err := t.locks.GetFlush(k.home, k.disp)
	for err == nil && h.rst.Get(v) != 0 {
		was := v & h.state
		next, changed, failed := t.locks.AwaitUntil(k.home, k.disp, rma.NotEqual(was).In(h.state), t.until())
		if failed == nil && !changed {
			next, failed = t.takeOver(k)
		}
		v, err = next, failed
	}
	return err
}

// takeOver resets a lock in place of a rank that has died in it. It returns the header.
func (t *Table) takeOver(k *member) (int64, error) {
	h := &t.header
	if err := t.beat(); err != nil {
		return 0, err
	}
	v, err := t.locks.GetFlush(k.home, k.disp)
	if err != nil || h.rst.Get(v) == 0 {
		return v, err
	}
	if dead, err := t.gone(k, h.rst.Get(v)); !dead || err != nil {
		return v, err
	}
	k.epoch = h.epoch.Get(v)
	if err := t.set(k, in); err != nil {
		return v, err
	}
	begin := t.timeOfReset()
	mine, v, err := t.stop(k, v)
	if mine {
		err = t.clear(k, true, begin)
	} else if err == nil {
		err = t.set(k, out)
	}
	if err != nil {
		return v, err
	}
	return t.locks.GetFlush(k.home, k.disp)
}

// inherit resets the locks in which a rank of the same number had a part when it died. What that
// rank has issued has taken effect after two leases.
func (t *Table) inherit() error {
	if t.alive == nil || rma.Generation(t.c) == 0 {
		return nil
	}
	t.ranks.GetBulk(t.parts, t.c.Rank(), t.partAt(0))
	if err := t.ranks.Flush(t.c.Rank()); err != nil {
		return err
	}
	was := append([]int64(nil), t.parts...)
	clear(t.parts)
	if t.near != nil {
		if err := t.inheritLocal(); err != nil {
			return err
		}
	}
	t.c.Sleep(2 * t.cfg.Lease)
	for slot, v := range was {
		if partState.Get(v) == out {
			continue
		}
		id := int(partLock.Get(v))
		k := &member{id: id, home: t.Home(id), disp: t.headerAt(id), slot: slot, mode: lock.Mode(partMode.Get(v))}
		if err := t.bury(k); err != nil {
			return err
		}
	}
	return nil
}

// bury resets a lock in which a rank of this number has died.
func (t *Table) bury(k *member) error {
	if err := t.beat(); err != nil {
		return err
	}
	if err := t.set(k, left); err != nil {
		return err
	}
	v, err := t.locks.GetFlush(k.home, k.disp)
	if err != nil {
		return err
	}
	k.epoch = t.header.epoch.Get(v)
	begin := t.timeOfReset()
	for err == nil && v&t.header.state == t.header.epoch.With(0, k.epoch) {
		var mine bool
		if mine, v, err = t.stop(k, v); mine {
			return t.clear(k, true, begin)
		}
	}
	if err == nil {
		err = t.settle(k)
	}
	if err != nil {
		return err
	}
	return t.set(k, out)
}
