package btree

import (
	"fmt"

	"github.com/rmalock/rmalock/remote"
)

// Check goes through the whole tree, at a time when no client works, and reports what is wrong. On
// each level these are fences that do not meet, keys outside of them or twice, and nodes of another
// level. They are also nodes that their parent does not name, if the level below has others. It
// calls found, if not nil, for each pair.
func (t *Tree) Check(found func(key, value int64)) error {
	if err := t.findRoot(); err != nil {
		return err
	}
	if err := t.read(t.root, t.buf); err != nil {
		return err
	}
	left := t.root
	for level := t.buf.level(); ; level-- {
		below, err := t.checkLevel(left, level, found)
		if err != nil || level == 0 {
			return err
		}
		left = below
	}
}

// checkLevel goes through a level from its left end, and returns that of the level below.
func (t *Tree) checkLevel(left remote.Ref, level int, found func(key, value int64)) (below remote.Ref, err error) {
	low := int64(firstKey)
	for ref := left; ; ref = t.buf.sibling() {
		if err := t.read(ref, t.buf); err != nil {
			return 0, err
		}
		n := t.buf
		if n.level() != level || n.low() != low {
			return 0, fmt.Errorf("btree: node of level %d from key %d, want level %d from key %d: %w", n.level(), n.low(), level, low, ErrTorn)
		}
		t.sorted = n.pairs(t.sorted)
		for i, p := range t.sorted {
			if !n.covers(p.key) || i > 0 && t.sorted[i-1].key == p.key {
				return 0, fmt.Errorf("btree: key %d in a node from %d to %d, or twice there: %w", p.key, n.low(), n.high(), ErrTorn)
			}
			if level == 0 && found != nil {
				found(p.key, p.value)
			}
			if level > 0 {
				if err := t.read(remote.Ref(p.value), t.other); err != nil {
					return 0, err
				}
				if t.other.low() != p.key {
					return 0, fmt.Errorf("btree: key %d leads to a node from %d: %w", p.key, t.other.low(), ErrTorn)
				}
			}
		}
		if ref == left && level > 0 {
			below = remote.Ref(n[leftmostWord])
		}
		if n.high() == endKey {
			return below, nil
		}
		low = n.high()
	}
}
