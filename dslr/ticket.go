package dslr

// A ticket is what a rank has drawn on a lock: the word as it was before (prev in Algorithm
// 1), and what follows from it.
type ticket struct {
	id, home, disp int
	kind           kind
	slots          int64 // tickets drawn at once, with as many leases: section 5.1
	prev           int64 // the word before the draw: its gen and the tickets drawn
	mask, want     int64 // the ticket is served while word&mask == want,
	mask2, least   int64 // and word&mask2 is least or more
	resets         bool  // the ticket crosses COUNT_MAX: its owner resets (A1:10, A1:24)

	since   int64 // the last moment at which the rank knew that it was not served
	word    int64 // the word as the rank saw it last
	ownDied bool  // the word says that a holder before died

	// All that the rank remembers of its acquire is here: a search tells states by it.
	still    stillness
	froze    freeze
	failures int // in a row
}

// drawn fills in a ticket from the word before the draw.
func (t *Table) drawn(k *ticket, prev int64) {
	l := t.layout
	k.prev, k.word = prev&l.given(), prev+k.slots<<l.max[k.kind].Shift
	k.froze = freeze{}
	k.mask, k.want = l.gen.Mask(), prev&l.gen.Mask()
	k.mask2, k.least = 0, 0
	for _, b := range before[k.kind] {
		n := l.n[b]
		if b == update && k.kind == shared { // those that come later may be released earlier
			k.mask2, k.least = n.Mask(), n.With(0, l.max[b].Get(prev))
			continue
		}
		k.mask |= n.Mask()
		k.want = n.With(k.want, l.max[b].Get(prev))
	}
	max := l.max[k.kind].Get(prev)
	k.resets = max < l.countMax && max+k.slots >= l.countMax
	k.ownDied = l.died.Get(prev) != 0
}

// ends forgets a ticket that was not served, before another one is drawn.
func (k *ticket) ends() {
	*k = ticket{id: k.id, home: k.home, disp: k.disp, kind: k.kind, slots: k.slots, froze: k.froze, failures: k.failures}
}

// served reports whether the ticket is served in v (A2:5 to A2:10). A later value also says that no
// rank has passed it over.
func (k *ticket) served(v int64) bool { return v&k.mask == k.want && v&k.mask2 >= k.least }

// passedOver reports whether the ticket will never be served (A2:3). A shared ticket looks at
// no shared counter, unlike the paper's: siblings may be released before it. Nor does it look
// at that of update tickets, which may be served and released beside it.
func (t *Table) passedOver(k *ticket, v int64) bool {
	l := t.layout
	if v&l.gen.Mask() != k.prev&l.gen.Mask() {
		return true
	}
	for _, b := range before[k.kind] {
		if l.n[b].Get(v) > l.max[b].Get(k.prev) && !(b == update && k.kind == shared) {
			return true
		}
	}
	return false
}

// ahead is the number of tickets before this one that are not released in v: wait_count of
// A2:20.
func (t *Table) ahead(k *ticket, v int64) int64 {
	l, n := t.layout, int64(0)
	for b := range kinds {
		n += max(0, l.max[b].Get(k.prev)-l.n[b].Get(v))
	}
	return n
}
