package dht

import (
	"context"

	"github.com/rmalock/rmalock/lock"
)

// rangeSlots is the number of slots that Range reads at once.
const rangeSlots = 64

// Range calls f for every key in the caller's own volume, in no particular order,
// and stops with f's first error, which it returns. On a rank without a volume it
// does nothing.
//
// With locks it holds the volume's lock in shared mode throughout: f sees one moment
// of the volume, and must not use the table. With atomics each key is seen as by a
// Lookup at some moment of the Range; a key that appears meanwhile may be missed.
func (t *Table) Range(f func(key, value int64) error) error {
	v := t.w.Rank()
	if v >= t.cfg.Volumes {
		return nil
	}
	if t.cfg.Locks == nil {
		return t.visit(v, f)
	}
	if err := t.cfg.Locks.Lock(context.Background(), v, lock.Shared); err != nil {
		return err
	}
	locked := true
	defer func() {
		if locked { // f panicked
			_ = t.unlock(v, lock.Shared, nil) // the panic goes on
		}
	}()
	err := t.visit(v, f)
	locked = false
	return t.unlock(v, lock.Shared, err)
}

// visit calls f for every key of a volume.
func (t *Table) visit(v int, f func(key, value int64) error) error {
	var buf [rangeSlots * slotWords]int64
	all := t.cfg.Slots + 1
	for first := 0; first < all; first += rangeSlots {
		part := buf[:min(rangeSlots, all-first)*slotWords]
		t.w.GetBulk(part, v, t.slots+first*slotWords)
		if err := t.w.Flush(v); err != nil {
			return err
		}
		for i := 0; i < len(part); i += slotWords {
			slot := [slotWords]int64(part[i:])
			if slot[slotBase] != absent && slot[slotKey] == empty && first+i/slotWords < t.cfg.Slots {
				// KEY was read before the claim and BASE after the creation.
				key, err := t.w.GetFlush(v, t.slots+first*slotWords+i+slotKey)
				if err != nil {
					return err
				}
				slot[slotKey] = key
			}
			if err := t.visitSlot(v, slot, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// visitSlot calls f for the keys of a slot and its chain.
func (t *Table) visitSlot(v int, slot [slotWords]int64, f func(key, value int64) error) error {
	if slot[slotBase] != absent {
		t.rec = slot
		value, _, err := t.lookup(v, slot[slotKey])
		if err != nil {
			return err
		}
		if err := f(slot[slotKey], value); err != nil {
			return err
		}
	}
	left := t.cfg.Heap
	for e := slot[slotLast]; e != none; left-- {
		if left == 0 {
			return t.circular(v)
		}
		if err := t.readElement(v, e); err != nil {
			return err
		}
		e = t.rec[elemPrev] // before f, which may use t
		if err := f(t.rec[elemKey], t.rec[elemValue]); err != nil {
			return err
		}
	}
	return nil
}
