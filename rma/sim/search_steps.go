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
		if i > 0 && blocked(r.pending[:i], o) || len(e.Faults) > 0 && e.lost(o) {
			continue
		}
		word := o.seg.key(o.Target, o.Disp+o.next)
		if e.CPUFar && e.taken(o, word) {
			continue
		}
		due := !stops && r.state == flushing && o.seg == r.seg && (r.target < 0 || o.Target == r.target)
		must = must || due
		s := e.state.step(r.id)
		s.OpIndex, s.Must, s.Word, s.More, s.Writes = i, due, word, e.beyondNext(o), o.Kind.Writes() && o.Op != rma.NoOp
	}
	if stops && r.state != ending {
		return must
	}
	switch r.state {
	case flushing: // a fault had stopped it when its last operation took effect
		if len(e.Faults) == 0 || r.owes(r.seg, r.target) {
			return must
		}
		e.state.step(r.id).Must = true
	case awaiting:
		if r.missed && e.clock >= r.wait.Until {
			s := e.state.step(r.id)
			s.Kind, s.Must = StepLimit, true
			must = true
		}
		if r.found() < 0 && (!e.exploring || !r.looks()) {
			return must
		}
		s, a := e.state.step(r.id), &r.wait.Words
		s.Must, s.Word = true, r.seg.key(a[0].Target, a[0].Disp)
		if r.wait.N == 2 {
			s.Other = r.seg.key(a[1].Target, a[1].Disp)
		}
	case pausing:
		s := e.state.step(r.id)
		s.Word = r.seg.key(r.target, r.disp)
		if !r.changed && *r.seg.word(r.target, r.disp) == r.seen {
			s.Idle = true
			e.state.Idles++
			return must
		}
		s.Must, s.Again = true, true
		e.state.Agains++
	case sleeping:
		if r.wait.Until > e.clock {
			return must
		}
		e.state.step(r.id).Must = true
	case ending:
		s := e.state.step(r.id)
		s.Must, s.Ends = true, true
	default:
		return must
	}
	return true
}

// step adds a step of a rank to the list. It is made in its place: a search spends much of its
// time on this list.
func (s *State) step(rank int) *Step {
	n := len(s.Steps)
	if n == cap(s.Steps) {
		s.Steps = append(s.Steps, Step{})
	}
	s.Steps = s.Steps[:n+1]
	k := &s.Steps[n]
	*k = Step{Rank: rank, OpIndex: -1, Word: noWord, Other: noWord}
	return k
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
