package sim

import "slices"

// A moment is what can change while an execution is taken from pages, to go back to.
type moment struct {
	depth   int
	words   []int64 // of all segments
	mem     uint64
	last    int
	paused  int
	looks   int64
	writers []writer
	ranks   []standing
	beside  any // of Comm.Recall
}

// standing is where a rank stands.
type standing struct {
	request
	searched
	page    *page
	pending []operation
	results []result
}

// save keeps this moment of the execution if the scheduler will go on from here again.
func (e *search) save(again bool) {
	n := len(e.moments)
	if n > 0 && e.moments[n-1].depth == e.state.Depth { // it has come back to it
		if !again {
			e.moments = e.moments[:n-1]
		}
		return
	}
	if !again {
		return
	}
	if n < cap(e.moments) { // with its memory
		e.moments = e.moments[:n+1]
	} else {
		e.moments = append(e.moments, moment{})
	}
	m := &e.moments[n]
	if m.ranks == nil {
		m.ranks = make([]standing, len(e.w.ranks))
	}
	m.depth, m.mem, m.last, m.paused, m.looks = e.state.Depth, e.mem, e.state.Last, e.paused, e.looks
	m.words = m.words[:0]
	for _, s := range e.w.segments {
		m.words = append(m.words, s.mem...)
	}
	m.writers = append(m.writers[:0], e.writers...)
	m.beside = e.beside.Save(m.beside)
	for i, r := range e.w.ranks {
		k := &m.ranks[i]
		k.request = request{state: r.state, seg: r.seg, at: r.at, disp: r.disp, cond: r.cond, seen: r.seen}
		k.searched, k.page = r.searched, r.page
		k.results = append(k.results[:0], r.results...)
		k.pending = k.pending[:0]
		for _, o := range r.pending {
			k.pending = append(k.pending, *o)
		}
	}
}

// back goes back to the last moment that was saved of what the execution to come has in
// common with the last one. It reports false if there is none.
func (e *search) back() bool {
	n := len(e.moments)
	for n > 0 && e.moments[n-1].depth > e.same {
		n--
	}
	if e.moments = e.moments[:n]; n == 0 {
		return false
	}
	m := &e.moments[n-1]
	w := e.w
	w.ready, w.failed, w.alive, w.all.arrived = w.ready[:0], nil, len(w.ranks), 0
	for _, g := range w.groups {
		g.arrived = 0
	}
	e.on, e.state.Depth, e.mem, e.state.Last, e.paused, e.looks = true, m.depth, m.mem, m.last, m.paused, m.looks
	e.choices = e.choices[:m.depth]
	at := 0
	for _, s := range w.segments {
		at += copy(s.mem, m.words[at:])
	}
	e.writers = append(e.writers[:0], m.writers...)
	e.beside.Restore(m.beside)
	for i, r := range w.ranks {
		k := &m.ranks[i]
		r.state, r.seg, r.at, r.disp, r.cond, r.seen = k.state, k.seg, k.at, k.disp, k.cond, k.request.seen
		r.searched, r.page, r.err, r.met = k.searched, k.page, nil, nil
		r.results = append(r.results[:0], k.results...)
		r.spare = append(r.spare, r.pending...)
		r.pending = r.pending[:0]
		for j := range k.pending {
			o := r.operation(k.pending[j].Operation, k.pending[j].seg)
			*o = k.pending[j]
			r.pending = append(r.pending, o)
		}
	}
	return true
}

// A writer is a rank that writes a flag word.
type writer struct {
	key  uint64
	rank int
}

// writes is the place of a flag word among those that are being written, or -1.
func (e *search) writes(key uint64) int {
	return slices.IndexFunc(e.writers, func(w writer) bool { return w.key == key })
}
