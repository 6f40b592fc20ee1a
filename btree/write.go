package btree

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/remote"
)

// lockTo locks a node, or the one to the right of it that covers a key, and reads it into t.buf.
// It holds one lock at a time.
func (t *Tree) lockTo(ref remote.Ref, key int64) (remote.Ref, error) {
	for {
		if err := t.locks.lock(ref, lock.Exclusive); err != nil {
			return 0, err
		}
		err := t.readLocked(ref, t.buf)
		if err == nil && t.buf.covers(key) {
			return ref, nil
		}
		if err := errors.Join(err, t.locks.unlock(ref, lock.Exclusive)); err != nil {
			return 0, err
		}
		if ref = t.right(key); ref == 0 {
			return 0, fmt.Errorf("btree: no node covers key %d: %w", key, ErrTorn)
		}
	}
}

// putSlot writes a slot of t.buf. The unlock completes it, in the same doorbell where the locks are the
// tree's own.
func (t *Tree) putSlot(ref remote.Ref, i int) {
	t.w.PutBulk(t.buf.slot(i), ref.Node(), ref.Disp()+headerWords+i*slotWords)
}

// insert puts a pair into a node of a level, at or to the right of ref, and splits it if it is
// full.
func (t *Tree) insert(ref remote.Ref, level int, p pair) error {
	ref, err := t.lockTo(ref, p.key)
	if err != nil {
		return err
	}
	i := t.buf.find(p.key)
	if i < 0 {
		i = t.buf.room()
	}
	if i >= 0 {
		t.buf.set(i, p.key, p.value, true)
		t.putSlot(ref, i)
		return t.locks.unlock(ref, lock.Exclusive)
	}
	up, err := t.split(ref, level, p)
	if err = errors.Join(err, t.locks.unlock(ref, lock.Exclusive)); err != nil {
		return err
	}
	return t.link(level+1, up)
}

// split moves the upper half of the node in t.buf, with a pair more, to a new node on its right. It
// returns the new node and its least key, for the parent. The new node is complete before the old
// one leads to it; the unlock completes the old one.
func (t *Tree) split(ref remote.Ref, level int, p pair) (up pair, err error) {
	n := t.buf
	all := append(n.pairs(t.sorted), p)
	t.sorted = all
	for i := len(all) - 1; i > 0 && all[i].key < all[i-1].key; i-- {
		all[i], all[i-1] = all[i-1], all[i]
	}
	half := len(all) / 2
	low, leftmost, upper := all[half].key, int64(0), all[half:]
	if level > 0 { // the middle key moves up
		leftmost, upper = all[half].value, all[half+1:]
	}
	right, err := t.heap.Alloc(t.cfg.Node)
	if err != nil {
		return up, err
	}
	t.other.fill(level, 0, low, n.high(), n.sibling(), leftmost, upper)
	t.w.PutBulk(t.other, right.Node(), right.Disp())
	if err := t.w.Flush(right.Node()); err != nil {
		return up, err
	}
	n.fill(level, n.version()+1, n.low(), low, right, n[leftmostWord], all[:half])
	t.w.PutBulk(n, ref.Node(), ref.Disp())
	return pair{low, int64(right)}, nil
}

// link puts a new node into the level above it, which may be a new root. Until then the node is found
// by its left neighbour.
func (t *Tree) link(level int, up pair) error {
	for {
		ref, err := t.descend(up.key, level)
		if err != nil {
			return err
		}
		if ref != 0 {
			t.cfg.Cache.drop(ref)
			return t.insert(ref, level, up)
		}
		from := t.root
		if err := t.read(from, t.buf); err != nil {
			return err
		}
		if t.buf.level() != level-1 {
			continue
		}
		t.other.fill(level, 0, firstKey, endKey, 0, int64(from), []pair{up})
		if grown, err := t.grow(from); grown || err != nil {
			return err
		}
	}
}
