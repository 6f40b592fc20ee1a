package dht

import "github.com/rmalock/rmalock/rma"

const (
	empty  = 0 // slot.KEY: unclaimed
	absent = 0 // slot.BASE: the key is not there
	none   = 0 // no heap element
)

// inSlot reports whether a value fits into slot.BASE beside the tag bit.
func inSlot(value int64) bool { return value<<1>>1 == value }

// base is slot.BASE of a key that was created with a value that fits.
func base(value int64) int64 { return value<<1 | 1 }

// readSlot reads a slot into t.rec. The words may be of different moments. That
// does no harm: KEY is final once it is not 0, and so is BASE; ADDED is 0 for as
// long as BASE is; and a chain is complete from whatever LAST was.
func (t *Table) readSlot(v, slot int) error {
	t.w.GetBulk(t.rec[:], v, slot)
	return t.w.Flush(v)
}

// readElement reads an element into the first words of t.rec.
func (t *Table) readElement(v int, e int64) error {
	t.w.GetBulk(t.rec[:elemWords], v, t.elementDisp(e))
	return t.w.Flush(v)
}

// writeElement fills an element that no other rank sees, and flushes it before the CAS that
// shows it.
func (t *Table) writeElement(v int, e, key, value, prev int64) error {
	t.elem = [elemWords]int64{elemKey: key, elemValue: value, elemPrev: prev}
	t.w.PutBulk(t.elem[:], v, t.elementDisp(e))
	return t.w.Flush(v)
}

// A spot is where the value of a key that is there lies: base plus the word at
// disp.
type spot struct {
	base int64
	disp int
}

// spotOf reads slot.BASE.
func (t *Table) spotOf(slot int, word int64) spot {
	if word&1 != 0 {
		return spot{base: word >> 1, disp: slot + slotAdded}
	}
	return spot{disp: t.elementDisp(word>>1) + elemValue}
}

// lookup finishes a Lookup whose slot is in t.rec. An absent key is so at the
// moment at which the word that says so was read.
func (t *Table) lookup(v int, key int64) (int64, bool, error) {
	if t.rec[slotKey] == key { // also of key 0, whose slot is its own
		switch word := t.rec[slotBase]; {
		case word == absent:
			return 0, false, nil
		case word&1 != 0:
			return word>>1 + t.rec[slotAdded], true, nil
		default:
			value, err := t.w.GetFlush(v, t.elementDisp(word>>1)+elemValue)
			return value, err == nil, err
		}
	}
	e, err := t.find(v, key, t.rec[slotLast], none)
	if e == none {
		return 0, false, err
	}
	return t.rec[elemValue], true, nil
}

// find looks for a key in a chain from element e back to, and not including, end.
// It returns the element, whose words are then in t.rec, or none.
func (t *Table) find(v int, key, e, end int64) (int64, error) {
	for left := t.cfg.Heap; e != end; left-- {
		if left == 0 {
			return none, t.circular(v)
		}
		if err := t.readElement(v, e); err != nil {
			return none, err
		}
		if t.rec[elemKey] == key {
			return e, nil
		}
		e = t.rec[elemPrev]
	}
	return none, nil
}

// insert is Insert with atomics.
func (t *Table) insert(key, value int64) (bool, error) {
	v, slot := t.locate(key)
	if !inSlot(value) {
		// An element may be needed even in the slot: look before claiming it.
		if err := t.readSlot(v, slot); err != nil {
			return false, err
		}
		_, created, err := t.create(v, slot, key, value)
		return created, err
	}
	// Claim and read in one trip. The CAS of key 0 changes nothing in its own slot.
	seen := t.w.CompareAndSwap(key, empty, v, slot+slotKey)
	t.w.GetBulk(t.rec[slotBase:], v, slot+slotBase)
	if err := t.w.Flush(v); err != nil {
		return false, err
	}
	if t.rec[slotKey] = t.w.Value(seen); t.rec[slotKey] == empty {
		t.rec[slotKey] = key
	}
	_, created, err := t.create(v, slot, key, value)
	return created, err
}

// add is Add with atomics. An Add that creates the key creates it with the addend:
// created with 0 and added to afterwards, the key would be seen with a value that
// it never has.
func (t *Table) add(key, addend int64) (int64, error) {
	v, slot := t.locate(key)
	if err := t.readSlot(v, slot); err != nil {
		return 0, err
	}
	s, created, err := t.create(v, slot, key, addend)
	if err != nil || created {
		return 0, err
	}
	before, err := t.w.FetchAndOpFlush(addend, v, s.disp, rma.Sum)
	return s.base + before, err
}

// create creates a key that is absent, or says where its value is. The slot is in
// t.rec.
func (t *Table) create(v, slot int, key, value int64) (spot, bool, error) {
	mine := int64(none)
	if t.rec[slotKey] == empty && key != empty {
		if !inSlot(value) { // before the claim, so that a full heap leaves the slot to others
			var err error
			if mine, err = t.takeElement(v, key); err != nil {
				return spot{}, false, err
			}
		}
		seen, err := t.w.CompareAndSwapFlush(key, empty, v, slot+slotKey)
		if err != nil {
			return spot{}, false, err
		}
		if t.rec[slotKey] = seen; seen == empty {
			t.rec[slotKey] = key
		}
	}
	if t.rec[slotKey] == key {
		return t.createInSlot(v, slot, key, value, mine)
	}
	return t.createInHeap(v, slot, key, value, mine)
}

// createInSlot creates a key in the slot that is the key's. mine is an element
// that the caller has taken, or none.
func (t *Table) createInSlot(v, slot int, key, value, mine int64) (spot, bool, error) {
	word := t.rec[slotBase]
	if word == absent {
		var err error
		show := base(value)
		if !inSlot(value) {
			if mine == none {
				if mine, err = t.takeElement(v, key); err != nil {
					return spot{}, false, err
				}
			}
			if err = t.writeElement(v, mine, key, value, none); err != nil {
				return spot{}, false, err
			}
			show = mine << 1
		}
		// Key and value appear together.
		if word, err = t.w.CompareAndSwapFlush(show, absent, v, slot+slotBase); err != nil {
			return spot{}, false, err
		}
		if word == absent {
			return t.spotOf(slot, show), true, nil
		}
	}
	return t.spotOf(slot, word), false, t.giveBack(v, mine)
}

// createInHeap creates a key whose slot is another key's. mine is as above.
func (t *Table) createInHeap(v, slot int, key, value, mine int64) (spot, bool, error) {
	last, end := t.rec[slotLast], int64(none) // the chain from last back to end is to be looked through
	for {
		e, err := t.find(v, key, last, end)
		if err != nil {
			return spot{}, false, err
		}
		if e != none {
			return spot{disp: t.elementDisp(e) + elemValue}, false, t.giveBack(v, mine)
		}
		if mine == none {
			if mine, err = t.takeElement(v, key); err != nil {
				return spot{}, false, err
			}
		}
		if err := t.writeElement(v, mine, key, value, last); err != nil {
			return spot{}, false, err
		}
		// LAST unchanged: the key is in no element that we have not seen.
		seen, err := t.w.CompareAndSwapFlush(mine, last, v, slot+slotLast)
		if err != nil {
			return spot{}, false, err
		}
		if seen == last {
			return spot{disp: t.elementDisp(mine) + elemValue}, true, nil
		}
		last, end = seen, last
	}
}

// takeElement takes a heap element for a key: a fresh one while there are any, then one
// that was given back.
func (t *Table) takeElement(v int, key int64) (int64, error) {
	n, err := t.w.FetchAndOpFlush(1, v, free, rma.Sum)
	if err != nil {
		return none, err
	}
	if n < int64(t.cfg.Heap) {
		return n + 1, nil
	}
	// A rank whose FAO went past the end undoes it, so that FREE stays bounded. It never
	// falls below Heap again.
	t.w.Accumulate(-1, v, free, rma.Sum)
	top := t.w.Get(v, spare)
	if err := t.w.Flush(v); err != nil {
		return none, err
	}
	for seen := t.w.Value(top); ; {
		e, version := unpack(seen)
		if e == none {
			return none, t.full(v, key)
		}
		// Another rank may have taken e and overwritten PREV: then the CAS fails, also
		// when e is on top again, since giving it back changed the version.
		prev, err := t.w.GetFlush(v, t.elementDisp(e)+elemPrev)
		if err != nil {
			return none, err
		}
		now, err := t.w.CompareAndSwapFlush(pack(prev, version), seen, v, spare)
		if err != nil {
			return none, err
		}
		if now == seen {
			return e, nil
		}
		seen = now
	}
}

// giveBack puts an element that was never shown on the stack of spares.
func (t *Table) giveBack(v int, e int64) error {
	if e == none {
		return nil
	}
	seen, err := t.w.GetFlush(v, spare)
	if err != nil {
		return err
	}
	for {
		top, version := unpack(seen)
		t.w.Put(top, v, t.elementDisp(e)+elemPrev)
		if err := t.w.Flush(v); err != nil { // before the CAS shows it
			return err
		}
		now, err := t.w.CompareAndSwapFlush(pack(e, version+1), seen, v, spare)
		if err != nil || now == seen {
			return err
		}
		seen = now
	}
}

// pack and unpack are the values of SPARE.
func pack(e int64, version uint32) int64 { return int64(version)<<32 | e }

func unpack(word int64) (e int64, version uint32) { return word & 0xffffffff, uint32(word >> 32) }
