package queuetree

import (
	"fmt"
	"math/bits"

	"github.com/rmalock/rmalock/lock"
)

// A slot is what a rank knows of one of its nodes, and of the lock that the node is for.
type slot struct {
	id     int // the lock
	node   node
	base   int    // displacement of the node's words: NEXT and STATUS of each level
	bit    uint16 // in Tree.busy and Tree.lent
	lent   uint8  // levels at which the node is lent, a bit each
	queued bool   // in the queue of a barging leaf
	top    int    // level at which the lock came with a grant; 0 if it came with none

	tailsOf int                // the lock of which are:
	state   int                // the displacement of STATE at the host of the leaf's TAIL, if barging
	left    int64              // STATE as this rank left it
	tails   [maxLevels]address // TAIL of each level

	status [maxLevels]status // what the node got at each level; start where it got no grant
}

func (s *slot) init(t *Tree, k int) {
	s.node, s.bit, s.base = int64(1+t.rank*Slots+k), 1<<k, k*2*(t.Leaf+1)
	s.findTails(t)
	for i := range s.status {
		s.status[i] = start
	}
}

// nextDisp and statusDisp are the displacements of the node's own NEXT and STATUS.
func (s *slot) nextDisp(level int) int   { return s.base + 2*level }
func (s *slot) statusDisp(level int) int { return s.base + 2*level + 1 }

// findTails finds the TAILs and the STATE of the slot's lock.
func (s *slot) findTails(t *Tree) {
	for i := range t.Leaf + 1 {
		s.tails[i].rank, s.tails[i].disp = t.tailWord(i, s.id)
	}
	s.state = t.stateBase + s.tails[t.Leaf].disp - t.tailBase[t.Leaf]
	s.tailsOf = s.id
}

// claim finds a slot for a lock.
func (t *Tree) claim(id int) (*slot, error) {
	t.Check(id)
	if t.Find(id) >= 0 {
		panic(t.name + ": lock of a lock that this rank holds")
	}
	if t.Held() == MaxHeld {
		return nil, fmt.Errorf("%s: rank %d holds %d locks: %w", t.name, t.rank, MaxHeld, lock.ErrTooManyHeld)
	}
	k := bits.TrailingZeros16(^(t.busy | t.lent)) // one is free: lendNode keeps MaxHeld of them
	t.busy |= 1 << k
	s := &t.slots[k]
	if s.id = id; s.tailsOf != id {
		s.findTails(t)
	}
	return s, nil
}

// unclaim ends the use of a slot for a lock.
func (t *Tree) unclaim(s *slot) { t.busy &^= s.bit }

// Held is the number of locks that the rank holds or waits for.
func (t *Tree) Held() int { return bits.OnesCount16(t.busy) }

// Busy reports whether the rank holds or waits for a lock.
func (t *Tree) Busy() bool { return t.busy != 0 }

// Find is the number of the slot with which the rank holds a lock, or -1.
func (t *Tree) Find(id int) int {
	if t.busy == 1 && t.slots[0].id == id {
		return 0
	}
	return t.find(id)
}

func (t *Tree) find(id int) int {
	for b := t.busy; b != 0; b &= b - 1 {
		if k := bits.TrailingZeros16(b); t.slots[k].id == id {
			return k
		}
	}
	return -1
}

// lendNode makes the rank's node, at a level and further out, the element's for as long
// as the element has the lock. STATUS tells the rank that releases these levels what this
// rank knows. It reports false if the rank has lent as many nodes as it may.
func (v visit) lendNode(level int) (bool, error) {
	t, s := v.t, v.s
	if bits.OnesCount16(t.lent) >= Slots-MaxHeld {
		if err := t.reclaimNodes(); err != nil {
			return false, err
		}
		if bits.OnesCount16(t.lent) >= Slots-MaxHeld {
			return false, nil
		}
	}
	for i := level; i >= s.top; i-- {
		st := s.status[i]
		if i > s.top {
			st = granted(passings(st), s.node)
		}
		t.W.Put(st, t.rank, s.statusDisp(i))
		s.lent |= 1 << i
	}
	t.lent |= s.bit
	return true, t.W.Flush(t.rank)
}

// reclaimNodes takes the nodes back that its elements have returned.
func (t *Tree) reclaimNodes() error {
	for b := t.lent; b != 0; b &= b - 1 {
		s := &t.slots[bits.TrailingZeros16(b)]
		if !t.returned(s) {
			continue
		}
		// Successors on other nodes wrote NEXT; this process has received nothing since.
		if err := t.W.SyncInboundStores(); err != nil {
			return err
		}
		for l := s.lent; l != 0; l &= l - 1 {
			t.W.Put(null, t.rank, s.nextDisp(bits.TrailingZeros8(l)))
		}
		if err := t.W.Flush(t.rank); err != nil {
			return err
		}
		s.lent = 0
		t.lent &^= s.bit
	}
	return nil
}

// returned reports whether the slot's node is lent at no level any more.
func (t *Tree) returned(s *slot) bool {
	for l := s.lent; l != 0; l &= l - 1 {
		if t.W.Peek(s.statusDisp(bits.TrailingZeros8(l))) != idle {
			return false
		}
	}
	return true
}

// Idle says what is wrong with the rank's part when no rank holds or waits for a lock.
func (t *Tree) Idle() error {
	if err := t.reclaimNodes(); err != nil {
		return err
	}
	if t.busy != 0 || t.lent != 0 {
		return fmt.Errorf("%s: rank %d uses nodes %b and has lent %b", t.name, t.rank, t.busy, t.lent)
	}
	nodes := Slots * 2 * (t.Leaf + 1)
	for disp := range t.W.Words() {
		if t.ExtraBase > 0 && disp >= t.ExtraBase {
			break
		}
		if v := t.W.Peek(disp); v != 0 && (disp >= nodes || disp%2 == 0) {
			return fmt.Errorf("%s: %s of rank %d is %d, want 0", t.name, t.W.Spec().WordName(disp), t.rank, v)
		}
	}
	return nil
}
