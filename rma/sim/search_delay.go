package sim

import "slices"

// With Search.MaxDelay the clock waits for operations that are under way: what the locks whose
// leases rest on such a bound are checked under.

// overdue reports whether an operation must take effect before the next tick.
func (e *search) overdue(o *operation) bool { return e.ticks-o.ticks >= e.MaxDelay }

// delayed reports whether an operation of a living rank is overdue.
func (e *search) delayed() bool {
	for _, r := range e.w.ranks {
		for _, o := range r.pending {
			if e.overdue(o) {
				return true
			}
		}
	}
	return false
}

// hurry makes the steps of overdue operations ones that must happen, where nothing else must
// but the tick. It reports whether there are any.
func (e *search) hurry() (any bool) {
	for i := range e.state.Steps {
		k := &e.state.Steps[i]
		if k.Kind == StepOwn && k.OpIndex >= 0 && e.overdue(e.w.ranks[k.Rank].pending[k.OpIndex]) {
			k.Must, any = true, true
		}
	}
	return any
}

// expire forgets operations of the dead that can take effect no more: those that are too old,
// and those that must come after one of them.
func (e *search) expire() {
	if e.MaxDelay == 0 || e.deaths == 0 || e.CPUFar {
		return
	}
	for _, r := range e.w.ranks {
		var gone []*operation
		r.ghosts = slices.DeleteFunc(r.ghosts, func(o *operation) bool {
			lost := e.ticks-o.ticks > e.MaxDelay || blocked(gone, o)
			if lost {
				gone = append(gone, o)
			}
			return lost
		})
		r.spare = append(r.spare, gone...)
	}
}

// hashAges is the hash of when a rank issued the operations that have not taken effect.
func (r *rank) hashAges() (h uint64) {
	for i, o := range r.pending {
		h += mix(uint64(r.id)<<40|1<<57|uint64(i), uint64(o.ticks)+1)
	}
	for i, o := range r.ghosts {
		h += mix(uint64(r.id)<<40|1<<58|uint64(i), uint64(o.ticks)+1)
	}
	return h
}
