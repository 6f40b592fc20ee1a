package art

import (
	"bytes"
	"fmt"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/remote"
	"github.com/rmalock/rmalock/rma"
)

// A spot is the slot where a key belongs.
type spot struct {
	node   remote.Ref
	extent [extents]remote.Ref // of the node
	step
	fresh bool // this operation has read the slot; else it is of a copy
	// The slot leads to a node whose keys have other bytes: of its head, from differs on.
	below int64
}

// A found is the leaf at a spot.
type found struct {
	ref   remote.Ref
	p, id int64   // its POINTER and ID
	words []int64 // as they were read
}

func (f *found) dead() bool { return dead(f.p, f.id) }

// size is the number of bytes of the leaf's key.
func (f *found) size() int { return int(keySize.Get(f.id)) }

// key is the leaf's key, if all of it was read.
func (f *found) key() []byte { return bytesOf(f.words[readWords:])[:f.size()] }

// walk goes from a node down to the slot where a key belongs, by copies as far as there are some.
// What a copy does not have is read.
func (t *Tree) walk(key []byte, ref remote.Ref) error {
	for level := 0; ; level++ {
		s, extent, there := t.cfg.Cache.step(ref, key)
		if !there || s.differs < 0 && s.word == unused { // others may have filled it
			if err := t.read(ref); err != nil {
				return err
			}
			s, extent, there = t.buf.step(key), t.buf.extent, false
		}
		if level > len(key) || ref != t.root && depthOf(s.head) > len(key) && s.differs < 0 {
			return fmt.Errorf("art: node %#x has depth %d on the way of a key of %d bytes: %w", ref, depthOf(s.head), len(key), ErrTorn)
		}
		if s.differs >= 0 { // the way ends at the slot that leads here
			t.way.below, t.way.differs = s.head, s.differs
			return nil
		}
		t.way = spot{node: ref, extent: extent, step: s, fresh: !there}
		if kindOf(s.word) != inner {
			return nil
		}
		ref = blockOf(s.word)
	}
}

// at is where the slot of t.way is; 0 if it is in an extent that the node does not have.
func (t *Tree) at() remote.Ref {
	at, _ := t.slotAt(t.way.node, &t.way.extent, t.way.index)
	return at
}

// saw notes what the slot of t.way has now.
func (t *Tree) saw(word int64) {
	s := &t.way
	if s.fresh = true; word != s.word {
		t.Stale++
		s.word, s.id, s.differs = word, 0, -1
		t.cfg.Cache.note(s.node, s.index, word)
	}
}

// find finds a key's leaf, and reports whether the key is there. If it is not, t.way has been read
// by this operation, and so has the leaf there, if any: one of another key, or a dead one.
func (t *Tree) find(key []byte) (bool, error) {
	for {
		if err := t.walk(key, t.root); err != nil {
			return false, err
		}
		there, err := t.decide(key)
		if err != nil || !t.sections.Expired() {
			return there, err
		}
		if err := t.again(key); err != nil {
			return false, err
		}
	}
}

// decide looks at the slot of t.way, and goes on where it leads down.
func (t *Tree) decide(key []byte) (bool, error) {
	for s := &t.way; ; {
		var err error
		switch what := kindOf(s.word); {
		case what == leaf:
			there, decided, err := t.compare(key)
			if err != nil || decided {
				return there, err
			}
		case what == inner && s.differs < 0:
			err = t.walk(key, blockOf(s.word))
		case !s.fresh:
			err = t.look()
		default:
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// look reads the slot of t.way.
func (t *Tree) look() error {
	at := t.at()
	word, err := t.w.GetFlush(at.Node(), at.Disp())
	if err == nil {
		t.saw(word)
	}
	return err
}

// compare reads the leaf at t.way, and reports whether it is of a key. It decides nothing if the
// slot of a copy leads elsewhere now. A leaf whose ID is not known counts if its slot is read before
// it. One whose ID is known counts if that is the same and the key is there.
func (t *Tree) compare(key []byte) (there, decided bool, err error) {
	s, f := &t.way, &t.found
	ref := blockOf(s.word)
	known := !s.fresh && s.id != 0
	var slot rma.Result
	both := false
	if at := t.at(); !s.fresh && !known && at.Node() == ref.Node() {
		slot, both = t.w.Get(at.Node(), at.Disp()), true
		t.w.Fence(at.Node())
	} else if !s.fresh && !known {
		if err := t.look(); err != nil || blockOf(s.word) != ref || kindOf(s.word) != leaf {
			return false, false, err
		}
	}
	if err := t.readLeaf(ref, min(words(len(key)), shortKey)); err != nil {
		return false, false, err
	}
	if both {
		was := s.word
		if t.saw(t.w.Value(slot)); s.word != was {
			return false, false, nil
		}
	}
	there = !f.dead() && f.size() == len(key)
	if there && len(key) > 8*shortKey {
		if err := t.readRest(words(len(key))); err != nil {
			return false, false, err
		}
	}
	there = there && bytes.Equal(f.key(), key)
	if known && (!there || f.id != s.id) { // it may be a leaf of a later life, which no slot leads to
		t.Stale++
		s.id = 0
		return false, false, nil
	}
	if there && !known {
		t.cfg.Cache.learn(s.node, s.index, s.word, f.id)
	}
	return there, true, nil
}

// readLeaf reads a leaf with so many words of its key.
func (t *Tree) readLeaf(ref remote.Ref, n int) error {
	f := &t.found
	f.ref = ref
	t.w.GetBulk(f.words[:readWords+n], ref.Node(), ref.Disp()+pointerWord)
	err := t.w.Flush(ref.Node())
	f.p, f.id = f.words[0], f.words[idWord-pointerWord]
	return err
}

// readRest reads what words of the key the first read does not have.
func (t *Tree) readRest(n int) error {
	f := &t.found
	t.w.GetBulk(f.words[readWords+shortKey:readWords+n], f.ref.Node(), f.ref.Disp()+leafWords+shortKey)
	return t.w.Flush(f.ref.Node())
}

// slot is where the words of the leaf in t.found are that other clients change.
func (t *Tree) slot(key []byte) cider.Slot {
	ref := t.found.ref
	return cider.Slot{Host: ref.Node(), Pointer: ref.Disp() + pointerWord, Lock: ref.Disp() + lockWord, Key: hash(key)}
}

// Search appends the value of a key to dst, and reports whether the key is there. It takes two round
// trips where copies are right. An error wraps ErrConfig for a key that is too long, ErrTorn, or is the
// transport's.
func (t *Tree) Search(key, dst []byte) ([]byte, bool, error) {
	if err := t.begin(key); err != nil {
		return dst, false, err
	}
	if out, there, done, err := t.sync.JoinSearch(key, dst); done || err != nil {
		return out, there, err
	}
	out, there, err := t.search(key, dst)
	return out, there, t.sync.LeaveSearch(key, out[len(dst):], there, err)
}

// search is Search by remote operations.
func (t *Tree) search(key, dst []byte) ([]byte, bool, error) {
	for {
		there, err := t.find(key)
		if err != nil || !there {
			return dst, false, err
		}
		f := &t.found
		ref, n := valueBlock(f.p)
		b := t.block[:min(n, len(t.block))]
		t.w.GetBulk(b, ref.Node(), ref.Disp())
		if err := t.w.Flush(ref.Node()); err != nil {
			return dst, false, err
		}
		v, err := value(b, f.id)
		switch {
		case t.sections.Expired():
			if err := t.again(key); err != nil {
				return dst, false, err
			}
		case err != nil:
			return dst, false, fmt.Errorf("art: key %q, block %#x: %w", key, ref, err)
		default:
			return append(dst, v...), true, nil
		}
	}
}

// value is the value in a block of a leaf.
func value(b []int64, id int64) ([]byte, error) {
	if len(b) < blockWords || b[ownerWord] != id || b[sumWord] != checksum(b) || uint64(b[sizeWord]) > uint64(8*(len(b)-blockWords)) {
		return nil, ErrTorn
	}
	return bytesOf(b[blockWords:])[:b[sizeWord]], nil
}
