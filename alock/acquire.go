package alock

import (
	"context"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Lock takes the lock: Algorithm 2, Lock. With a context that can end it polls TryLock; see
// package lock.
func (m *Mutex) Lock(ctx context.Context) error {
	k, err := m.t.claim(m.id, lock.Exclusive)
	if err != nil {
		return err
	}
	if ctx.Done() != nil {
		return m.retry(ctx, k, m.try)
	}
	if err := m.take(k); err != nil || !m.t.cfg.Shared {
		return err
	}
	return m.drain()
}

// take takes the lock, with a slot that is claimed.
func (m *Mutex) take(k int) error {
	t := m.t
	// The swap that the text has (5.1); Algorithm 3 makes it of CompareAndSwaps, as does
	// rma.Emulate for transports without one.
	pred, err := t.w.FetchAndOpFlush(named(t.rank, k), m.home, m.at+m.tail, rma.Replace)
	if err != nil {
		return err
	}
	left := int64(0)
	if pred != null {
		if left, err = m.follow(k, pred); err != nil {
			return err
		}
	}
	if left == 0 { // no predecessor, or pReacquire
		if err := m.compete(); err != nil {
			return err
		}
		left = t.budget[m.own]
	}
	t.slots[k].budget = left
	return nil
}

// follow is the rest of qLock for a rank with a predecessor: it links its descriptor behind the
// predecessor's, waits until the lock is passed, and returns the budget that came with it.
func (m *Mutex) follow(k int, pred int64) (left int64, err error) {
	w, me, own := m.t.w, m.t.rank, k*lineWords+m.descriptor
	// Before the predecessor knows this descriptor: it will write BUDGET.
	w.Put(waiting, me, own+budget)
	if err := w.Flush(me); err != nil {
		return 0, err
	}
	rank, line := placed(pred)
	w.Put(named(me, k), rank, line+m.descriptor+next)
	if err := w.Flush(rank); err != nil {
		return 0, err
	}
	return w.Await(me, own+budget, rma.AtLeast(0))
}

// compete is the modified Peterson lock, Algorithm 4: the leader of a cohort yields to the
// other one, and waits until it is gone or yields itself. Its own cohort's flag is TAIL, which it
// has changed and flushed before.
//
// A leader that finds the other flag down is in, as section 5.1 counts ("a single rCAS [...]
// followed by a single rRead"); Algorithm 4 writes VICTIM in any case. The other cohort's leader, who
// raises its flag later, finds this one's, makes its own cohort the victim and waits.
func (m *Mutex) compete() error {
	w := m.t.w
	other, err := w.GetFlush(m.home, m.at+m.other)
	if err != nil || other == null {
		return err
	}
	// Flushed before the rank looks at the other flag again: what Peterson's lock rests on.
	if err := w.PutFlush(int64(m.own), m.home, m.at+victim); err != nil {
		return err
	}
	_, _, err = w.AwaitEither(
		rma.Wait{Target: m.home, Disp: m.at + m.other, Cond: rma.Equal(null)},
		rma.Wait{Target: m.home, Disp: m.at + victim, Cond: rma.NotEqual(int64(m.own))}, rma.Forever)
	return err
}
