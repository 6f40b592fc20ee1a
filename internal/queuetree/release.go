package queuetree

// Unlock lets the lock go: Listing 5 from the leaf out, and Listing 8 at the root
// (L5:1 L8:1).
func (m *Mutex) Unlock() error {
	t, s := m.t, &m.t.slots[0]
	if t.busy != 1 || s.id != m.id {
		k := t.Find(m.id)
		if k < 0 {
			panic(t.name + ": unlock of unlocked lock")
		}
		s = &t.slots[k]
	}
	v := visit{t, s}
	if t.oneQueue && t.W.Peek(s.nextDisp(0)) == null { // leaveQueues, without the loop
		s.status[0] = start
		tail := &s.tails[0]
		last, err := t.W.CompareAndSwapFlush(null, s.node, tail.rank, tail.disp)
		if err == nil && last != s.node {
			err = v.promoteSuccessor(0)
		}
		t.unclaim(s)
		return err
	}
	var err error
	switch {
	case t.barging && t.Leaf == 0 && !s.queued:
		err = v.unlockBarged()
	case t.barging:
		err = v.unlockLeaf()
	case v.alone():
		err = v.leaveQueues(0)
	default:
		err = v.release(t.Leaf, s.node)
	}
	s.status[s.top], s.top = start, 0 // for the next time, in private memory: L4:22 L7:17 L7:22
	t.unclaim(s)
	return err
}

// alone reports whether the rank is in the queues of all levels with no successor known.
// Then release comes to no more than to leave the queues.
func (v visit) alone() bool {
	t, s := v.t, v.s
	if s.top != 0 || t.gate != nil {
		return false
	}
	for i := range t.Leaf + 1 {
		if t.W.Peek(s.nextDisp(i)) != null {
			return false
		}
	}
	return true
}

// release lets a level go. Node n stands there for the rank's element: the rank's own
// node, or one that was lent.
func (v visit) release(level int, n node) error {
	t, s := v.t, v.s
	succ, st, err := v.readNode(level, n)
	if err != nil {
		return err
	}
	if count := passings(st); succ == null && level == t.Leaf && t.spinAtLeaf && count > 0 && count < t.tl[level] {
		// The rank before may want the lock again at once, and to leave the node costs far
		// operations. The paper does not wait; with few ranks a node it would hardly pass.
		if succ, err = t.W.SpinBriefly(s.nextDisp(level), null); err != nil {
			return err
		}
	}
	if succ == null && level == 0 && t.dequeueFirst {
		// Before RootGate.Release: a reader that sees a TAIL then knows that a Release is
		// to come. In Listing 8 it may have been already.
		if succ, err = v.dequeueIfLast(0, n); err != nil {
			return err
		}
		if succ == null {
			return v.returnNode(0, n, v.releaseGate(false))
		}
	}
	up := upper(st)
	climbed := n == s.node && s.top < level // the next level out has the rank's node too
	if climbed {
		up = n
	}
	full := succ != null && passings(st) >= t.tl[level] // L5:5 L8:5
	pass := succ != null && !full
	if pass && climbed {
		if pass, err = v.lendNode(level - 1); err != nil {
			return err
		}
	}
	if pass {
		return v.handOver(level, n, succ, passings(st)+1, up)
	}
	return v.releaseOuter(level, n, succ, up, full)
}

// readNode reads NEXT and STATUS of a node at a level: L5:3 L5:4 L8:4 L8:9.
func (v visit) readNode(level int, n node) (succ node, st status, err error) {
	w, s := v.t.W, v.s
	if n == s.node {
		return w.Peek(s.nextDisp(level)), s.status[level], nil
	}
	rank, next := v.t.nextWord(level, n)
	_, stat := v.t.statusWord(level, n)
	nr, sr := w.Get(rank, next), w.Get(rank, stat)
	err = w.Flush(rank)
	return w.Value(nr), w.Value(sr), err
}

// handOver passes the lock within the element, to the successor of node n at a level.
func (v visit) handOver(level int, n, succ node, count int64, up node) error {
	t := v.t
	if level == 0 && t.gate == nil {
		count = 0 // no rank looks at it
	}
	err := t.setStatus(level, succ, granted(count, up)) // L5:8 L8:23
	t.W.HandedOver(rankOf(succ))
	t.outerWaited = true
	return v.retire(level, n, err)
}

// releaseOuter lets the next level out go, and then leaves the queue of this one.
func (v visit) releaseOuter(level int, n, succ, up node, full bool) error {
	t := v.t
	t.outerWaited = false
	var err error
	if level > 0 {
		err = v.release(level-1, up) // L5:12
	} else {
		err = v.releaseGate(succ != null) // L8:6 L8:12
	}
	if err != nil {
		return err
	}
	if full && t.adapt {
		t.tl[level] = NextThreshold(t.tl[level], t.maxTL[level], t.outerWaited)
	}
	t.outerWaited = t.outerWaited || succ != null
	if succ == null { // L5:13 L8:10
		if succ, err = v.dequeueIfLast(level, n); err != nil || succ == null {
			return v.returnNode(level, n, err)
		}
	}
	return v.retire(level, n, t.setStatus(level, succ, parent)) // L5:23 L8:7
}

// releaseGate gives the lock to the readers. A release calls it once, so that it needs no
// flag that says whether it has: L8:2 L8:11.
func (v visit) releaseGate(more bool) error {
	if v.t.gate == nil {
		return nil
	}
	var err error
	v.t.outerWaited, err = v.t.gate.Release(v.s.id, more)
	return err
}

// dequeueIfLast takes node n from the queue of a level if it is the last. Otherwise it
// waits for the successor to link itself.
func (v visit) dequeueIfLast(level int, n node) (succ node, err error) {
	tail := &v.s.tails[level]
	last, err := v.t.W.CompareAndSwapFlush(null, n, tail.rank, tail.disp) // L5:15 L5:16 L8:15 L8:16
	if err != nil || last == n {                                          // L5:17 L8:17
		return null, err
	}
	return v.t.awaitSuccessor(level, n)
}

// leaveQueues leaves the queues of a level and those inside it, in this order. A
// successor must acquire the next level out itself.
func (v visit) leaveQueues(level int) error {
	t, s := v.t, v.s
	for ; level <= t.Leaf; level++ {
		if level == t.Leaf && t.barging {
			return v.setState(0)
		}
		tail := &s.tails[level]
		last, err := t.W.CompareAndSwapFlush(null, s.node, tail.rank, tail.disp)
		if err == nil && last != s.node {
			err = v.promoteSuccessor(level)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// promoteSuccessor waits for the successor at a level to link itself and has it acquire
// the next level out.
func (v visit) promoteSuccessor(level int) error {
	succ, err := v.t.awaitSuccessor(level, v.s.node)
	if err != nil {
		return err
	}
	if err := v.t.setStatus(level, succ, parent); err != nil {
		return err
	}
	return v.clearNext(level)
}

// retire ends the use of a node that had a successor at a level. err is that of the
// operation before.
func (v visit) retire(level int, n node, err error) error {
	if err == nil && n == v.s.node {
		return v.clearNext(level)
	}
	return v.returnNode(level, n, err)
}

// clearNext makes NEXT of the rank's node null for the next time, where no waiter is
// delayed: no rank writes it until a swap of TAIL shows the node again. It is flushed
// here, as that swap would not order it.
func (v visit) clearNext(level int) error {
	w, t := v.t.W, v.t
	w.Put(null, t.rank, v.s.nextDisp(level)) // L4:2 L7:2
	return w.Flush(t.rank)
}

// returnNode returns a node that was lent to its rank. err is that of the operation before.
func (v visit) returnNode(level int, n node, err error) error {
	if err != nil || n == v.s.node {
		return err
	}
	return v.t.setStatus(level, n, idle)
}
