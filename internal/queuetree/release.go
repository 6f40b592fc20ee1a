package queuetree

import (
	"math/bits"

	"github.com/rmalock/rmalock/rma"
)

// Unlock lets the lock go: Listing 5 from the leaf out, Listing 8 at the root.
func (m *Mutex) Unlock() error {
	t, id := m.t, m.id
	k, s := 0, &t.slots[0]
	if t.busy != 1 || s.id != id {
		if k = t.Find(id); k < 0 {
			panic(t.name + ": unlock of unlocked lock")
		}
		s = &t.slots[k]
	}
	if t.plain && t.W.Peek(t.next(0, k)) == null { // the loop below with one level
		s.status[0] = start
		mine, at := t.node(k), &s.at[0]
		last, err := t.W.CompareAndSwapFlush(null, mine, at.host, at.disp) // lines 15, 16
		if err == nil && last != mine {
			err = t.follow(0, k)
		}
		t.drop(k)
		return err
	}
	if t.crowd && t.Leaf == 0 && !s.queued {
		err := t.pass(s)
		t.drop(k)
		return err
	}
	alone := s.top == 0 && t.gate == nil && !t.crowd // in all queues, with nobody behind
	for i, next := 0, t.next(0, k); alone && i <= t.Leaf; i++ {
		alone = t.W.Peek(next+2*i) == null
	}
	if !alone {
		err := t.letGo(k, id)
		s.status[s.top], s.top = start, 0
		t.drop(k)
		return err
	}
	mine := t.node(k)
	s.status[0] = start
	for i := 0; i <= t.Leaf; i++ { // then release comes to no more than to leave them, from the root in
		at := &s.at[i]
		last, err := t.W.CompareAndSwapFlush(null, mine, at.host, at.disp) // lines 15, 16
		if err == nil && last != mine {
			err = t.follow(i, k)
		}
		if err != nil {
			t.drop(k)
			return err
		}
	}
	t.drop(k)
	return nil
}

// letGo is Unlock but for the short way.
func (t *Tree) letGo(k, id int) error {
	if t.crowd {
		return t.leaveLeaf(k, id)
	}
	return t.release(t.Leaf, t.node(k), k, id)
}

// release lets a level go, at which node n stands for the rank's element: the rank's
// own node k, or one that was lent.
func (t *Tree) release(i int, n node, k, id int) error {
	own := n == t.node(k)
	succ, st, err := t.look(i, n, k) // lines 3, 4
	if err != nil {
		return err
	}
	if count := passings(st); succ == null && i == t.Leaf && t.linger && count > 0 && count < t.now[i] {
		// Whoever passed it on may want it again at once, and to leave the node costs far
		// operations. The paper does not wait; with few ranks a node it would hardly pass.
		if succ, err = t.W.SpinBriefly(t.next(i, k), null); err != nil {
			return err
		}
	}
	up := upper(st)
	climbed := own && t.slots[k].top < i // the next level out has our node too
	if climbed {
		up = n
	}
	if succ == null && i == 0 && t.dequeueFirst { // Listing 8, lines 15 to 20
		if succ, err = t.out(i, n, k, id); err != nil {
			return err
		}
		if succ == null {
			// Left first and then given to the readers: a reader that sees a TAIL knows that
			// a Release is to come. In Listing 8 it may have been before.
			return t.done(i, n, k, t.give(id, false))
		}
	}
	pass := succ != null && passings(st) < t.now[i] // line 5
	full := succ != null && !pass
	if pass && climbed {
		if pass, err = t.lend(k, i-1); err != nil {
			return err
		}
	}
	if pass {
		count := passings(st) + 1
		if i == 0 && t.gate == nil {
			count = 0 // nobody looks
		}
		err = t.tell(i, succ, granted(count, up)) // line 8
		t.W.HandedOver(t.rankOf(succ))
		t.wanted = true
		return t.finish(i, n, k, err)
	}
	t.wanted = false
	if i > 0 {
		err = t.release(i-1, up, k, id) // line 12
	} else {
		err = t.give(id, succ != null) // Listing 8, line 6
	}
	if err != nil {
		return err
	}
	if full && t.adapt {
		t.now[i] = NextThreshold(t.now[i], t.tl[i], t.wanted)
	}
	t.wanted = t.wanted || succ != null
	if succ == null { // lines 13 to 21
		if succ, err = t.out(i, n, k, id); err != nil || succ == null {
			return t.done(i, n, k, err)
		}
	}
	return t.finish(i, n, k, t.tell(i, succ, parent)) // line 23
}

// give is Listing 8's reset_counters.
func (t *Tree) give(id int, more bool) error {
	if t.gate == nil {
		return nil
	}
	var err error
	t.wanted, err = t.gate.Release(id, more)
	return err
}

// look reads NEXT and STATUS of a node at a level.
func (t *Tree) look(i int, n node, k int) (succ node, st status, err error) {
	if n == t.node(k) {
		return t.W.Peek(t.next(i, k)), t.slots[k].status[i], nil
	}
	r, his := t.place(n)
	next := t.W.Get(r, his+2*i)
	stat := t.W.Get(r, his+2*i+1)
	err = t.W.Flush(r)
	return t.W.Value(next), t.W.Value(stat), err
}

// out takes node n from the queue of a level if nobody came after it; otherwise it
// waits for whoever did to show itself.
func (t *Tree) out(i int, n node, k, id int) (succ node, err error) {
	host, tail := t.tail(i, id)
	last, err := t.W.CompareAndSwapFlush(null, n, host, tail) // lines 15, 16
	if err != nil || last == n {                              // line 17
		return null, err
	}
	return t.linked(i, n)
}

// linked waits for whoever came after a node to show itself.
func (t *Tree) linked(i int, n node) (succ node, err error) {
	r, his := t.place(n)
	return t.W.Await(r, his+2*i, rma.NotEqual(null)) // lines 18 to 20
}

// tell writes a status for whoever waits with a node at a level.
func (t *Tree) tell(i int, n node, s status) error {
	r, his := t.place(n)
	t.W.Put(s, r, his+2*i+1)
	return t.W.Flush(r)
}

func (t *Tree) rankOf(n node) int { return int(n-1) / Slots }

// finish ends the use of a node at a level that had a successor.
func (t *Tree) finish(i int, n node, k int, err error) error {
	if err == nil && n == t.node(k) {
		return t.clean(i, k)
	}
	return t.done(i, n, k, err)
}

// clean makes NEXT null again for the next time: nobody writes it until a swap of TAIL
// shows the node again. Flushed here, as that swap would not order it.
func (t *Tree) clean(i, k int) error {
	t.W.Put(null, t.rank, t.next(i, k))
	return t.W.Flush(t.rank)
}

// done gives a node back that was lent.
func (t *Tree) done(i int, n node, k int, err error) error {
	if err != nil || n == t.node(k) {
		return err
	}
	return t.tell(i, n, idle)
}

// lend makes the rank's node k, at level from and further out, the element's for as
// long as it has the lock: whoever releases these levels finds in STATUS what this
// rank knows. It reports false if the rank has lent enough.
func (t *Tree) lend(k, from int) (bool, error) {
	if bits.OnesCount16(t.lent) >= Slots-MaxHeld {
		if err := t.back(); err != nil {
			return false, err
		}
		if bits.OnesCount16(t.lent) >= Slots-MaxHeld {
			return false, nil
		}
	}
	s := &t.slots[k]
	for i := from; i >= s.top; i-- {
		st := s.status[i]
		if i > s.top {
			st = granted(passings(st), t.node(k))
		}
		t.W.Put(st, t.rank, t.stat(i, k))
		s.lent |= 1 << i
	}
	t.lent |= 1 << k
	return true, t.W.Flush(t.rank)
}

// back takes nodes back that are not used any more.
func (t *Tree) back() error {
	for b := t.lent; b != 0; b &= b - 1 {
		k := bits.TrailingZeros16(b)
		s := &t.slots[k]
		free := true
		for l := s.lent; l != 0; l &= l - 1 {
			free = free && t.W.Peek(t.stat(bits.TrailingZeros8(l), k)) == idle
		}
		if !free {
			continue
		}
		// Far successors wrote NEXT, and nobody of this process has answered them.
		if err := t.W.SyncInboundStores(); err != nil {
			return err
		}
		for l := s.lent; l != 0; l &= l - 1 {
			t.W.Put(null, t.rank, t.next(bits.TrailingZeros8(l), k))
		}
		if err := t.W.Flush(t.rank); err != nil {
			return err
		}
		s.lent = 0
		t.lent &^= 1 << k
	}
	return nil
}
