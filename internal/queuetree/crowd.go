package queuetree

import (
	"math"

	"github.com/rmalock/rmalock/rma"
)

// The leaf for crowded nodes, those with more ranks than cores. In an MCS queue a rank
// that is not running holds up all behind it, and every hand-over waits for the
// machine's scheduler. Here a rank that runs may take the lock, or what its element has
// of it, ahead of those that wait, T_L,Leaf times in a row; the lock is then closed to
// all but the head of the queue, who alone looks at it while the others sleep.
//
// STATE of an element and lock, in near memory beside TAIL:
//
//	0                     nobody of the element has the lock
//	held | n, up          somebody is in; the element has passed the lock n times, and up
//	                      stands for it at the next level out
//	n, up; n not 0        nobody is in, but the element has the lock
//	closed                nobody is in, and the head of the queue is to take it
//
// While it is held only its holder changes it.
const (
	held   = 1 << 62
	closed = math.MinInt64
)

// Crowded reports whether the leaf is the one for crowded nodes.
func (t *Tree) Crowded() bool { return t.crowd }

// barge takes the leaf, and reports whether the lock came with it. It tries so often
// before it queues; st is what it takes STATE for.
func (t *Tree) barge(k int, st int64, tries int) (got bool, err error) {
	w, s := t.W, &t.slots[k]
	host, tail := s.at[t.Leaf].host, s.at[t.Leaf].disp
	state := t.states + tail - t.tails[t.Leaf]
	s.queued = false
	for ; tries > 0 && st&(held|closed) == 0; tries-- {
		last, err := w.CompareAndSwapFlush(st|held, st, host, state)
		if last == st || err != nil {
			return t.took(k, st), err
		}
		st = last
	}
	s.queued = true
	pred, err := w.FetchAndOpFlush(t.node(k), host, tail, rma.Replace)
	if err != nil {
		return false, err
	}
	if pred != null { // until it is the head
		if _, err := t.queue(t.Leaf, k, pred); err != nil {
			return false, err
		}
	}
	return t.head(k, host, state)
}

// head takes the leaf as the head of the queue: when it is closed to others, or has been
// free for a moment.
func (t *Tree) head(k, host, state int) (bool, error) {
	w := t.W
	last := int64(held) // what the last look found
	for try := 0; ; {
		st, err := w.GetFlush(host, state)
		if err != nil {
			return false, err
		}
		switch {
		case st&held != 0:
			if err := w.Backoff(host, state, st, try); err != nil {
				return false, err
			}
			try++
		case st&closed == 0 && st != last && last&held != 0: // whoever left it may be back at once
			w.HandedOver(t.rank)
		case st&closed == 0 && st != last: // and was
			if err := w.Backoff(host, state, last, try); err != nil {
				return false, err
			}
			try++
		default:
			now, err := w.CompareAndSwapFlush(st&^closed|held, st, host, state)
			if err != nil {
				return false, err
			}
			if now == st {
				return t.took(k, st&^closed), nil
			}
			if err := w.Backoff(host, state, st, try); err != nil { // it has changed: at once
				return false, err
			}
			try++
		}
		last = st
	}
}

// took notes with what the leaf came.
func (t *Tree) took(k int, st status) bool {
	s := &t.slots[k]
	s.status[t.Leaf] = st | held
	if passings(st) == 0 {
		return false
	}
	s.top = t.Leaf
	return true
}

// pass is leaveLeaf where the leaf is the root and the rank did not queue, the usual case.
func (t *Tree) pass(s *slot) error {
	w, at := t.W, &s.at[0]
	last, err := w.GetFlush(at.host, at.disp)
	if err != nil {
		return err
	}
	st := s.status[0] &^ held
	switch {
	case last == null:
		st, s.left = 0, 0
	case passings(st) < t.most:
		st = granted(passings(st)+1, null) &^ held
		s.left = st
	default:
		st, s.left = closed, 0
	}
	w.Put(st, at.host, t.states+at.disp-t.tails[0])
	return w.Flush(at.host)
}

// leaveLeaf lets the leaf go.
func (t *Tree) leaveLeaf(k, id int) error {
	w, s := t.W, &t.slots[k]
	host, tail := s.at[t.Leaf].host, s.at[t.Leaf].disp
	state := t.states + tail - t.tails[t.Leaf]
	st, n := s.status[t.Leaf], t.node(k)
	var succ node // or whoever is last
	var err error
	if !s.queued {
		succ, err = w.GetFlush(host, tail)
	} else if succ = w.Peek(t.next(t.Leaf, k)); succ == null {
		succ, err = t.out(t.Leaf, n, k, id)
	}
	if err != nil {
		return err
	}
	pass := succ != null && passings(st) < t.most
	up := upper(st)
	if s.top < t.Leaf {
		up = n
		if pass {
			if pass, err = t.lend(k, t.Leaf-1); err != nil {
				return err
			}
		}
	}
	next := open(succ)
	s.left = 0
	if pass {
		next = granted(passings(st)+1, up) &^ held
		s.left = next
	} else if t.Leaf > 0 {
		if err := t.release(t.Leaf-1, up, k, id); err != nil {
			return err
		}
	}
	w.Put(next, host, state)
	if err := w.Flush(host); err != nil || !s.queued || succ == null {
		return err
	}
	if err := t.tell(t.Leaf, succ, parent); err != nil { // it is the head
		return err
	}
	return t.clean(t.Leaf, k)
}

// open is STATE after the element has let the lock go.
func open(succ node) int64 {
	if succ == null {
		return 0
	}
	return closed
}

func (t *Tree) set(host, id int, st int64) error {
	t.W.Put(st, host, t.state(id))
	return t.W.Flush(host)
}

// state is where the STATE of a lock is, at the host of the leaf's TAIL.
func (t *Tree) state(id int) int {
	_, tail := t.tail(t.Leaf, id)
	return t.states + tail - t.tails[t.Leaf]
}
