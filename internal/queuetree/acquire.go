package queuetree

import (
	"context"

	"github.com/rmalock/rmalock/rma"
)

// A Mutex is a handle on one lock of a tree.
type Mutex struct {
	t  *Tree
	id int
}

// Mutex is a handle on lock id. Handles on the same lock are interchangeable.
func (t *Tree) Mutex(id int) Mutex {
	t.Check(id)
	return Mutex{t, id}
}

// A visit is a tree, and the slot whose lock is acquired or released in it.
type visit struct {
	t *Tree
	s *slot
}

// Lock takes the lock: Listing 4 at every level from the leaf out, and Listing 7 at the
// root (L4:1 L7:1). With a context that can end it polls TryLock; see package lock.
//
// NEXT of a node that is not in use is null, and slot.status of a level without a grant
// is start: clearNext and Unlock see to it.
func (m *Mutex) Lock(ctx context.Context) error {
	t, s := m.t, &m.t.slots[0]
	if t.busy|t.lent == 0 && s.tailsOf == m.id { // the usual case: the only lock, and the last one
		t.busy, s.id = 1, m.id
	} else {
		var err error
		if s, err = t.claim(m.id); err != nil {
			return err
		}
	}
	v := visit{t, s}
	if ctx.Done() != nil {
		return v.poll(ctx)
	}
	level := t.Leaf
	if t.barging {
		st := s.left // likely, no rank was here since
		last, err := t.W.CompareAndSwapFlush(st|held, st, s.tails[level].rank, s.state)
		got := err == nil && last == st && v.noteState(st, false)
		if err == nil && last != st {
			got, err = v.lockLeafSlow(last)
		}
		if got || err != nil {
			return err
		}
		level--
	}
	for ; level >= 0; level-- { // L4:23
		tail := &s.tails[level]
		pred, err := t.W.FetchAndOpFlush(s.node, tail.rank, tail.disp, rma.Replace) // L4:5 L4:6 L7:5 L7:6
		if err != nil {
			return err
		}
		if pred == null { // L4:7 L7:8 L7:19
			continue
		}
		if got, err := v.awaitGrant(level, pred); got || err != nil {
			return err
		}
	}
	if t.gate == nil {
		return nil
	}
	return t.gate.Acquire(m.id) // L7:16 L7:21
}

// awaitGrant waits behind a node in the queue of a level, and reports whether the lock
// came with a grant.
func (v visit) awaitGrant(level int, pred node) (got bool, err error) {
	w, t, s := v.t.W, v.t, v.s
	// Before the predecessor sees this node: it will change STATUS.
	w.Put(wait, t.rank, s.statusDisp(level)) // L4:3 L7:3 L4:9 L7:10
	if err := w.Flush(t.rank); err != nil {
		return false, err
	}
	rank, next := t.nextWord(level, pred)
	w.Put(s.node, rank, next) // L4:8 L7:9
	if err := w.Flush(rank); err != nil {
		return false, err
	}
	st, err := w.Await(t.rank, s.statusDisp(level), rma.NotEqual(wait)) // L4:10 L4:11 L4:12 L7:11 L7:12 L7:13
	if err != nil || st == parent {                                     // L4:15 L7:14
		return false, err
	}
	s.top, s.status[level] = level, st
	return true, nil // L4:18
}
