package declock

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Promise says that a rank enters in the order of the queue: each other rank passes it once at
// most, and a reader is passed by each once as a writer; readers between two writers pass each
// other. A reset ends the order. So there is no bound where queues or versions overflow, or ranks
// may die.
func (t *Table) Promise(mode lock.Mode) lock.Promise {
	others := t.c.Size() - 1
	p := lock.Promise{Bypass: lock.Unbounded, Acquire: 4 + 4*others, Release: 3 + others*(others+7)}
	if t.alive != nil {
		p.Lease, p.Recovery = t.cfg.Lease, 12*t.cfg.Lease
	}
	if t.near != nil {
		p.Recovery = 0 // it depends on how many ranks of a node wait
	}
	if t.near != nil || t.alive != nil || t.cfg.Capacity < t.c.Size() || t.header.laps < 1<<15-1 {
		p.Acquire, p.Release = lock.Unbounded, lock.Unbounded
		return p
	}
	if mode == lock.Exclusive {
		p.Bypass = others
	} else {
		writers := func(_ int, mode lock.Mode) bool { return mode == lock.Exclusive }
		p.Bounds = []lock.Bound{{After: 1, Of: writers, Most: others}}
	}
	return p
}

// Idle checks that the rank has no part in a lock, and that the queues of its locks are empty:
// those in its memory, or those of all memory nodes. What a node has of a lock in a local lock that
// is broken stays in the queue until another rank wants the lock.
func (t *Table) Idle() error {
	if t.busy != 0 {
		return fmt.Errorf("declock: rank %d has a part in locks, in slots %b", t.c.Rank(), t.busy)
	}
	for slot := range t.cfg.Held {
		if v := t.ranks.Peek(t.partAt(slot)); v != 0 {
			return fmt.Errorf("declock: part %d of rank %d is %d, want 0", slot, t.c.Rank(), v)
		}
	}
	first, end := t.c.Rank(), t.c.Rank()+1
	if t.Hosts() == rma.MemoryNodes {
		first, end = 0, t.locks.Size()
	}
	h := &t.header
	for host := first; host < end; host++ {
		for disp := range t.perHost() {
			v, err := t.locks.GetFlush(host, t.cfg.At+disp)
			if err != nil {
				return err
			}
			if h.qsize.Get(v) != 0 || h.wcnt.Get(v) != 0 || h.rst.Get(v) != 0 {
				if left, err := t.leftBroken(t.lockAt(host, disp)); left || err != nil {
					return err
				}
				spec := t.locks.Spec()
				word := spec.Word(t.cfg.At + disp)
				return fmt.Errorf("declock: %s of host %d is %s, want an empty queue", spec.WordName(t.cfg.At+disp), host, word.Format(v))
			}
		}
	}
	return nil
}

// lockAt is the lock whose header is at a place of a host.
func (t *Table) lockAt(host, disp int) int {
	n := t.locks.Size()
	return disp*n + (host-t.cfg.Home%n+n)%n
}

// leftBroken reports whether some node has a lock in a local lock that is broken.
func (t *Table) leftBroken(id int) (bool, error) {
	if t.near == nil {
		return false, nil
	}
	for rank := range t.c.Size() {
		held, ticket := t.near.Get(rank, t.localAt(id)+localHeld), t.near.Get(rank, t.localAt(id)+localTicket)
		if err := t.near.Flush(rank); err != nil {
			return false, reachable(err)
		}
		v := t.near.Value(held)
		if heldHeld.Get(v) != 0 && heldLock.Get(v) == int64(id) && ticketBroken.Get(t.near.Value(ticket)) != 0 {
			return true, nil
		}
	}
	return false, nil
}
