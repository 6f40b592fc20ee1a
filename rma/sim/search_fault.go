package sim

import "github.com/rmalock/rmalock/rma"

// A Fault stops a rank in a search, for a while or as in Search.Crashes. Operations that it has
// issued by then still take effect; those of a rank that stops for ever may, or never do.
type Fault struct {
	Rank int
	Step int  // own steps of the rank after which it stops
	For  int  // steps of all ranks until it resumes, or fewer if no other step is left; 0: it dies
	Lost bool // operations towards it take no effect while it is stopped
}

// faultState is the progress of a fault.
type faultState struct {
	since  int // 1 + the number of steps when it began
	over   bool
	struck bool // the rank has died by it
}

// strike ends the lives of ranks that a fault stops for ever, and reports whether there were any.
func (e *search) strike() (any bool) {
	for i, f := range e.Faults {
		if r := e.w.ranks[f.Rank]; f.For == 0 && !e.faults[i].struck && e.active(i, r) && r.waits() {
			e.faults[i].struck, any = true, true
			e.crash(r)
		}
	}
	return any
}

// stops reports whether a fault has stopped the rank.
func (e *search) stops(r *rank) bool {
	for i, f := range e.Faults {
		if f.Rank == r.id && !e.faults[i].struck && e.active(i, r) {
			return true
		}
	}
	return false
}

// active reports whether fault i holds the rank r.
func (e *search) active(i int, r *rank) bool {
	f, s := &e.Faults[i], &e.faults[i]
	if !e.exploring || s.over || r.steps < f.Step {
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

// resumed ends the faults that stop a rank for a while, and reports whether there were any.
func (e *search) resumed() (any bool) {
	for i, f := range e.Faults {
		if f.For > 0 && e.active(i, e.w.ranks[f.Rank]) {
			e.faults[i].over, any = true, true
		}
	}
	return any
}

// lost reports whether an operation's target is stopped by a fault with Lost.
func (e *search) lost(o *operation) bool {
	if o.seg.spec.Hosts == rma.MemoryNodes {
		return false
	}
	target := o.seg.group.ranks[o.Target]
	for i, f := range e.Faults {
		if f.Lost && f.Rank == target.id && target.generation == 0 && e.active(i, target) {
			return true
		}
	}
	return false
}

// hashFaults is the hash of the faults' progress.
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
		h += learnt(1<<52+uint64(2*i), int64(min(r.steps, f.Step))) + learnt(1<<52+uint64(2*i+1), left)
	}
	return h
}
