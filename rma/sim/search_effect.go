package sim

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// do does a step.
func (e *search) do(step *Step) {
	s := &e.state
	if e.exploring { // beyond, what the last step was stays
		s.Visible, s.Timed, s.Beaten, e.ghostly = false, e.MaxDelay > 0, -1, step.Kind == StepGhost
		s.Depth++
	}
	if step.Kind > StepLimit {
		e.doForeign(step)
		return
	}
	r := e.w.ranks[step.Rank]
	s.Last = step.Rank
	if e.exploring {
		r.steps++
	}
	if step.Kind == StepLimit {
		e.passLimit(r)
		return
	}
	if step.OpIndex < 0 {
		if r.looks() {
			e.look(r)
			return
		}
		if !e.endLoop(r) {
			r.history += learnt(r.issued, e.observe(r))
			r.issued++
		}
		e.wake(r)
		return
	}
	e.effect(r, step.OpIndex)
	if r.state == flushing && !r.owes(r.seg, r.target) && !e.stops(r) {
		e.wake(r)
	}
}

// observe is the value that a waiting rank reads when it wakes.
func (e *search) observe(r *rank) int64 {
	switch r.state {
	case awaiting:
		which := r.found()
		a := &r.wait.Words[which]
		v := *r.seg.word(a.Target, a.Disp)
		if e.tracing {
			e.note(Event{Rank: r.id, Kind: EventSees, Seg: r.seg, Target: a.Target, Disp: a.Disp, After: v})
		}
		return v + int64(which)*secondWord
	case pausing: // Backoff returns no value
		if e.tracing {
			e.note(Event{Rank: r.id, Kind: EventSees, Seg: r.seg, Target: r.target, Disp: r.disp, After: *r.seg.word(r.target, r.disp)})
		}
	}
	return 0
}

// owes reports whether the rank has operations towards a target that did not take
// effect.
func (r *rank) owes(s *segment, target int) bool {
	for _, o := range r.pending {
		if o.seg == s && (target < 0 || o.Target == target) {
			return true
		}
	}
	return false
}

// effect has a pending operation take effect, or its next word or half.
func (e *search) effect(r *rank, i int) {
	for range e.beyondNext(r.pending[i]) {
		e.effectNext(r, i)
	}
	e.effectNext(r, i)
}

// beyondNext is how many words take effect with an operation's next one.
func (e *search) beyondNext(o *operation) uint64 {
	if !e.AtOnce {
		return 0
	}
	return uint64(o.Words() - o.next - 1)
}

func (e *search) effectNext(r *rank, i int) {
	o := r.pending[i]
	key := o.seg.key(o.Target, o.Disp+o.next)
	if e.CPUFar && !o.cpu && !o.half && o.readsAndWrites() {
		o.half, o.seen = true, *o.seg.word(o.Target, o.Disp)
		r.history += learnt(halfway|o.number, o.seen)
		if e.tracing {
			e.note(Event{Rank: r.id, Kind: EventHalf, Seg: o.seg, Target: o.Target, Disp: o.Disp, Op: o.Operation, Before: o.seen})
		}
		return
	}
	if o.half { // the second half: what it read may be old
		r.history -= learnt(halfway|o.number, o.seen)
		p := o.seg.word(o.Target, o.Disp)
		now := *p
		*p = o.seen
		before, after, wrote := o.apply()
		if !wrote {
			*p, after = now, now
		}
		e.changed(r, o, key, now, after, before)
		r.passDoorway(wrote)
		e.complete(r, i, before)
		return
	}
	before, after, wrote := o.apply()
	if o.seg.packed && wrote {
		e.checkCarry(r, o, before)
	}
	e.changed(r, o, key, before, after, before)
	r.passDoorway(wrote && o.readsAndWrites())
	if o.Kind == rma.KindGetBulk {
		r.results = append(r.results, result{o.seg, o.Target, o.Slot + o.next, before})
	}
	if o.Data != nil {
		found := before
		if o.Kind == rma.KindPutBulk {
			found = 0
		}
		r.history += learnt(bulkWord|uint64(o.next+1)<<32^o.number, found)
	}
	if o.next++; o.next == o.Words() {
		e.complete(r, i, before)
	}
}

// passDoorway calls the rank's doorway when an atomic operation has changed a word.
func (r *rank) passDoorway(changed bool) {
	if f := r.doorway; f != nil && changed {
		r.doorway = nil
		f()
	}
}

// secondWord tells the second word of an AwaitEither from the first in a rank's history.
const secondWord = 0x2545F4914F6CDD1D

// Keys of a rank's history: the number of the operation, and one of these.
const (
	halfway  = 1 << 61 // the first half of an operation
	bulkWord = 1 << 60 // a word of a bulk operation, its index from bit 32 on
)

// readsAndWrites reports whether a NIC does the operation in two halves.
func (o *operation) readsAndWrites() bool {
	return o.Kind == rma.KindCompareAndSwap || o.Kind == rma.KindMaskedSwap || (o.Kind == rma.KindFetchAndOp || o.Kind == rma.KindAccumulate) && o.Op != rma.NoOp
}

// changed notes what an effect did to a word.
func (e *search) changed(r *rank, o *operation, key uint64, was, is, found int64) {
	if was != is && e.paused > 0 {
		e.markChanged(key)
	}
	e.mem += mix(key, uint64(is)) - mix(key, uint64(was))
	if e.tracing {
		e.note(Event{Rank: r.id, Kind: EventEffect, Ghost: e.ghostly, Seg: o.seg, Target: o.Target, Disp: o.Disp + o.next, Op: o.Operation, Before: found, After: is})
	}
}

// changedMark is part of the history of a rank in Backoff whose word has changed.
const changedMark = 0x9E3779B97F4A7C15

// markChanged notes for the ranks in Backoff on a word that it has changed. They may wake
// even if it gets its former value back, since other words have changed too.
func (e *search) markChanged(key uint64) {
	for _, r := range e.w.ranks {
		if r.state == pausing && !r.changed && r.seg.key(r.target, r.disp) == key {
			r.changed = true
			r.history += changedMark
		}
	}
}

// complete removes an operation from the pending ones.
func (e *search) complete(r *rank, i int, found int64) {
	o := r.pending[i]
	copy(r.pending[i:], r.pending[i+1:])
	r.pending = r.pending[:len(r.pending)-1]
	if o.Finds() {
		r.results = append(r.results, result{o.seg, o.Target, o.Slot, found})
	} else {
		found = 0
	}
	r.history += learnt(o.number, found)
	if o.Class == rma.Flag && o.Kind.Writes() {
		e.unwrite(r, o)
	}
	r.spare = append(r.spare, o)
}

// checkCarry reports a sum that carries out of a field of its word.
func (e *search) checkCarry(r *rank, o *operation, before int64) {
	if o.Op != rma.Sum || o.Kind != rma.KindAccumulate && o.Kind != rma.KindFetchAndOp || e.violation != nil {
		return
	}
	w := o.seg.spec.Word(o.Disp)
	if field := w.Carried(before, o.Operand); field != "" {
		e.violation = fmt.Errorf("%w: %v by rank %d on %s, which is %s: %s", ErrCarry, describe(&o.Operation), r.id, o.seg.name(o.Target, o.Disp), w.Format(before), field)
	}
}
