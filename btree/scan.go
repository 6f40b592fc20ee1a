package btree

import "github.com/rmalock/rmalock/remote"

// parallelReads is the most leaves that a scan reads at once. Sherman reads up to 32; network
// cards have 16 reads of a connection under way.
const parallelReads = 16

// Scan calls f for the pairs from from on, in the order of keys, until there are no more or f
// returns false. Each key is found as a Get would find it at some moment of the Scan; together
// they are no snapshot. f must not use the tree. It costs one round trip for up to 16 leaves. An error
// wraps ErrTorn or is the transport's.
func (t *Tree) Scan(from int64, f func(key, value int64) bool) error {
	for cursor := from; ; {
		first, err := t.descend(cursor, 0)
		if err != nil {
			return err
		}
		t.collect(first, cursor)
		if err := t.readBatch(); err != nil {
			return err
		}
		moved := false
		for _, n := range t.batch[:len(t.refs)] {
			if !n.whole() || !n.covers(cursor) {
				break // read alone below
			}
			if moved = true; !t.visit(n, cursor, f) || n.high() == endKey {
				return nil
			}
			cursor = n.high()
		}
		if moved {
			continue
		}
		n, _, err := t.readTo(first, cursor)
		if err != nil {
			return err
		}
		if !t.visit(n, cursor, f) || n.high() == endKey {
			return nil
		}
		cursor = n.high()
	}
}

// visit calls f for the pairs of a leaf from a key on.
func (t *Tree) visit(n node, from int64, f func(key, value int64) bool) bool {
	t.sorted = n.pairs(t.sorted)
	for _, p := range t.sorted {
		if p.key >= from && !f(p.key, p.value) {
			return false
		}
	}
	return true
}

// collect names the leaf of a key and those to the right of it, as the copy of their parent has
// them.
func (t *Tree) collect(first remote.Ref, key int64) {
	t.refs = append(t.refs[:0], first)
	ref := t.root
	for range 64 {
		if !t.cfg.Cache.get(ref, t.buf) || !t.buf.covers(key) {
			return
		}
		if t.buf.level() == 1 {
			break
		}
		ref = t.buf.child(key)
	}
	if t.buf.level() != 1 {
		return
	}
	t.sorted = t.buf.pairs(t.sorted)
	for _, p := range t.sorted {
		if p.key > key && len(t.refs) < parallelReads {
			t.refs = append(t.refs, remote.Ref(p.value))
		}
	}
}

// readBatch reads the leaves of t.refs in one round trip.
func (t *Tree) readBatch() error {
	for len(t.batch) < len(t.refs) {
		t.batch = append(t.batch, make(node, t.cfg.Node))
	}
	for i, ref := range t.refs {
		t.w.GetBulk(t.batch[i], ref.Node(), ref.Disp())
	}
	return t.w.FlushAll()
}
