package dht

import (
	"context"
	"errors"

	"github.com/rmalock/rmalock/lock"
)

// With locks a key in its slot has slot.BASE 1 (created with 0) and its value in
// slot.ADDED, whatever the value; SPARE stays 0.

// unlock ends a critical section on volume v. What it wrote has been flushed.
func (t *Table) unlock(v int, mode lock.Mode, err error) error {
	if uerr := t.cfg.Locks.Unlock(v, mode); uerr != nil {
		return errors.Join(err, uerr)
	}
	return err
}

// lockedLookup is Lookup with locks.
func (t *Table) lockedLookup(key int64) (int64, bool, error) {
	v, slot := t.locate(key)
	if err := t.cfg.Locks.Lock(context.Background(), v, lock.Shared); err != nil {
		return 0, false, err
	}
	value, ok := int64(0), false
	err := t.readSlot(v, slot)
	if err == nil {
		value, ok, err = t.lookup(v, key)
	}
	err = t.unlock(v, lock.Shared, err)
	return value, ok && err == nil, err
}

// lockedAdd is Add with locks.
func (t *Table) lockedAdd(key, addend int64) (int64, error) {
	before, _, err := t.lockedCreate(key, addend, true)
	return before, err
}

// lockedCreate is Insert, or Add, with locks.
func (t *Table) lockedCreate(key, value int64, add bool) (before int64, created bool, err error) {
	v, slot := t.locate(key)
	if err := t.cfg.Locks.Lock(context.Background(), v, lock.Exclusive); err != nil {
		return 0, false, err
	}
	before, created, err = t.critical(v, slot, key, value, add)
	err = t.unlock(v, lock.Exclusive, err)
	return before, created && err == nil, err
}

// critical is the section of lockedCreate under the lock.
func (t *Table) critical(v, slot int, key, value int64, add bool) (before int64, created bool, err error) {
	if err := t.readSlot(v, slot); err != nil {
		return 0, false, err
	}
	w := t.w
	disp := slot + slotAdded
	switch {
	case t.rec[slotKey] == key && t.rec[slotBase] != absent:
		before = t.rec[slotAdded]
	case t.rec[slotKey] == key || t.rec[slotKey] == empty:
		t.rec = [slotWords]int64{slotKey: key, slotBase: base(0), slotAdded: value, slotLast: none}
		w.PutBulk(t.rec[:], v, slot)
		return 0, true, w.Flush(v)
	default:
		last := t.rec[slotLast]
		e, err := t.find(v, key, last, none)
		if err != nil {
			return 0, false, err
		}
		if e == none {
			return 0, true, t.append(v, slot, key, value, last)
		}
		before, disp = t.rec[elemValue], t.elementDisp(e)+elemValue
	}
	if add {
		w.Put(before+value, v, disp)
		err = w.Flush(v)
	}
	return before, false, err
}

// append links a new element behind last. Nobody looks before the unlock, so one
// Flush does for all words.
func (t *Table) append(v, slot int, key, value, last int64) error {
	w := t.w
	n, err := w.GetFlush(v, free)
	if err != nil {
		return err
	}
	if n >= int64(t.cfg.Heap) {
		return t.full(v, key)
	}
	t.elem = [elemWords]int64{elemKey: key, elemValue: value, elemPrev: last}
	w.PutBulk(t.elem[:], v, t.elementDisp(n+1))
	w.Put(n+1, v, free)
	w.Put(n+1, v, slot+slotLast)
	return w.Flush(v)
}
