package sim

import "github.com/rmalock/rmalock/rma"

// steps lists the steps that can happen. It reports false if none must.
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
	if e.hazards && e.exploring {
		return e.foreignSteps(must)
	}
	return must
}

// nextInTurn is the step outside of Begin and End, where no scheduler chooses: the one that
// must happen of the first rank after the last one, so that retries do not starve others.
func (e *search) nextInTurn() int {
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
		if e.taken(o, word) {
			continue
		}
		due := !stops && r.state == flushing && o.seg == r.seg && (r.target < 0 || o.Target == r.target)
		must = must || due
		e.state.Steps = append(e.state.Steps, Step{Rank: r.id, OpIndex: i, Must: due, Word: word, Other: noWord, Writes: o.Kind.Writes() && o.Op != rma.NoOp})
	}
	if stops && r.state != ending {
		return must
	}
	step := Step{Rank: r.id, OpIndex: -1, Must: true, Word: noWord, Other: noWord}
	switch r.state {
	case flushing: // a fault had stopped it when its last operation took effect
		if r.owes(r.seg, r.target) {
			return must
		}
	case awaiting:
		if r.missed && e.clock >= r.wait.Until {
			e.state.Steps = append(e.state.Steps, Step{Rank: r.id, OpIndex: -1, Kind: StepLimit, Must: true, Word: noWord, Other: noWord})
			must = true
		}
		if r.found() < 0 && (!e.exploring || !r.looks()) {
			return must
		}
		a := &r.wait.Words
		step.Word = r.seg.key(a[0].Target, a[0].Disp)
		if r.wait.N == 2 {
			step.Other = r.seg.key(a[1].Target, a[1].Disp)
		}
	case pausing:
		step.Word = r.seg.key(r.target, r.disp)
		if !r.changed && *r.seg.word(r.target, r.disp) == r.seen {
			step.Must, step.Idle = false, true
			e.state.Idles++
		} else {
			step.Again = true
			e.state.Agains++
		}
	case sleeping:
		if r.wait.Until > e.clock {
			return must
		}
	case ending:
		step.Ends = true
	default:
		return must
	}
	e.state.Steps = append(e.state.Steps, step)
	return must || step.Must
}

// blocked reports whether an earlier operation of the rank that must come first has not
// taken effect.
func blocked(earlier []*operation, o *operation) bool {
	for _, p := range earlier {
		if o.follows(p) {
			return true
		}
	}
	return false
}
