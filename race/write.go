package race

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/remote"
)

// Insert gives a key a value if it is not there, and reports whether it did. It takes three round
// trips without competition and splits. An error wraps ErrConfig for a key and a value that are longer
// than Config.Most, ErrFull, remote.ErrFull, ErrTorn, or is the transport's.
func (t *Table) Insert(key, value []byte) (bool, error) {
	if err := t.begin(); err != nil {
		return false, err
	}
	t.aim(key)
	t.write = write{t: t, value: value}
	if err := t.write.put(); err != nil {
		return false, err
	}
	t.ahead = true
	seen, rival := false, int64(0)
	for {
		v, err := t.insert(&seen, &rival)
		if errors.Is(err, errAgain) || err == nil && v == retry {
			if err = t.begin(); err == nil {
				continue
			}
		}
		if v != alone {
			err = errors.Join(err, t.drop(seen))
		}
		return err == nil && v == alone, err
	}
}

// drop gives the block of an insert back.
func (t *Table) drop(seen bool) error {
	if seen {
		t.heap.Free(t.write.ref, t.write.words)
		return nil
	}
	return t.write.Discard()
}

// A verdict is what became of a try to insert.
type verdict int

const (
	retry verdict = iota
	there         // the key is in the table
	alone         // this client has the key, or may commit it
)

// insert tries once. It puts the key into an empty slot as tentative, reads the buckets again, and
// commits it if no other client has the key there. Of two clients that insert a key at least one
// sees the other, since each reads after it has put.
func (t *Table) insert(seen *bool, rival *int64) (verdict, error) {
	im := &t.img
	if err := t.settle(im); err != nil {
		return retry, err
	}
	if i, _, err := t.same(im, 0, committed); i >= 0 || err != nil {
		return there, err
	}
	i := t.room(im)
	if i < 0 {
		return retry, t.grow(im)
	}
	host, _ := t.place(im.segment)
	at, was := t.disp(im, i), im.w[i]
	d, _ := t.header(im.segment, im.w[i/t.width*t.width])
	w := mark.With(t.pointer(t.write.ref, t.write.words, t.to.print)|was, max(mark.Get(was), t.doublings(d)))
	try := state.With(w, tentative)
	r := t.w.CompareAndSwap(try, was, host, at)
	t.w.Fence(host)
	t.issue(im, im.segment)
	if err := t.w.Flush(host); err != nil || t.w.Value(r) != was {
		return retry, err
	}
	*seen = true
	v, err := t.contend(im, at, rival)
	if err != nil || v != alone {
		t.stats.Undone++
		_, uerr := t.w.CompareAndSwapFlush(emptied(try), try, host, at)
		return v, errors.Join(err, uerr)
	}
	found, err := t.w.CompareAndSwapFlush(w, try, host, at)
	if err != nil || found != try {
		t.stats.Lost++
		return retry, err
	}
	return alone, nil
}

// contend looks whether the tentative key at a displacement can be committed: no other client has
// committed the key, and what others try is undone. The image was read after the key was put. Of
// two clients the one with the lower slot goes on; the other one gives way once, and not if it
// sees the same again, which may be a dead client's.
func (t *Table) contend(im *image, own int, rival *int64) (verdict, error) {
	for {
		if t.torn(im) {
			t.stats.Torn++
		} else if _, moved := t.moved(im); moved || t.closed(im) >= 0 {
			return retry, nil
		} else if i, _, err := t.same(im, 0, committed); i >= 0 || err != nil {
			return there, err
		} else if v, again, err := t.outdo(im, own, rival); !again || err != nil {
			return v, err
		}
		if err := t.read(im, im.segment); err != nil {
			return retry, err
		}
	}
}

// outdo takes back what others try with the key. again says that one was faster.
func (t *Table) outdo(im *image, own int, rival *int64) (v verdict, again bool, err error) {
	host, _ := t.place(im.segment)
	for i := range im.w {
		if t.disp(im, i) == own {
			im.w[i] = emptied(im.w[i])
		}
	}
	for from := 0; ; {
		i, _, err := t.same(im, from, tentative)
		if i < 0 || err != nil {
			return alone, false, err
		}
		from = i + 1
		at, w := t.disp(im, i), im.w[i]
		if at < own && *rival != w {
			*rival = w
			return retry, false, nil
		}
		found, err := t.w.CompareAndSwapFlush(emptied(w), w, host, at)
		if err != nil || found != w && found != emptied(w) {
			return retry, true, err
		}
	}
}

// room is an empty slot, or -1: of the two choices the one with more of them, and there in the
// main bucket first.
func (t *Table) room(im *image) int {
	most, choice := 0, 0
	for c := range 2 {
		n := 0
		for j := 2 * c; j < 2*c+2; j++ {
			for i := j*t.width + 1; i < (j+1)*t.width; i++ {
				if empty(im.w[i]) {
					n++
				}
			}
		}
		if n > most {
			most, choice = n, c
		}
	}
	if most == 0 {
		return -1
	}
	main := t.to.main[choice] % 2 // which of the two buckets of the choice is the main one
	for _, j := range [2]int{2*choice + main, 2*choice + 1 - main} {
		for i := j*t.width + 1; i < (j+1)*t.width; i++ {
			if empty(im.w[i]) {
				return i
			}
		}
	}
	return -1
}

// settle reads the buckets where a change of a key belongs. Those in transit it moves first.
func (t *Table) settle(im *image) error {
	for {
		segment := t.find(t.to.hash)
		if err := t.read(im, segment); err != nil {
			return err
		}
		if j := t.closed(im); j >= 0 {
			if err := t.move(parent(segment), t.birth(segment)-1, t.bucket(im, j)); err != nil {
				return err
			}
		} else if _, moved := t.moved(im); !moved {
			return nil
		}
	}
}

// Update gives a key that is there another value, and reports whether it was there. It is complete
// when Update returns: a Search that begins later, of any client, finds this value or a later one.
// Optimistically it takes three round trips without competition. Errors are those of Insert but
// ErrFull; after one the key has the old value or the new one.
func (t *Table) Update(key, value []byte) (bool, error) {
	if err := t.begin(); err != nil {
		return false, err
	}
	if there, done, err := t.sync.JoinUpdate(key); done || err != nil {
		return there, err
	}
	there, err := t.change(key, value, false)
	return there, t.sync.LeaveUpdate(key, there, err)
}

// Delete takes a key out, and reports whether it was there. Cost and errors are those of Update.
func (t *Table) Delete(key []byte) (bool, error) {
	if err := t.begin(); err != nil {
		return false, err
	}
	return t.change(key, nil, true)
}

// Put gives a key a value, there or not: Update and Insert by turns until one does.
func (t *Table) Put(key, value []byte) error {
	for {
		if done, err := t.Update(key, value); done || err != nil {
			return err
		}
		if done, err := t.Insert(key, value); done || err != nil {
			return err
		}
	}
}

// change updates or deletes. Where the key has moved, or the slot is another key's, it looks again.
func (t *Table) change(key, value []byte, deletes bool) (bool, error) {
	for {
		if err := t.stay(); err != nil {
			return false, err
		}
		t.aim(key)
		im := &t.img
		if err := t.settle(im); err != nil {
			return false, err
		}
		i, _, err := t.same(im, 0, committed)
		if errors.Is(err, errAgain) {
			continue
		}
		if i < 0 || err != nil {
			return false, err
		}
		at, p := t.slot(im, i), im.w[i]
		t.write = write{t: t, p: p, host: at.Host, value: value, deletes: deletes}
		became, err := t.sync.Change(at, p, &t.write, deletes)
		switch {
		case errors.Is(err, errAgain):
			if err := t.write.Discard(); err != nil {
				return false, err
			}
			if deletes {
				if err := t.leave(im.segment, t.bucket(im, i/t.width), i%t.width); err != nil {
					return false, err
				}
			}
		case err != nil || became == cider.Changed:
			return err == nil, err
		}
	}
}

// leave is for a deletion that came to its turn, as the last of the slot's queue, and found the key
// frozen. It takes the old slot from it, since its lock has the next version already.
func (t *Table) leave(segment, bucket, i int) error {
	at := t.slotAt(segment, bucket, i)
	w, err := t.w.GetFlush(at.Host, at.Pointer)
	if err != nil || empty(w) || state.Get(w) != frozen {
		return err
	}
	if err := t.move(segment, t.initial+int(mark.Get(w))-1, bucket); err != nil {
		return err
	}
	_, err = t.w.CompareAndSwapFlush(gone(w), w, at.Host, at.Pointer)
	return err
}

// A write is the Writer of a change.
type write struct {
	t       *Table
	p       int64 // the slot as the client has found it
	host    int   // the slot's
	value   []byte
	deletes bool
	clears  bool // it takes the old slot of a key that has moved
	ref     remote.Ref
	words   int // 0: no block is written
}

// Next is errAgain for a slot that is frozen, or another key's.
func (x *write) Next(p int64) (int64, error) {
	switch same := wraps.Mask() | state.Mask() | print.Mask(); {
	case (p^x.p)&same != 0 || x.clears && p != x.p:
		return 0, errAgain
	case x.deletes:
		return gone(p), nil
	case x.words == 0:
		if err := x.put(); err != nil {
			return 0, err
		}
		if x.ref.Node() == x.host {
			x.t.w.Fence(x.host)
		} else if err := x.t.w.Flush(x.ref.Node()); err != nil {
			return 0, err
		}
	}
	return x.t.pointer(x.ref, x.words, x.t.to.print) | p&marks, nil
}

// put writes the block. The caller completes it.
func (x *write) put() error {
	t := x.t
	if len(t.to.key)+len(x.value) > t.cfg.Most {
		return fmt.Errorf("race: a key of %d bytes with a value of %d, want together at most Config.Most, which is %d: %w",
			len(t.to.key), len(x.value), t.cfg.Most, ErrConfig)
	}
	b := fill(t.buf, &t.to, x.value)
	ref, err := t.heap.Alloc(len(b))
	if err != nil {
		return err
	}
	x.ref, x.words = ref, len(b)
	t.w.PutBulk(b, ref.Node(), ref.Disp())
	return nil
}

// Replaced frees the block that was there, but one that has moved.
func (x *write) Replaced(p int64) {
	if !x.clears {
		x.t.heap.Free(x.t.block(p))
	}
}

// Discard takes the block back.
func (x *write) Discard() error {
	if x.words == 0 {
		return nil
	}
	if err := x.t.w.Flush(x.ref.Node()); err != nil {
		return err
	}
	x.t.heap.Return(x.ref, x.words)
	x.words = 0
	return nil
}
