package art

import (
	"fmt"

	"github.com/rmalock/rmalock/remote"
)

// A draft is what an insert has written and no other client has found yet.
type draft struct {
	leaf  []int64
	ref   remote.Ref // of the leaf; 0: nothing is written
	size  int        // words of the leaf
	id    int64
	value write
	nodes []remote.Ref
	words [8][nodeWords + maxFirst]int64 // of nodes, until the next Flush
	key   []byte                         // of the leaf that is in the way
}

// maxFirst is the most slots of a node without extents.
const maxFirst = 4

// Insert gives a key a value if it is not there, and reports whether it did. It takes two round trips
// where copies are right and no other client is there. An error wraps ErrConfig for a key or a value
// that is too long, remote.ErrFull, ErrTorn, or is the transport's.
func (t *Tree) Insert(key, data []byte) (bool, error) {
	if err := t.begins(key, data); err != nil {
		return false, err
	}
	t.draft.ref = 0
	there, err := t.find(key)
	for {
		if err != nil || there {
			break
		}
		if t.draft.ref == 0 {
			if err = t.drafts(key, data); err != nil {
				break
			}
		}
		var done bool
		if done, err = t.link(key); done {
			return true, nil
		}
		if err == nil {
			there, err = t.decide(key)
		}
	}
	if t.draft.ref != 0 && err == nil {
		if err = t.w.FlushAll(); err == nil {
			t.heap.Return(t.draft.ref, t.draft.size)
			err = t.draft.value.Discard()
		}
	}
	return false, err
}

// drafts writes the leaf of a key and its value.
func (t *Tree) drafts(key, data []byte) (err error) {
	d := &t.draft
	n := leafWords + words(len(key))
	if d.ref, err = t.heap.AllocFar(n); err != nil {
		return err
	}
	t.serial++
	d.id = keySize.With(creator.With(serial.With(0, t.serial), int64(t.c.Rank())+1), int64(len(key)))
	d.value = write{t: t, id: d.id, data: data}
	if err := d.value.put(); err != nil {
		return err
	}
	d.size = n
	b := d.leaf[:n]
	b[lockWord], b[epochWord], b[pointerWord], b[idWord] = 0, 0, pointer(d.value.ref, d.value.words), d.id
	fill(b[leafWords:], key)
	t.w.PutBulk(b, d.ref.Node(), d.ref.Disp())
	return nil
}

// settle has what was written come before a change of a word at a host.
func (t *Tree) settle(host int, others ...remote.Ref) error {
	d := &t.draft
	here := d.ref.Node() == host && d.value.ref.Node() == host
	for _, ref := range others {
		here = here && ref.Node() == host
	}
	if here {
		t.w.Fence(host)
		return nil
	}
	return t.w.FlushAll()
}

// link has the tree lead to the new leaf, from t.way. It reports false if another client was faster.
func (t *Tree) link(key []byte) (bool, error) {
	s, d := &t.way, &t.draft
	to := slotWord(0, leaf, d.ref)
	switch {
	case s.differs >= 0:
		return t.above(key, to)
	case s.word == unused && t.at() == 0:
		return t.extend(key, symbol.With(to, int64(symbolAt(key, depthOf(s.head)))))
	case kindOf(s.word) == leaf && !t.found.dead():
		return t.split(key, to)
	}
	to = symbol.With(to, int64(symbolAt(key, depthOf(s.head))))
	if err := t.settle(t.at().Node()); err != nil {
		return false, err
	}
	ref, id, was := t.found.ref, t.found.id, s.word
	if kindOf(was) == leaf && retired(id) != id { // a dead one, which its deleter has left or is about to take out
		if err := t.retire(ref, id); err != nil {
			return false, err
		}
	}
	won, err := t.swap(to)
	switch {
	case err != nil:
		return false, err
	case won && kindOf(was) == leaf:
		t.freeLeaf(ref, id)
	case won:
	case symbolOf(s.word) != symbolOf(to): // the slot is another symbol's now
		return false, t.walk(key, s.node)
	}
	if won {
		t.cfg.Cache.learn(s.node, s.index, to, d.id)
	}
	return won, nil
}

// extend gives the node of t.way another extent, whose first slot is for the new leaf.
func (t *Tree) extend(key []byte, first int64) (bool, error) {
	s := &t.way
	_, part := t.slotAt(s.node, &s.extent, s.index)
	if part == len(t.cfg.growth) {
		return false, fmt.Errorf("art: node %#x has more than %d symbols: %w", s.node, s.index, ErrTorn)
	}
	n := t.cfg.growth[part]
	ref, err := t.heap.AllocFar(n)
	if err != nil {
		return false, err
	}
	b := t.raw[:n]
	clear(b)
	b[0] = first
	t.w.PutBulk(b, ref.Node(), ref.Disp())
	if err := t.settle(s.node.Node(), ref); err != nil {
		return false, err
	}
	before, err := t.w.CompareAndSwapFlush(int64(ref), 0, s.node.Node(), s.node.Disp()+firstExtent+part-1)
	if err != nil || before == 0 {
		return err == nil, err
	}
	t.heap.Return(ref, n)
	return false, t.walk(key, s.node)
}

// above puts a node between t.way and the node below, whose head differs from the key.
func (t *Tree) above(key []byte, to int64) (bool, error) {
	s := &t.way
	i := s.differs - (depthOf(s.below) - prefixOf(s.below))
	t.draft.nodes = t.draft.nodes[:0]
	ref, err := t.node(key, s.differs, min(mostPrefix, s.differs-depthOf(s.head)-1),
		symbol.With(s.word, int64(prefixByte(s.below, i))+1), symbol.With(to, int64(symbolAt(key, s.differs))))
	if err != nil {
		return false, err
	}
	return t.replace(ref)
}

// split puts a node, or a row of them, between t.way and the leaf there, which is of another key.
func (t *Tree) split(key []byte, to int64) (bool, error) {
	s, d := &t.way, &t.draft
	n := words(t.found.size())
	if n > shortKey || n > words(len(key)) {
		if err := t.readLeaf(t.found.ref, n); err != nil {
			return false, err
		}
	}
	if t.found.dead() {
		return false, nil // meanwhile
	}
	d.key = append(d.key[:0], t.found.key()...)
	from := depthOf(s.head) + 1
	at := from
	for symbolAt(key, at) == symbolAt(d.key, at) {
		at++
	}
	d.nodes = d.nodes[:0]
	bytes := min(mostPrefix, at-from)
	ref, err := t.node(key, at, bytes, symbol.With(s.word, int64(symbolAt(d.key, at))), symbol.With(to, int64(symbolAt(key, at))))
	for err == nil && at-bytes > from {
		at -= bytes + 1
		bytes = min(mostPrefix, at-from)
		ref, err = t.node(key, at, bytes, slotWord(symbolAt(key, at), inner, ref))
	}
	if err != nil {
		return false, err
	}
	return t.replace(ref)
}

// node writes a new node of a depth with some slots.
func (t *Tree) node(key []byte, at, bytes int, slots ...int64) (remote.Ref, error) {
	d := &t.draft
	i := len(d.nodes)
	if i > 0 && i%len(d.words) == 0 {
		if err := t.w.FlushAll(); err != nil {
			return 0, err
		}
	}
	n := nodeWords + t.cfg.growth[0]
	b := d.words[i%len(d.words)][:n]
	clear(b)
	b[headWord] = headOf(key, at, bytes)
	copy(b[nodeWords:], slots)
	ref, err := t.heap.AllocFar(n)
	if err != nil {
		return 0, err
	}
	d.nodes = append(d.nodes, ref)
	t.w.PutBulk(b, ref.Node(), ref.Disp())
	return ref, nil
}

// replace has t.way lead to a new node, which leads to what was there.
func (t *Tree) replace(ref remote.Ref) (bool, error) {
	s, d := &t.way, &t.draft
	if err := t.settle(t.at().Node(), d.nodes...); err != nil {
		return false, err
	}
	won, err := t.swap(slotWord(symbolOf(s.word), inner, ref))
	if !won && err == nil {
		for _, ref := range d.nodes {
			t.heap.Return(ref, nodeWords+t.cfg.growth[0])
		}
	}
	return won, err
}
