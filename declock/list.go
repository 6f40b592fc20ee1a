package declock

import "github.com/rmalock/rmalock/rma"

// This file is the list of the ranks of a node that wait for a local lock: the wq of Figure 9.

// A rank that waits for a local lock: what it wants, and the next in the list. And how it is woken.
var (
	wantNext  = rma.Field{Name: "next", Shift: 0, Bits: 21}
	wantMode  = rma.Field{Name: "mode", Shift: 21, Bits: 1}
	wantStamp = rma.Field{Name: "stamp", Shift: 22, Bits: 16}
)

var (
	wakeHow  = rma.Field{Name: "how", Shift: 0, Bits: 2}
	wakeLock = rma.Field{Name: "lock", Shift: 2, Bits: 32}
)

const (
	asleep     int64 = iota
	wakeHolds        // the rank holds the lock
	wakeTold         // the same, and a holder before may have died
	wakeQueues       // the rank takes the lock for the node
)

// append puts this rank at the end of the list of those that wait (F10:9).
func (t *Table) append(r *local, k *member) error {
	me := t.client(k) + 1
	want := wantStamp.With(wantMode.With(0, int64(k.mode)), k.stamp)
	t.near.Put(want, t.c.Rank(), t.wantAt(k.slot))
	t.near.Put(wakeLock.With(asleep, int64(k.id)), t.c.Rank(), t.wakeAt(k.slot))
	if err := t.near.Flush(t.c.Rank()); err != nil {
		return err
	}
	if tail := queueTail.Get(r.queue); tail != 0 {
		if err := t.link(tail, me); err != nil {
			return err
		}
	} else {
		r.queue = queueHead.With(r.queue, me)
	}
	r.queue = queueTail.With(r.queue, me)
	return nil
}

// want is what a rank of a list wants. at is its client + 1.
func (t *Table) want(at int64) (int64, error) {
	return t.near.GetFlush(int((at-1)/maxHeld), t.wantAt(int((at-1)%maxHeld)))
}

// link makes next the rank behind at.
func (t *Table) link(at, next int64) error {
	w, err := t.want(at)
	if err != nil {
		return err
	}
	return t.near.PutFlush(wantNext.With(w, next), int((at-1)/maxHeld), t.wantAt(int((at-1)%maxHeld)))
}

// wake tells a rank that waits for a lock how it goes on.
func (t *Table) wake(id int, at, how int64) error {
	return t.near.PutFlush(wakeLock.With(how, int64(id)), int((at-1)/maxHeld), t.wakeAt(int((at-1)%maxHeld)))
}

// remove takes the rank behind before, or the first for 0, from the list.
func (t *Table) remove(r *local, before, at int64) error {
	w, err := t.want(at)
	if err != nil {
		return err
	}
	next := wantNext.Get(w)
	if before == 0 {
		r.queue = queueHead.With(r.queue, next)
	} else if err := t.link(before, next); err != nil {
		return err
	}
	if next == 0 {
		r.queue = queueTail.With(r.queue, before)
	}
	return nil
}
