package alock

import (
	"context"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// lock is Algorithm 2, Lock. With a context that can end it polls tryLock.
func (p *place) lock(ctx context.Context) error {
	k, err := p.t.claim(p.id, lock.Exclusive)
	if err != nil {
		return err
	}
	if ctx.Done() != nil {
		return p.retry(ctx, k, p.try)
	}
	if err := p.take(k); err != nil || !p.t.cfg.Shared {
		return err
	}
	return p.drain()
}

// take takes the lock, with a slot that is claimed.
func (p *place) take(k int) error {
	t := p.t
	// The swap that the text has (5.1); Algorithm 3 makes it of CompareAndSwaps, as does
	// rma.Emulate for transports without one.
	pred, err := p.ownTail.Swap(named(t.rank, k))
	if err != nil {
		return err
	}
	left := int64(0)
	if pred != null {
		if left, err = p.follow(k, pred); err != nil {
			return err
		}
	}
	if left == 0 { // no predecessor, or pReacquire
		other, err := p.otherTail.Get()
		if err == nil && other != null {
			err = p.compete()
		}
		if err != nil {
			return err
		}
		left = t.budget[p.own]
	}
	t.slots[k].budget = left
	return nil
}

// follow is the rest of qLock for a rank with a predecessor: it links its descriptor behind the
// predecessor's, waits until the lock is passed, and returns the budget that came with it.
func (p *place) follow(k int, pred int64) (left int64, err error) {
	w, me, own := p.t.w, p.t.rank, k*lineWords+p.descriptor
	// Before the predecessor knows this descriptor: it will write BUDGET.
	w.Put(waiting, me, own+budget)
	if err := w.Flush(me); err != nil {
		return 0, err
	}
	rank, line := placed(pred)
	w.Put(named(me, k), rank, line+p.descriptor+next)
	if err := w.Flush(rank); err != nil {
		return 0, err
	}
	return w.Await(me, own+budget, rma.AtLeast(0))
}

// compete is the modified Peterson lock, Algorithm 4, for the leader of a cohort that finds the
// other one's flag up: it yields to that cohort, and waits until it is gone or yields itself. Its own
// cohort's flag is TAIL, which it has changed and flushed before.
//
// A leader that finds the other flag down is in, as section 5.1 counts ("a single rCAS [...]
// followed by a single rRead"); Algorithm 4 writes VICTIM in any case. The other cohort's leader, which
// raises its flag later, finds this one's, makes its own cohort the victim and waits.
func (p *place) compete() error {
	w := p.t.w
	// Flushed before the rank looks at the other flag again: what Peterson's lock rests on.
	if err := w.PutFlush(int64(p.own), p.home, p.at+victim); err != nil {
		return err
	}
	_, _, err := w.AwaitEither(
		rma.Wait{Target: p.home, Disp: p.at + p.other, Cond: rma.Equal(null)},
		rma.Wait{Target: p.home, Disp: p.at + victim, Cond: rma.NotEqual(int64(p.own))}, rma.Forever)
	return err
}
