package alock

import (
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// unlock passes the lock to the successor in its cohort, or leaves it free: Algorithm 2, Unlock.
func (p *place) unlock() error {
	t := p.t
	k := t.claimed(p.id, lock.Exclusive)
	err := p.leave(k, t.slots[k].budget-1)
	t.unclaim(k)
	return err
}

// leave is qUnlock, Algorithm 3: it takes the descriptor off the cohort's queue, or passes left to
// the successor. Algorithm 3 tries the CompareAndSwap in any case; here a rank that knows its
// successor makes none.
func (p *place) leave(k int, left int64) error {
	w, me, own := p.t.w, p.t.rank, k*lineWords+p.descriptor
	succ := w.Peek(own + next)
	if succ == null {
		d := named(me, k)
		last, err := p.ownTail.CompareAndSwap(null, d)
		if err != nil || last == d {
			return err
		}
		if succ, err = w.Await(me, own+next, rma.NotEqual(null)); err != nil {
			return err
		}
	}
	rank, line := placed(succ)
	w.Put(left, rank, line+p.descriptor+budget)
	if err := w.Flush(rank); err != nil {
		return err
	}
	// For the next time: no rank writes NEXT until a swap of TAIL shows the descriptor again.
	// Flushed here, as that swap would not order it.
	w.Put(null, me, own+next)
	w.HandedOver(rank)
	return w.Flush(me)
}
