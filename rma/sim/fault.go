package sim

// A Fault is what happens to a rank in a search. What it has issued when it stops
// goes on.
type Fault struct {
	Rank int
	Step int  // the number of the rank's own steps after which it stops
	For  int  // the number of all ranks' steps for which it does, or until nobody else can go on; 0 for ever
	Lost bool // operations towards it have no effect as long as it stops
}

// stop is what has become of a fault.
type stop struct {
	since int // 1 + the number of steps when it began
	over  bool
}

// stops reports whether a fault has stopped the rank.
func (e *search) stops(r *rank) bool {
	for i, f := range e.Faults {
		if f.Rank == r.id && e.active(i, r) {
			return true
		}
	}
	return false
}

// active reports whether fault i holds the rank r.
func (e *search) active(i int, r *rank) bool {
	f, s := &e.Faults[i], &e.faults[i]
	if !e.on || s.over || r.steps < f.Step {
		return false
	}
	if s.since == 0 {
		s.since = 1 + len(e.choices)
	}
	if f.For > 0 && len(e.choices) >= s.since-1+f.For {
		s.over = true
	}
	return !s.over
}

// resumed ends the faults that stop somebody for a while, if there are any.
func (e *search) resumed() (any bool) {
	for i, f := range e.Faults {
		if f.For > 0 && e.active(i, e.w.ranks[f.Rank]) {
			e.faults[i].over, any = true, true
		}
	}
	return any
}

// lost reports whether an operation goes to a rank that has stopped and loses them.
func (e *search) lost(o *operation) bool {
	target := o.seg.group.ranks[o.Target]
	for i, f := range e.Faults {
		if f.Lost && f.Rank == target.id && e.active(i, target) {
			return true
		}
	}
	return false
}

// hashFaults is that of what has become of the faults.
func (e *search) hashFaults() (h uint64) {
	for i, f := range e.Faults {
		r, s := e.w.ranks[f.Rank], &e.faults[i]
		left := int64(0)
		switch {
		case s.over:
			left = -1
		case s.since > 0 && f.For > 0:
			left = int64(s.since - 1 + f.For - len(e.choices))
		}
		h += told(1<<52+uint64(2*i), int64(min(r.steps, f.Step))) + told(1<<52+uint64(2*i+1), left)
	}
	return h
}
