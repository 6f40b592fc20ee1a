package art

import (
	"bytes"
	"fmt"

	"github.com/rmalock/rmalock/remote"
)

// A Shape is what a tree consists of.
type Shape struct {
	Keys    int
	Dead    int // leaves of keys that a client deleted and did not take out: it died
	Nodes   int // with the root
	Extents int
	Words   int64 // of all blocks
	Levels  int
}

// Check goes through the whole tree, at a time when no client works, and reports what is wrong: a
// symbol twice in a node or behind an unused slot, heads that do not meet, leaves that belong
// elsewhere, values that are not their leaf's. It calls found, if not nil, for each key.
func (t *Tree) Check(found func(key, value []byte)) (Shape, error) {
	if err := t.sections.Begin(); err != nil {
		return Shape{}, err
	}
	s := Shape{}
	err := t.checkNode(&s, t.root, nil, 1, found)
	return s, err
}

// wrong is an error of Check.
func wrong(format string, args ...any) error {
	return fmt.Errorf("art: %s: %w", fmt.Sprintf(format, args...), ErrTorn)
}

// checkNode goes through a node that the bytes way lead to.
func (t *Tree) checkNode(s *Shape, ref remote.Ref, way []byte, level int, found func(key, value []byte)) error {
	if err := t.read(ref); err != nil {
		return err
	}
	n := node{head: t.buf.head, slots: append([]int64(nil), t.buf.slots...), extent: t.buf.extent}
	s.Nodes++
	s.Levels = max(s.Levels, level)
	if ref != t.root {
		s.Words += t.farSize(nodeWords + t.cfg.growth[0])
	}
	for i, e := range n.extent {
		if e != 0 {
			s.Extents++
			s.Words += t.farSize(t.cfg.growth[i+1])
		}
	}
	at, first := depthOf(n.head), depthOf(n.head)-prefixOf(n.head)
	if first > len(way) || at < len(way) {
		return wrong("a node of depth %d with %d bytes behind %q", at, prefixOf(n.head), way)
	}
	for i := first; i < at; i++ {
		b := prefixByte(n.head, i-first)
		if i < len(way) && way[i] != b {
			return wrong("a node whose byte %d is %#x, behind %q", i, b, way)
		}
		if i >= len(way) {
			way = append(way[:len(way):len(way)], b)
		}
	}
	seen, ended := map[int]bool{}, false
	for _, word := range n.slots {
		sym := symbolOf(word)
		if word == unused {
			ended = true
			continue
		}
		if ended || seen[sym] {
			return wrong("symbol %d twice, or behind an unused slot, in a node behind %q", sym, way)
		}
		seen[sym] = true
		next := way
		if sym > 0 {
			next = append(way[:len(way):len(way)], byte(sym-1))
		}
		var err error
		switch kindOf(word) {
		case leaf:
			err = t.checkLeaf(s, blockOf(word), next, sym == 0, found)
		case inner:
			err = t.checkNode(s, blockOf(word), next, level+1, found)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLeaf looks at a leaf whose key begins with the bytes way, or is that.
func (t *Tree) checkLeaf(s *Shape, ref remote.Ref, way []byte, whole bool, found func(key, value []byte)) error {
	if err := t.readLeaf(ref, min(words(t.cfg.MostKey), shortKey)); err != nil {
		return err
	}
	f := &t.found
	if n := words(f.size()); n > shortKey && f.size() <= t.cfg.MostKey {
		if err := t.readRest(n); err != nil {
			return err
		}
	}
	s.Words += t.farSize(leafWords + words(f.size()))
	if f.dead() {
		s.Dead++
		return nil
	}
	if f.size() > t.cfg.MostKey || !bytes.HasPrefix(f.key(), way) || whole && f.size() != len(way) {
		return wrong("a leaf of %d bytes with another key, behind %q", f.size(), way)
	}
	b, n := valueBlock(f.p)
	if n > len(t.block) {
		return wrong("key %q: a value of %d words", f.key(), n)
	}
	t.w.GetBulk(t.block[:n], b.Node(), b.Disp())
	if err := t.w.Flush(b.Node()); err != nil {
		return err
	}
	v, err := value(t.block[:n], f.id)
	if err != nil {
		return wrong("key %q: its value", f.key())
	}
	s.Keys++
	s.Words += int64(t.heap.Size(n))
	if found != nil {
		found(f.key(), v)
	}
	return nil
}

// farSize is the words of a block of far words.
func (t *Tree) farSize(n int) int64 {
	_, far := t.cfg.classes()
	for _, size := range far {
		if n <= size {
			return int64(size)
		}
	}
	return 0
}
