package declock

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// This file is about ranks that die in a local lock while others of their node live. The paper
// has whole compute nodes fail. Here those that have the lock for the node, or take it or let
// it go, write the time into BEAT, a word of the local lock. If it stays the same for more than two
// leases, other nodes take the node's part in the lock for dead, and reset the lock. A rank of the
// node that waits for it, or for a turn at the mutex that does not move for as long, breaks the
// local lock: from then on the node's ranks go to the queue by themselves. A rank that
// dies breaks Config.Held local locks at most. One that is broken is never mended: no rank knows
// that a slow one will not write into it.

// BEAT is when a rank that shares in the node's part has last said that it lives. sure: it knew
// then that the node had the lock still. The ranks of a node have one clock.
var (
	beatSure = rma.Field{Name: "sure", Shift: 0, Bits: 1}
	beatTime = rma.Field{Name: "time", Shift: 1, Bits: 62}
)

// turn waits for this rank's turn at the mutex of a local lock. It reports false if the local
// lock is broken.
func (t *Table) turn(r *local) (bool, error) {
	if t.alive == nil {
		_, err := t.near.Await(r.rank, r.disp+localTurn, rma.Equal(r.ticket))
		return true, err
	}
	if ticketBroken.Get(r.ticket) != 0 {
		return false, nil
	}
	var last seen
	for {
		_, mine, err := t.near.AwaitUntil(r.rank, r.disp+localTurn, rma.Equal(r.ticket), t.until())
		if mine || err != nil {
			return mine, reachable(err)
		}
		if err := t.beat(); err != nil {
			return false, err
		}
		turn, ticket := t.near.Get(r.rank, r.disp+localTurn), t.near.Get(r.rank, r.disp+localTicket)
		if err := t.near.Flush(r.rank); err != nil {
			return false, reachable(err)
		}
		switch v := t.near.Value(turn); {
		case ticketBroken.Get(t.near.Value(ticket)) != 0:
			return false, nil
		case v == r.ticket:
			return true, nil
		case last.same(v, t.beaten) > 2*t.cfg.Lease:
			return false, t.breaks(r.rank, r.disp)
		}
	}
}

// breaks has all ranks of the node leave a local lock.
func (t *Table) breaks(rank, disp int) error {
	v, err := t.near.GetFlush(rank, disp+localTicket)
	for err == nil && ticketBroken.Get(v) == 0 {
		var found int64
		if found, err = t.near.CompareAndSwapFlush(ticketBroken.With(v, 1), v, rank, disp+localTicket); found == v {
			break
		}
		v = found
	}
	return reachable(err)
}

// shares has this rank share in what the node has of a lock, from its last beat on.
func (t *Table) shares(k *member) error {
	k.shares = true
	if t.alive == nil {
		return nil
	}
	return t.beatLocal(k, true)
}

// beatLocal says that this rank lives, as of its last beat, which shares in what its node has.
func (t *Table) beatLocal(k *member, sure bool) error {
	v := beatTime.With(0, t.beaten+1)
	if sure {
		v = beatSure.With(v, 1)
	}
	return t.near.PutFlush(v, t.localRank(k.id), t.localAt(k.id)+localBeat)
}

// fresh reports whether a BEAT shows that the node had the lock a lease ago or less: other nodes
// take it for dead a lease later at the earliest.
func (t *Table) fresh(beat int64) bool {
	return t.alive == nil || beatSure.Get(beat) != 0 && t.beaten+1 <= beatTime.Get(beat)+t.cfg.Lease
}

// renew says that this rank lives, then looks whether the node has the lock still: other nodes may
// have taken it for dead. They stop the lock before they look at BEAT.
func (t *Table) renew(k *member, held int64) (bool, error) {
	if err := t.beatLocal(k, false); err != nil {
		return false, err
	}
	v, err := t.locks.GetFlush(k.home, k.disp)
	if err != nil || heldHeld.Get(held) == 0 || v&t.header.state != t.header.epoch.With(0, heldEpoch.Get(held)) {
		k.unsure = true
		return false, err
	}
	k.unsure = false
	return true, t.beatLocal(k, true)
}

// silent reports whether the BEAT of a lock's local lock at a rank has been the same for two
// leases, since this rank has looked.
func (t *Table) silent(id, rank int) (bool, error) {
	v, err := t.near.GetFlush(rank, t.localAt(id)+localBeat)
	if unreachable(err) {
		v, err = -1, nil // as if it were the same: others of the node may have the lock still
	}
	q := &t.quiet[rank]
	if q.id != id {
		*q = quiet{id: id}
	}
	return q.same(v, t.c.Now()) > 2*t.cfg.Lease, err
}

// quiet is how long a local lock at a rank has been silent.
type quiet struct {
	id int
	seen
}

// nodeHas reports whether a node whose local lock is at a rank has a lock, and whether those that
// have it there have died.
func (t *Table) nodeHas(id, rank int) (held, dead bool, err error) {
	if t.near == nil {
		return false, false, nil
	}
	v, err := t.near.GetFlush(rank, t.localAt(id)+localHeld)
	if unreachable(err) { // others of the node may have it until then
		dead, err = t.silent(id, rank)
		return !dead, false, err
	}
	held = err == nil && heldHeld.Get(v) != 0 && heldLock.Get(v) == int64(id)
	if held {
		dead, err = t.silent(id, rank)
	}
	return held, dead, err
}

// leaveBroken is the release of a lock that the node has in a local lock that is broken. Other
// ranks reset the lock when they want it.
func (t *Table) leaveBroken(k *member) error {
	if err := t.locks.Flush(k.home); err != nil { // see Config.Window
		return err
	}
	if !t.late(k) {
		return nil
	}
	held, err := t.near.GetFlush(t.localRank(k.id), t.localAt(k.id)+localHeld)
	if err == nil {
		var mine bool
		if mine, err = t.renew(k, held); mine {
			return err
		}
	}
	if err = reachable(err); err == nil {
		err = fmt.Errorf("declock: lock %d: %w", k.id, lock.ErrLeaseLost)
	}
	return err
}

// inheritLocal breaks the local locks in whose lists a rank of the same number may stand that has
// died.
func (t *Table) inheritLocal() error {
	for slot := range t.cfg.Held {
		v, err := t.near.GetFlush(t.c.Rank(), t.wakeAt(slot))
		if err != nil {
			return err
		}
		if id := int(wakeLock.Get(v)); id < t.cfg.Locks {
			if err := t.breaks(t.localRank(id), t.localAt(id)); err != nil {
				return err
			}
		}
	}
	return nil
}
