package sim

import "slices"

// A checkpoint is the state of a memoised execution after a number of steps. The search
// returns to it instead of running the execution's beginning again.
type checkpoint struct {
	depth  int
	words  []int64 // of all segments
	mem    uint64
	last   int
	paused int
	course
	writers []flagWriter
	ranks   []rankCheckpoint
	outside any // of the Snapshotter
}

// rankCheckpoint is the state of one rank.
type rankCheckpoint struct {
	state   state
	request *request
	searchState
	memo    *memoNode
	doorway func()
	pending []issued
	ghosts  []issued
	results []result
}

// saveCheckpoint saves the state if the scheduler will continue from it again.
func (e *search) saveCheckpoint(again bool) {
	n := len(e.checkpoints)
	if n > 0 && e.checkpoints[n-1].depth == e.state.Depth { // the search has returned to it
		if !again {
			e.checkpoints = e.checkpoints[:n-1]
		}
		return
	}
	if !again {
		return
	}
	if n < cap(e.checkpoints) { // with its memory
		e.checkpoints = e.checkpoints[:n+1]
	} else {
		e.checkpoints = append(e.checkpoints, checkpoint{})
	}
	m := &e.checkpoints[n]
	if m.ranks == nil {
		m.ranks = make([]rankCheckpoint, len(e.w.ranks))
	}
	m.depth, m.mem, m.last, m.paused, m.course = e.state.Depth, e.mem, e.state.Last, e.paused, e.course
	m.words = m.words[:0]
	for _, s := range e.w.segments {
		m.words = append(m.words, s.mem...)
	}
	m.writers = append(m.writers[:0], e.writers...)
	m.outside = e.outside.Save(m.outside)
	for i, r := range e.w.ranks {
		k := &m.ranks[i]
		k.state, k.request = r.state, r.request
		k.searchState, k.memo, k.doorway = r.searchState, r.memo, r.doorway
		if len(r.results)+len(k.results) > 0 {
			k.results = append(k.results[:0], r.results...)
		}
		k.pending = saved(k.pending, r.pending)
		k.ghosts = saved(k.ghosts, r.ghosts)
	}
}

// saved copies operations into a slice that may be reused.
func saved(into []issued, from []*operation) []issued {
	into = into[:0]
	for _, o := range from {
		into = append(into, o.issued)
	}
	return into
}

// restoreCheckpoint restores the last checkpoint within the steps that the next execution
// has in common with the last one. It reports false if there is none.
func (e *search) restoreCheckpoint() bool {
	n := len(e.checkpoints)
	for n > 0 && e.checkpoints[n-1].depth > e.prefix {
		n--
	}
	if e.checkpoints = e.checkpoints[:n]; n == 0 {
		return false
	}
	m := &e.checkpoints[n-1]
	w := e.w
	w.ready, w.failed, w.all.arrived = w.ready[:0], nil, 0
	w.dead = m.deaths - m.joins
	w.alive = len(w.ranks) - w.dead
	for _, g := range w.groups {
		g.arrived = 0
	}
	e.exploring, e.state.Depth, e.mem, e.state.Last, e.paused, e.course = true, m.depth, m.mem, m.last, m.paused, m.course
	e.choices = e.choices[:m.depth]
	at := 0
	for _, s := range w.segments {
		at += copy(s.mem, m.words[at:])
	}
	e.writers = append(e.writers[:0], m.writers...)
	e.outside.Restore(m.outside)
	for i, r := range w.ranks {
		k := &m.ranks[i]
		r.state, r.request = k.state, k.request
		r.searchState, r.memo, r.doorway, r.err, r.met = k.searchState, k.memo, k.doorway, nil, nil
		if len(r.results)+len(k.results) > 0 {
			r.results = append(r.results[:0], k.results...)
		}
		r.pending = r.restored(r.pending, k.pending)
		r.ghosts = r.restored(r.ghosts, k.ghosts)
	}
	return true
}

// restored makes operations those of a copy.
func (r *rank) restored(into []*operation, from []issued) []*operation {
	for n := len(into); n > len(from); n-- {
		r.spare = append(r.spare, into[n-1])
		into = into[:n-1]
	}
	for len(into) < len(from) {
		into = append(into, r.unused())
	}
	for i := range from {
		into[i].issued = from[i]
	}
	return into
}

// A flagWriter is a rank that writes a flag word.
type flagWriter struct {
	key  uint64
	rank int
}

// writerIndex is the index of a flag word's writer in e.writers, or -1.
func (e *search) writerIndex(key uint64) int {
	return slices.IndexFunc(e.writers, func(w flagWriter) bool { return w.key == key })
}
