package dmcs

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// A Mutex is a handle on one lock of a table.
type Mutex struct {
	t          *Table
	id         int
	home, tail int // where TAIL is
}

var _ lock.Mutex = (*Mutex)(nil)

// Lock takes the lock: Listing 2 (L2:1). With a context that can end it polls TryLock; see
// package lock.
//
// NEXT of a queue node that is not in use is null, so that nothing precedes the swap:
// handOver sees to it.
func (m *Mutex) Lock(ctx context.Context) error {
	t := m.t
	k := 0
	if t.busy == 0 { // the usual case: it is the only one
		t.busy, t.held[0] = 1, m.id
	} else {
		var err error
		if k, err = t.claim(m.id); err != nil {
			return err
		}
	}
	if ctx.Done() != nil {
		return m.poll(ctx, k)
	}
	pred, err := t.w.FetchAndOpFlush(node(t.rank, k), m.home, m.tail, rma.Replace) // L2:6 L2:7
	if err != nil || pred == null {                                                // L2:8
		return err
	}
	return t.enqueue(k, pred)
}

// enqueue links queue node k behind its predecessor and waits.
func (t *Table) enqueue(k int, pred int64) error {
	w, me, mine := t.w, t.rank, k*nodeWords
	// Before the predecessor sees this node: it will clear WAIT.
	w.Put(1, me, mine+wait) // L2:4 L2:11
	if err := w.Flush(me); err != nil {
		return err
	}
	rank, his := words(pred)
	w.Put(node(me, k), rank, his+next) // L2:10
	if err := w.Flush(rank); err != nil {
		return err
	}
	_, err := w.Await(me, mine+wait, rma.Equal(0)) // L2:12 L2:13 L2:14
	return err
}

// Unlock hands the lock to the successor, or leaves it free: Listing 3 (L3:1).
func (m *Mutex) Unlock() error {
	t := m.t
	k := t.find(m.id)
	if k < 0 {
		panic("dmcs: unlock of unlocked lock")
	}
	succ := t.w.Peek(k*nodeWords + next) // L3:2
	if succ == null {                    // L3:3
		me := node(t.rank, k)
		last, err := t.w.CompareAndSwapFlush(null, me, m.home, m.tail) // L3:5 L3:6
		if err != nil || last == me {                                  // L3:7
			t.unclaim(k)
			return err // L3:8
		}
	}
	err := t.handOver(k, succ)
	t.unclaim(k)
	return err
}

// handOver gives the lock to the successor of queue node k, which is known or has swapped
// TAIL and will link itself.
func (t *Table) handOver(k int, succ int64) error {
	w, me, mine := t.w, t.rank, k*nodeWords
	if succ == null {
		var err error
		if succ, err = w.Await(me, mine+next, rma.NotEqual(null)); err != nil { // L3:9 L3:10 L3:11
			return err
		}
	}
	rank, his := words(succ)
	w.Put(0, rank, his+wait) // L3:14
	if err := w.Flush(rank); err != nil {
		return err
	}
	// For the next time: no rank writes NEXT until a swap of TAIL shows the node again.
	// Flushed here, as that swap would not order it.
	w.Put(null, me, mine+next) // L2:3
	w.HandedOver(rank)
	return w.Flush(me)
}

// TryLock takes the lock if its queue is empty.
func (m *Mutex) TryLock() (bool, error) {
	k, err := m.t.claim(m.id)
	if err != nil {
		return false, err
	}
	got, _, err := m.try(k)
	if !got {
		m.t.unclaim(k)
	}
	return got, err
}

// try takes a free lock without entering the queue. Otherwise last is what TAIL holds.
func (m *Mutex) try(k int) (got bool, last int64, err error) {
	last, err = m.t.w.CompareAndSwapFlush(node(m.t.rank, k), null, m.home, m.tail)
	return err == nil && last == null, last, err
}

// poll takes the lock without queueing, until ctx ends.
func (m *Mutex) poll(ctx context.Context, k int) error {
	for try := 0; ; try++ {
		got, last, err := m.try(k)
		if got || err != nil {
			return err
		}
		if ctx.Err() != nil {
			m.t.unclaim(k)
			return fmt.Errorf("dmcs: lock %d: %w (%w)", m.id, lock.ErrDeadline, context.Cause(ctx))
		}
		if err := m.t.w.Backoff(m.home, m.tail, last, try); err != nil {
			return err
		}
	}
}
