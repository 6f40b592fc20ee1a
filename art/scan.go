package art

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/remote"
)

// parallelReads is the most leaves that a scan reads at once: network cards have 16 reads of a
// connection under way.
const parallelReads = 16

// passKeys is the number of keys after which a scan lets others use blocks again.
const passKeys = 1024

// A scan is a Scan under way.
type scan struct {
	from   []byte    // the least key that is still wanted
	levels [][]int64 // by depth in the tree: slots, in the order of symbols
	batch  [parallelReads]batched
	n      int // in batch
	left   int // keys of this pass
	f      func(key, value []byte) bool
	ended  bool // f wants no more
}

// A batched is a leaf whose key and value are read with those of others.
type batched struct {
	ref   remote.Ref
	leaf  []int64
	value []int64
}

// Scan calls f for the keys from from on, in their order, until there are no more or f returns
// false. Each key is found as a Search would find it at some moment of the Scan; together they
// are no snapshot. The key and the value are f's until it returns. f must not use the tree. It takes a
// GetBulk for each node, and two round trips for 16 leaves. Errors are those of Search.
func (t *Tree) Scan(from []byte, f func(key, value []byte) bool) error {
	x := &t.scan
	x.from, x.f, x.ended = append(x.from[:0], from...), f, false
	for {
		if err := t.sections.Begin(); err != nil {
			return err
		}
		x.left, x.n = passKeys, 0
		err := t.scanNode(t.root, 0, true)
		if err == nil {
			err = t.flushBatch()
		}
		expired := t.sections.Expired()
		if expired || x.left <= 0 {
			if err := t.Rest(); err != nil {
				return err
			}
		}
		if expired {
			continue
		}
		if err != nil || x.ended || x.left > 0 {
			return err
		}
	}
}

// over reports whether this pass is to end.
func (x *scan) over() bool { return x.ended || x.left <= 0 }

// scanNode visits the keys of a node. tight says that the bytes on the way there are those of the
// first key that is wanted.
func (t *Tree) scanNode(ref remote.Ref, level int, tight bool) error {
	if err := t.read(ref); err != nil {
		return err
	}
	x := &t.scan
	if len(x.levels) == level {
		x.levels = append(x.levels, nil)
	}
	at := depthOf(t.buf.head)
	for i, n := 0, prefixOf(t.buf.head); i < n && tight; i++ {
		has, wants := int(prefixByte(t.buf.head, i))+1, symbolAt(x.from, at-n+i)
		if has < wants {
			return nil
		}
		tight = has == wants
	}
	least := 0
	if tight {
		least = symbolAt(x.from, at)
	}
	slots := x.levels[level][:0]
	for _, word := range t.buf.slots {
		if what := kindOf(word); (what == leaf || what == inner) && symbolOf(word) >= least {
			slots = append(slots, word)
		}
	}
	slices.SortFunc(slots, func(a, b int64) int { return symbolOf(a) - symbolOf(b) })
	x.levels[level] = slots
	for _, word := range slots {
		var err error
		if kindOf(word) == leaf {
			if x.n == parallelReads {
				err = t.flushBatch()
			}
			x.batch[x.n].ref = blockOf(word)
			x.n++
		} else if err = t.flushBatch(); err == nil && !x.over() {
			err = t.scanNode(blockOf(word), level+1, tight && symbolOf(word) == least)
		}
		if err != nil || x.over() {
			return err
		}
	}
	return nil
}

// flushBatch reads the leaves of the batch and their values, and calls f for those that are
// wanted.
func (t *Tree) flushBatch() error {
	x := &t.scan
	all := x.batch[:x.n]
	x.n = 0
	if x.ended || len(all) == 0 {
		return nil
	}
	longest := words(t.cfg.MostKey)
	for i := range all {
		b := &all[i]
		if b.leaf == nil {
			b.leaf, b.value = make([]int64, readWords+max(longest, shortKey)), make([]int64, len(t.block))
		}
		t.w.GetBulk(b.leaf[:readWords+min(longest, shortKey)], b.ref.Node(), b.ref.Disp()+pointerWord)
	}
	if err := t.w.FlushAll(); err != nil {
		return err
	}
	for i := range all {
		b := &all[i]
		p, id := b.leaf[0], b.leaf[1]
		if dead(p, id) {
			b.ref = 0
			continue
		}
		ref, n := valueBlock(p)
		b.value = b.value[:min(n, cap(b.value))]
		t.w.GetBulk(b.value, ref.Node(), ref.Disp())
		if more := words(int(keySize.Get(id))) - shortKey; more > 0 && more <= longest-shortKey {
			t.w.GetBulk(b.leaf[readWords+shortKey:][:more], b.ref.Node(), b.ref.Disp()+leafWords+shortKey)
		}
	}
	if err := t.w.FlushAll(); err != nil {
		return err
	}
	for i := range all {
		b := &all[i]
		if b.ref == 0 {
			continue
		}
		size := int(keySize.Get(b.leaf[1]))
		v, err := value(b.value, b.leaf[1])
		if err != nil || size > t.cfg.MostKey {
			return fmt.Errorf("art: leaf %#x in a scan: %w", b.ref, ErrTorn)
		}
		key := bytesOf(b.leaf[readWords:])[:size]
		if bytes.Compare(key, x.from) < 0 {
			continue
		}
		x.from = append(append(x.from[:0], key...), 0) // the next key
		x.left--
		if x.ended = !x.f(key, v); x.ended {
			return nil
		}
	}
	return nil
}
