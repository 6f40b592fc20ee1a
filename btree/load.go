package btree

import (
	"fmt"

	"github.com/rmalock/rmalock/remote"
)

// Load fills an empty tree with n pairs, in the order of their keys, as one client that works alone.
// Nodes are four fifths full. It costs one PutBulk a node. An error wraps ErrConfig if the tree has a
// root, or remote.ErrFull.
func (t *Tree) Load(n int, pairOf func(i int) (key, value int64)) error {
	if v, err := t.w.GetFlush(0, rootDisp); err != nil || v != 0 {
		if err == nil {
			err = fmt.Errorf("btree: Load of a tree that has a root: %w", ErrConfig)
		}
		return err
	}
	i := 0
	nodes, err := t.loadLevel(0, func() (p pair, ok bool) {
		if i == n {
			return p, false
		}
		p.key, p.value = pairOf(i)
		i++
		return p, true
	})
	for level := 1; err == nil && len(nodes) > 1; level++ {
		below := nodes
		nodes, err = t.loadLevel(level, func() (p pair, ok bool) {
			if len(below) == 0 {
				return p, false
			}
			p, below = below[0], below[1:]
			return p, true
		})
	}
	if err != nil {
		return err
	}
	t.root = remote.Ref(nodes[0].value)
	before, err := t.w.CompareAndSwapFlush(nodes[0].value, 0, 0, rootDisp)
	if err == nil && before != 0 {
		err = fmt.Errorf("btree: Load while another client made a root: %w", ErrConfig)
	}
	return err
}

// loadLevel writes the nodes of a level, and returns their least keys and names.
func (t *Tree) loadLevel(level int, next func() (pair, bool)) (nodes []pair, err error) {
	most := max(2, t.other.slots()*4/5)
	ref, err := t.heap.Alloc(t.cfg.Node)
	if err != nil {
		return nil, err
	}
	low, group := int64(firstKey), []pair{}
	write := func(high int64, sibling remote.Ref) error {
		leftmost, pairs := int64(0), group
		if level > 0 {
			leftmost, pairs = group[0].value, group[1:]
		}
		t.other.fill(level, 0, low, high, sibling, leftmost, pairs)
		t.w.PutBulk(t.other, ref.Node(), ref.Disp())
		nodes = append(nodes, pair{low, int64(ref)})
		return t.w.Flush(ref.Node())
	}
	for p, ok := next(); ok; p, ok = next() {
		if len(group) == most {
			sibling, err := t.heap.Alloc(t.cfg.Node)
			if err != nil {
				return nil, err
			}
			if err := write(p.key, sibling); err != nil {
				return nil, err
			}
			ref, low, group = sibling, p.key, group[:0]
		}
		group = append(group, p)
	}
	return nodes, write(endKey, 0)
}
