package queuetree

import (
	"math"

	"github.com/rmalock/rmalock/rma"
)

// The barging leaf, for nodes with more ranks than cores. In an MCS queue a rank that is
// not running holds up all behind it, and every handover waits for the machine's
// scheduler. Here a rank that runs may take the lock, or what its element has of it, ahead
// of those that wait, T_L,Leaf times in a row. Then the lock is closed to all but the head
// of the queue, which alone polls it while the others sleep.
//
// STATE of an element and lock, in near memory beside TAIL:
//
//	0                     no rank of the element has the lock
//	held | n, up          a rank is in; the element has passed the lock n times, and up
//	                      stands for it at the next level out
//	n, up; n not 0        no rank is in, but the element has the lock
//	closed                no rank is in, and the head of the queue is to take it
//
// Where the leaf is the root and there is a gate, up is gateClosed or null: whether the lock
// that is passed on is closed to the readers. If it is not, the rank that takes it goes
// through the gate.
//
// While it is held only its holder changes it.
const (
	held   = 1 << 62
	closed = math.MinInt64

	gateClosed node = 1
)

// Barging reports whether the leaf is the barging one.
func (t *Tree) Barging() bool { return t.barging }

// lockLeafSlow takes a barging leaf for which Lock's try found another STATE than it had
// left there: it tries once more with that, and then queues. It reports whether the lock
// came with the leaf.
func (v visit) lockLeafSlow(st int64) (got bool, err error) {
	t, s := v.t, v.s
	w, tail := t.W, &s.tails[t.Leaf]
	if st&(held|closed) == 0 {
		last, err := w.CompareAndSwapFlush(st|held, st, tail.rank, s.state)
		if err != nil {
			return false, err
		}
		if last == st {
			return v.noteState(st, false), nil
		}
	}
	pred, err := w.FetchAndOpFlush(s.node, tail.rank, tail.disp, rma.Replace)
	if err != nil {
		return false, err
	}
	if pred != null { // until it is the head
		if _, err := v.awaitGrant(t.Leaf, pred); err != nil {
			return false, err
		}
	}
	return v.lockLeafAsHead()
}

// lockLeafAsHead takes the leaf as the head of the queue: when it is closed to others, or
// has been free for a moment.
func (v visit) lockLeafAsHead() (bool, error) {
	t, s := v.t, v.s
	w, host := t.W, s.tails[t.Leaf].rank
	last := int64(held) // STATE at the last look
	for try := 0; ; {
		st, err := w.GetFlush(host, s.state)
		if err != nil {
			return false, err
		}
		switch {
		case st&held != 0:
			if err := w.Backoff(host, s.state, st, try); err != nil {
				return false, err
			}
			try++
		case st&closed == 0 && st != last && last&held != 0: // the rank that left it may be back at once
			w.HandedOver(t.rank)
		case st&closed == 0 && st != last: // and was
			if err := w.Backoff(host, s.state, last, try); err != nil {
				return false, err
			}
			try++
		default:
			now, err := w.CompareAndSwapFlush(st&^closed|held, st, host, s.state)
			if err != nil {
				return false, err
			}
			if now == st {
				return v.noteState(st&^closed, true), nil
			}
			if err := w.Backoff(host, s.state, st, try); err != nil { // it has changed: at once
				return false, err
			}
			try++
		}
		last = st
	}
}

// noteState notes the STATE with which the leaf came, and whether the rank queued for it.
// It reports whether the lock came with the leaf.
func (v visit) noteState(st int64, queued bool) bool {
	t, leaf, s := v.t, v.t.Leaf, v.s
	s.status[leaf], s.queued = st|held, queued
	if leaf == 0 && t.gate != nil {
		return upper(st) == gateClosed
	}
	if passings(st) == 0 {
		return false
	}
	s.top = leaf
	return true
}

// unlockBarged is unlockLeaf where the leaf is the root and the rank did not queue, the
// usual case.
func (v visit) unlockBarged() error {
	t, s := v.t, v.s
	tail := &s.tails[0]
	last, err := t.W.GetFlush(tail.rank, tail.disp)
	if err != nil {
		return err
	}
	n := passings(s.status[0])
	pass := last != null && n < t.leafTL
	up := null
	if t.gate != nil {
		if up, err = t.leaveGate(s.id, last != null, pass); err != nil {
			return err
		}
	}
	next := stateAfterRelease(last)
	s.left = 0
	if pass {
		next = granted(n+1, up) &^ held
		s.left = next
	}
	t.W.Put(next, tail.rank, s.state)
	return t.W.Flush(tail.rank)
}

// leaveGate gives a lock of a barging root to the readers, unless it is passed on and they
// have not come for a while. It returns what says so in STATE.
func (t *Tree) leaveGate(id int, more, pass bool) (up node, err error) {
	if pass && t.gate.Keep() {
		return gateClosed, nil
	}
	_, err = t.gate.Release(id, more)
	return null, err
}

// unlockLeaf lets a barging leaf go.
func (v visit) unlockLeaf() error {
	t, s := v.t, v.s
	st := s.status[t.Leaf]
	succ, err := v.bargingSuccessor()
	if err != nil {
		return err
	}
	pass := succ != null && passings(st) < t.leafTL
	up := upper(st)
	if t.Leaf == 0 && t.gate != nil {
		if up, err = t.leaveGate(s.id, succ != null, pass); err != nil {
			return err
		}
	} else if s.top < t.Leaf {
		up = s.node
		if pass {
			if pass, err = v.lendNode(t.Leaf - 1); err != nil {
				return err
			}
		}
	}
	next := stateAfterRelease(succ)
	s.left = 0
	if pass {
		next = granted(passings(st)+1, up) &^ held
		s.left = next
	} else if t.Leaf > 0 {
		if err := v.release(t.Leaf-1, up); err != nil {
			return err
		}
	}
	if err := v.setState(next); err != nil || !s.queued || succ == null {
		return err
	}
	if err := t.setStatus(t.Leaf, succ, parent); err != nil { // it is the head
		return err
	}
	return v.clearNext(t.Leaf)
}

// bargingSuccessor is the successor in the leaf's queue or, for a rank that is not in it,
// any rank that is; null if there is none.
func (v visit) bargingSuccessor() (node, error) {
	t, s := v.t, v.s
	if !s.queued {
		tail := &s.tails[t.Leaf]
		return t.W.GetFlush(tail.rank, tail.disp)
	}
	if succ := t.W.Peek(s.nextDisp(t.Leaf)); succ != null {
		return succ, nil
	}
	return v.dequeueIfLast(t.Leaf, s.node)
}

// stateAfterRelease is STATE after the element has let the lock go.
func stateAfterRelease(succ node) int64 {
	if succ == null {
		return 0
	}
	return closed
}

// setState writes STATE, which only its holder does.
func (v visit) setState(st int64) error {
	host := v.s.tails[v.t.Leaf].rank
	v.t.W.Put(st, host, v.s.state)
	return v.t.W.Flush(host)
}
