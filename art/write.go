package art

import (
	"fmt"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/remote"
)

// Update gives a key that is there another value, and reports whether it was there. It is complete
// when Update returns: a Search that begins later, of any client, finds this value or a later one.
// Optimistically it takes two round trips where copies are right. Errors are those of Insert; after
// one the key has the old value or the new one.
func (t *Tree) Update(key, data []byte) (bool, error) {
	if err := t.begins(key, data); err != nil {
		return false, err
	}
	if there, done, err := t.sync.JoinUpdate(key); done || err != nil {
		return there, err
	}
	there, err := t.change(key, data, false)
	return there, t.sync.LeaveUpdate(key, there, err)
}

// Delete takes a key out, and reports whether it was there. Optimistically it takes four round trips
// where copies are right. Errors are those of Search.
func (t *Tree) Delete(key []byte) (bool, error) {
	if err := t.begin(key); err != nil {
		return false, err
	}
	return t.change(key, nil, true)
}

// Put gives a key a value, there or not: Update and Insert by turns until one does.
func (t *Tree) Put(key, data []byte) error {
	for {
		if done, err := t.Update(key, data); done || err != nil {
			return err
		}
		if done, err := t.Insert(key, data); done || err != nil {
			return err
		}
	}
}

// change updates or deletes: the pointer of the key's leaf, which stays where it is while the key
// is there.
func (t *Tree) change(key, data []byte, deletes bool) (bool, error) {
	for {
		there, err := t.find(key)
		if err != nil || !there {
			return false, err
		}
		at := t.slot(key)
		t.write = write{t: t, host: at.Host, id: t.found.id, data: data, deletes: deletes}
		became, err := t.sync.Change(at, t.found.p, &t.write, deletes)
		if err != nil || became == cider.Absent {
			return false, err
		}
		if became == cider.Changed {
			if deletes {
				err = t.unlink(key)
			}
			return true, err
		}
	}
}

// begins begins a change of a key to a value.
func (t *Tree) begins(key, data []byte) error {
	if len(data) > t.cfg.MostValue {
		return fmt.Errorf("art: a value of %d bytes, want at most Config.MostValue, which is %d: %w", len(data), t.cfg.MostValue, ErrConfig)
	}
	return t.begin(key)
}

// unlink takes the leaf in t.found out of the tree, whose key this client has deleted, and frees
// it; unless another client has put a new leaf in its place. The leaf may have moved down, with
// its slot a node's now.
func (t *Tree) unlink(key []byte) error {
	ref, id := t.found.ref, t.found.id
	if err := t.retire(ref, id); err != nil {
		return err
	}
	for s := &t.way; ; {
		var err error
		switch what := kindOf(s.word); {
		case what == leaf && blockOf(s.word) == ref:
			won, err := t.swap(slotWord(symbolOf(s.word), vacant, 0))
			if won {
				t.freeLeaf(ref, id)
			}
			if won || err != nil {
				return err
			}
		case what == inner && s.differs < 0:
			err = t.walk(key, blockOf(s.word))
		case !s.fresh:
			err = t.look()
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// retire takes the ID of a dead leaf away, before its block is freed: no client then takes a later
// leaf there for this one.
func (t *Tree) retire(ref remote.Ref, id int64) error {
	_, err := t.w.CompareAndSwapFlush(retired(id), id, ref.Node(), ref.Disp()+idWord)
	return err
}

// freeLeaf frees a leaf that this client has taken out of the tree.
func (t *Tree) freeLeaf(ref remote.Ref, id int64) {
	t.heap.Free(ref, leafWords+words(int(keySize.Get(id))))
}

// swap changes the slot of t.way if it is as t.way says, and reports whether it was.
func (t *Tree) swap(to int64) (bool, error) {
	at, from := t.at(), t.way.word
	before, err := t.w.CompareAndSwapFlush(to, from, at.Node(), at.Disp())
	if err != nil {
		return false, err
	}
	if before == from {
		t.cfg.Cache.note(t.way.node, t.way.index, to)
		return true, nil
	}
	t.saw(before)
	return false, nil
}

// A write is the Writer of an update or a deletion.
type write struct {
	t       *Tree
	host    int // of the leaf
	id      int64
	data    []byte
	deletes bool
	ref     remote.Ref
	words   int // 0: the block is not written
}

// Next writes the value to a block of its own, before the pointer leads to it.
func (x *write) Next(int64) (int64, error) {
	if x.deletes {
		return 0, nil
	}
	if x.words == 0 {
		if err := x.put(); err != nil {
			return 0, err
		}
		if x.ref.Node() == x.host {
			x.t.w.Fence(x.host)
		} else if err := x.t.w.Flush(x.ref.Node()); err != nil {
			return 0, err
		}
	}
	return pointer(x.ref, x.words), nil
}

// put writes the block.
func (x *write) put() (err error) {
	t := x.t
	n := blockWords + words(len(x.data))
	if x.ref, err = t.heap.Alloc(n); err != nil {
		return err
	}
	x.words = n
	b := t.block[:n]
	fill(b[blockWords:], x.data)
	b[ownerWord], b[sizeWord] = x.id, int64(len(x.data))
	b[sumWord] = checksum(b)
	t.w.PutBulk(b, x.ref.Node(), x.ref.Disp())
	return nil
}

// Replaced frees the block that was there.
func (x *write) Replaced(p int64) { x.t.heap.Free(valueBlock(p)) }

// Discard takes the block back.
func (x *write) Discard() error {
	if x.words == 0 {
		return nil
	}
	if err := x.t.w.Flush(x.ref.Node()); err != nil {
		return err
	}
	x.t.heap.Return(x.ref, x.words)
	return nil
}
