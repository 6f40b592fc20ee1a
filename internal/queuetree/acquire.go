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
	t.check(id)
	return Mutex{t, id}
}

// Lock takes the lock: Listing 4 at every level from the leaf out. NEXT of a node that is
// not in use is null (line 2): release and back see to it. With a context that can end it
// polls TryLock; see package lock.
func (m *Mutex) Lock(ctx context.Context) error {
	t, id := m.t, m.id
	k, s := 0, &t.slots[0]
	if t.busy|t.lent == 0 && s.atID == id { // the usual case: it is the only one, and was the last
		t.busy, s.id = 1, id
	} else {
		var err error
		if k, err = t.take(id); err != nil {
			return err
		}
		s = &t.slots[k]
	}
	if ctx.Done() != nil {
		return t.poll(ctx, k)
	}
	mine, i := t.node(k), t.Leaf
	if t.plain { // the loop below with one level
		pred, err := t.W.FetchAndOpFlush(mine, s.at[0].host, s.at[0].disp, rma.Replace) // lines 5, 6
		if err != nil || pred == null {
			return err
		}
		_, err = t.queue(0, k, pred)
		return err
	}
	if t.crowd {
		st, tries := s.left, 2 // nobody was here since, likely
		if i == 0 {            // barge's first try, without the call
			at := &s.at[0]
			last, err := t.W.CompareAndSwapFlush(st|held, st, at.host, t.states+at.disp-t.tails[0])
			if last == st || err != nil {
				s.status[0], s.queued = st|held, false
				return err
			}
			st, tries = last, 1
		}
		got, err := t.barge(k, st, tries)
		if got || err != nil {
			return err
		}
		i--
	}
	for ; i >= 0; i-- {
		at := &s.at[i]
		pred, err := t.W.FetchAndOpFlush(mine, at.host, at.disp, rma.Replace) // lines 5, 6
		if err != nil {
			return err
		}
		if pred == null { // STATUS is start: line 22
			continue
		}
		got, err := t.queue(i, k, pred)
		if got || err != nil {
			return err
		}
	}
	if t.gate == nil {
		return nil
	}
	return t.gate.Acquire(id) // Listing 7, lines 14 to 22
}

// queue waits behind a node in the queue of a level, and reports whether the lock came
// with a grant.
func (t *Tree) queue(i, k int, pred node) (got bool, err error) {
	w, s := t.W, &t.slots[k]
	// Before line 8 shows us to the predecessor, who will change it.
	w.Put(wait, t.rank, t.stat(i, k)) // line 3
	if err := w.Flush(t.rank); err != nil {
		return false, err
	}
	r, his := t.place(pred)
	w.Put(t.node(k), r, his+2*i) // line 8
	if err := w.Flush(r); err != nil {
		return false, err
	}
	st, err := w.Await(t.rank, t.stat(i, k), rma.NotEqual(wait)) // lines 9 to 12
	if err != nil || st == parent {                              // lines 15, 23
		return false, err
	}
	s.top, s.status[i] = i, st
	return true, nil // line 18
}
