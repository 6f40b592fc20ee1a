package art

import "github.com/rmalock/rmalock/remote"

// A node is a copy of an inner node.
type node struct {
	ref    remote.Ref
	head   int64
	extent [extents]remote.Ref
	slots  []int64 // of the node, and of the extents that it has
	ids    []int64 // in a Cache: ID of the leaf at each slot, 0 where it is not known
}

// A step is what a node says of a key.
type step struct {
	head    int64
	differs int // depth at which the key has another symbol than the head; -1 for none
	index   int // of the key's slot; if it has none, of the first unused one
	word    int64
	id      int64
}

// step looks for a key's slot.
func (n *node) step(key []byte) step {
	s := step{head: n.head, differs: differsAt(n.head, key)}
	if s.differs >= 0 {
		return s
	}
	sym := int64(symbolAt(key, depthOf(n.head)))
	for i, word := range n.slots {
		if word == unused {
			s.index = i
			return s
		}
		if symbol.Get(word) == sym {
			s.index, s.word = i, word
			if n.ids != nil {
				s.id = n.ids[i]
			}
			return s
		}
	}
	s.index = len(n.slots)
	return s
}

// slotAt is where slot i of a node is, which has some extents; 0 if it is in none of them. part is the
// extent, 0 for the node itself.
func (t *Tree) slotAt(ref remote.Ref, extent *[extents]remote.Ref, i int) (at remote.Ref, part int) {
	first := ref + nodeWords
	for part, n := range t.cfg.growth {
		if part > 0 {
			first = extent[part-1]
		}
		if i < n {
			if first == 0 {
				return 0, part
			}
			return first + remote.Ref(i), part
		}
		i -= n
	}
	return 0, len(t.cfg.growth)
}

// read reads a node into t.buf: the extents of an older copy at once, others after it.
func (t *Tree) read(ref remote.Ref) error {
	t.Misses++
	known := t.cfg.Cache.extents(ref)
	end := nodeWords + t.cfg.growth[0]
	t.w.GetBulk(t.raw[:end], ref.Node(), ref.Disp())
	for part := 1; ; {
		for ; part < len(t.cfg.growth) && known[part-1] != 0; part++ {
			e, n := known[part-1], t.cfg.growth[part]
			t.w.GetBulk(t.raw[end:end+n], e.Node(), e.Disp())
			end += n
		}
		if err := t.w.FlushAll(); err != nil {
			return err
		}
		for i := range known {
			known[i] = remote.Ref(t.raw[firstExtent+i])
		}
		if part == len(t.cfg.growth) || known[part-1] == 0 {
			t.buf = node{ref: ref, head: t.raw[headWord], extent: known, slots: t.raw[nodeWords:end]}
			t.cfg.Cache.put(&t.buf)
			return nil
		}
	}
}
