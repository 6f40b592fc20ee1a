package sim

import "github.com/rmalock/rmalock/rma"

// steps lists what can happen. It reports false if nothing must.
func (e *search) steps() bool {
	s := &e.state
	s.Steps, s.Idles, s.Agains = s.Steps[:0], 0, 0
	must := false
	if s.Last >= 0 {
		must = e.stepsOf(e.w.ranks[s.Last])
	}
	for _, r := range e.w.ranks {
		if r.id != s.Last && e.stepsOf(r) {
			must = true
		}
	}
	return must
}

// turn is the step that is next when no scheduler decides: the one that must happen
// of the rank after the last one. Those that fail again and again let others go on.
func (e *search) turn() int {
	s, n := &e.state, len(e.w.ranks)
	best, first := n, 0
	for i := range s.Steps {
		if k := &s.Steps[i]; k.Must {
			if d := (k.Rank - s.Last - 1 + n) % n; d < best {
				best, first = d, i
			}
		}
	}
	return first
}

func (e *search) stepsOf(r *rank) bool {
	must := false
	stops := len(e.Faults) > 0 && e.stops(r)
	for i, o := range r.pending {
		if blocked(r.pending[:i], o) || len(e.Faults) > 0 && e.lost(o) {
			continue
		}
		word := o.seg.key(o.Target, o.Disp+o.next)
		if e.CPUFar && !o.cpu {
			if h := e.nic[word]; h != nil && h != o {
				continue // the NIC does one after the other
			}
		}
		due := !stops && r.state == flushing && o.seg == r.seg && (r.at < 0 || o.Target == r.at)
		must = must || due
		e.state.Steps = append(e.state.Steps, Step{Rank: r.id, Op: i + 1, Must: due, Word: word, Writes: o.Kind.Writes() && o.Op != rma.NoOp})
	}
	if stops && r.state != ending {
		return must
	}
	step := Step{Rank: r.id, Must: true, Word: noWord}
	switch r.state {
	case flushing: // it was stopped when its last operation took effect
		if r.owes(r.seg, r.at) {
			return must
		}
	case awaiting:
		step.Word = r.seg.key(r.at, r.disp)
		if !r.cond.Holds(*r.seg.word(r.at, r.disp)) {
			return must
		}
	case pausing:
		step.Word = r.seg.key(r.at, r.disp)
		if !r.rung && *r.seg.word(r.at, r.disp) == r.seen {
			step.Must, step.Idle = false, true
			e.state.Idles++
		} else {
			step.Again = true
			e.state.Agains++
		}
	case sleeping:
	case ending:
		step.Ends = true
	default:
		return must
	}
	e.state.Steps = append(e.state.Steps, step)
	return must || step.Must
}

// blocked reports whether an earlier operation of the rank on the same word has not
// taken effect.
func blocked(earlier []*operation, o *operation) bool {
	for _, p := range earlier {
		if p.overlaps(o) {
			return true
		}
	}
	return false
}
