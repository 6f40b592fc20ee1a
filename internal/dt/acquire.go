package dt

import "github.com/rmalock/rmalock/rma"

// Acquire takes a lock with node k: Listing 4 at every level from the leaf out.
func (t *Tree) Acquire(k int) error {
	id := t.slots[k].id
	i := t.Leaf
	if t.crowd {
		got, err := t.barge(k, id)
		if got || err != nil {
			return err
		}
		i--
	}
	for ; i >= 0; i-- {
		got, err := t.enter(i, k, id)
		if got || err != nil {
			return err
		}
	}
	if t.beyond == nil {
		return nil
	}
	return t.beyond.Take(id) // Listing 7, lines 14 to 22
}

// enter enters the queue of a level, and reports whether the lock came with a grant.
// NEXT of a node that is not in use is null (line 2): release and back see to it.
func (t *Tree) enter(i, k, id int) (got bool, err error) {
	w, s := t.W, &t.slots[k]
	s.top = i
	host, tail := t.tail(i, id)
	pred, err := w.FetchAndOpFlush(t.node(k), host, tail, rma.Replace) // lines 5, 6
	if err != nil {
		return false, err
	}
	s.status[i] = granted(0, null) // line 22: ACQUIRE_START
	if pred == null {
		return false, nil
	}
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
	s.status[i] = st
	return true, nil // line 18
}

// Try takes a lock with node k if nobody has or wants it; otherwise it leaves the
// levels again that it has entered.
func (t *Tree) Try(k int) (bool, error) {
	id, s := t.slots[k].id, &t.slots[k]
	for i := t.Leaf; i >= 0; i-- {
		host, tail := t.tail(i, id)
		mine := t.node(k)
		if i == t.Leaf && t.crowd {
			tail, mine, s.queued = t.state(id), held, false
		}
		last, err := t.W.CompareAndSwapFlush(mine, null, host, tail)
		if err != nil {
			return false, err
		}
		if last != null {
			t.failed, t.seen = i, last
			return false, t.leave(i+1, k, id)
		}
		s.top, s.status[i] = i, granted(0, null)
	}
	if t.beyond == nil {
		return true, nil
	}
	got, err := t.beyond.Try(id)
	if got || err != nil {
		return got, err
	}
	if err := t.leave(0, k, id); err != nil {
		return false, err
	}
	t.failed = -1
	return false, t.beyond.Left(id)
}

// leave leaves the queues from a level inwards; whoever came after this rank must
// acquire the next level out itself.
func (t *Tree) leave(from, k, id int) error {
	for i := from; i <= t.Leaf; i++ {
		if i == t.Leaf && t.crowd {
			host, _ := t.tail(i, id)
			return t.set(host, id, 0) // whoever waits looks at it
		}
		succ, err := t.out(i, t.node(k), k, id)
		if err != nil {
			return err
		}
		if succ == null {
			continue
		}
		if err := t.tell(i, succ, parent); err != nil {
			return err
		}
		if err := t.clean(i, k); err != nil {
			return err
		}
	}
	return nil
}

// Pause waits before another Try of a lock: until the word that made the last one fail
// has changed, or for as long as the backend likes.
func (t *Tree) Pause(id, try int) error {
	if t.failed < 0 {
		return t.beyond.Pause(try)
	}
	host, tail := t.tail(t.failed, id)
	if t.failed == t.Leaf && t.crowd {
		tail = t.state(id)
	}
	return t.W.Backoff(host, tail, t.seen, try)
}
