package sim

// A table holds a number for each state, by its hash. It is open, with linear probing: a
// search of millions of states looks every state up, and spends its time on fetching
// memory, of which a slot is one line.
type table struct {
	slots []slot // a power of two of them
	shift int    // of a hash, to a place among them
	used  int
}

type slot struct{ key, value uint64 } // key 0: empty

const firstSlots = 10 // logarithm

func newTable() table {
	return table{slots: make([]slot, 1<<firstSlots), shift: 64 - firstSlots}
}

// lookup returns the address of a key's number, valid until the next call, and whether the
// key was there before.
func (t *table) lookup(key uint64) (value *uint64, was bool) {
	if key == 0 {
		key = 1 // 0 marks an empty slot
	}
	s := t.find(key)
	if s.key == key {
		return &s.value, true
	}
	if t.used++; t.used*4 > len(t.slots)*3 {
		t.grow()
		s = t.find(key)
	}
	s.key = key
	return &s.value, false
}

// find is the slot of a key, or the empty one where it would be.
func (t *table) find(key uint64) *slot {
	for i := key * 0x9E3779B97F4A7C15 >> t.shift; ; i = (i + 1) & uint64(len(t.slots)-1) {
		if s := &t.slots[i]; s.key == key || s.key == 0 {
			return s
		}
	}
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, 2*len(old))
	huge(t.slots)
	t.shift--
	for _, s := range old {
		if s.key != 0 {
			*t.find(s.key) = s
		}
	}
}
