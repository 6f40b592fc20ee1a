package alock

import (
	"context"

	"github.com/rmalock/rmalock/rma"
)

// Lock takes the lock: Algorithm 2, Lock. With a context that can end it polls TryLock; see
// package lock.
func (m *Mutex) Lock(ctx context.Context) error {
	t := m.t
	k, err := t.claim(m.id)
	if err != nil {
		return err
	}
	if ctx.Done() != nil {
		return m.poll(ctx, k)
	}
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
func (m *Mutex) compete() error {
	other, err := m.yield()
	if err != nil || other == null {
		return err
	}
	_, _, err = m.t.w.AwaitEither(
		rma.Wait{Target: m.home, Disp: m.at + m.other, Cond: rma.Equal(null)},
		rma.Wait{Target: m.home, Disp: m.at + victim, Cond: rma.NotEqual(int64(m.own))}, rma.Forever)
	return err
}

// yield makes the rank's cohort the victim, and then looks at the other cohort's TAIL. The order
// is what Peterson's lock rests on: a remote rank has both in one doorbell.
func (m *Mutex) yield() (other int64, err error) {
	w := m.t.w
	if m.own == local {
		if err := w.PutFlush(int64(m.own), m.home, m.at+victim); err != nil {
			return 0, err
		}
		return w.GetFlush(m.home, m.at+m.other)
	}
	w.Put(int64(m.own), m.home, m.at+victim)
	w.Fence(m.home)
	look := w.Get(m.home, m.at+m.other)
	if err := w.Flush(m.home); err != nil {
		return 0, err
	}
	return w.Value(look), nil
}
