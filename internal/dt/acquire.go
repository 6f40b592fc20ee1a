package dt

import "github.com/rmalock/rmalock/rma"

// Lock takes a lock: Listing 4 at every level from the leaf out. NEXT of a node that is
// not in use is null (line 2): release and back see to it.
func (t *Tree) Lock(id int) error {
	k, s := 0, &t.slots[0]
	if t.busy|t.lent == 0 && s.atID == id { // the usual case: it is the only one, and was the last
		t.busy, s.id = 1, id
	} else {
		var err error
		if k, err = t.Take(id); err != nil {
			return err
		}
		s = &t.slots[k]
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
		s.top = i
		at := &s.at[i]
		pred, err := t.W.FetchAndOpFlush(mine, at.host, at.disp, rma.Replace) // lines 5, 6
		if err != nil {
			return err
		}
		s.status[i] = granted(0, null) // line 22: ACQUIRE_START
		if pred == null {
			continue
		}
		got, err := t.queue(i, k, pred)
		if got || err != nil {
			return err
		}
	}
	if t.beyond == nil {
		return nil
	}
	return t.beyond.Take(id) // Listing 7, lines 14 to 22
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
	s, mine := &t.slots[k], t.node(k)
	for i := from; i <= t.Leaf; i++ {
		at := &s.at[i]
		if i == t.Leaf && t.crowd {
			return t.set(at.host, id, 0) // whoever waits looks at it
		}
		last, err := t.W.CompareAndSwapFlush(null, mine, at.host, at.disp)
		if err == nil && last != mine {
			err = t.follow(i, k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// follow lets whoever came after this rank into the queue of a level acquire the next
// level out.
func (t *Tree) follow(i, k int) error {
	succ, err := t.linked(i, t.node(k))
	if err != nil {
		return err
	}
	if err := t.tell(i, succ, parent); err != nil {
		return err
	}
	return t.clean(i, k)
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
