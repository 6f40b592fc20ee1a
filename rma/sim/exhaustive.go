package sim

import (
	"math/bits"
	"slices"
)

// Exhaustive explores, depth first, all schedules that can lead to different states, idle
// steps excepted. Two reductions keep it finite and short. A state whose hash was seen
// before is not explored again. Of two steps that commute only one order is explored, by
// sleep sets (Godefroid, LNCS 1032, chapters 5 and 6.2). Steps commute if they are of
// different ranks, not on one word unless both read, and not both visible to the check.
//
// A tick commutes with the steps after which no rank reads the clock, unless nothing but the
// tick could happen. A death commutes with what other ranks do, except die.
//
// With a bound on preemptions of 0 or more, a schedule may leave a rank that could continue
// at most so often; then all orders are explored. Ticks, deaths, successors and operations
// of the dead are no preemptions. With TicksCount a tick that need not come yet is one.
//
// At most 64 steps can come next. Sleep sets hold steps of the first 8 ranks, of the first 7
// pending operations of each. With up to 4 ranks they hold ticks, deaths, limits and
// operations of the dead too.
func Exhaustive(preemptions int) *ExhaustiveSearch {
	return &ExhaustiveSearch{bound: preemptions, seen: newTable()}
}

// Unbounded is the bound of an Exhaustive without one.
const Unbounded = -1

// An ExhaustiveSearch is the Scheduler of Exhaustive.
type ExhaustiveSearch struct {
	bound  int
	seen   table // by hash; unbounded: steps that slept there; bounded: preemptions left, plus 1
	frames []frame
	begun  bool
	state  *State
	Limit  int64 // executions after which the search gives up; 0 for none
	// TicksCount has a tick before which other steps could come count for the bound on preemptions,
	// so that ranks wait for as many leases as they must, and the clock is early a few times.
	TicksCount bool
	Left       bool // the search gave up
	runs       int64
	ranks      int
}

// frame is a state of the present execution.
type frame struct {
	steps   []Step
	choice  int
	used    int32  // preemptions
	last    int32  // rank whose own step was the last one
	open    uint64 // steps to explore, by index
	done    uint64 // explored already, or asleep
	visible uint64 // those of done that were visible to the check
	timed   uint64 // those of done after which a rank read the clock
}

// States is the number of states seen.
func (x *ExhaustiveSearch) States() int { return x.seen.used }

// Begin is of Scheduler.
func (x *ExhaustiveSearch) Begin() bool {
	if !x.begun {
		x.begun = true
		return true
	}
	if x.runs++; x.Limit > 0 && x.runs >= x.Limit && len(x.frames) > 0 {
		x.Left = true
		return false
	}
	return len(x.frames) > 0
}

// follows: all choices but the last are as before.
func (x *ExhaustiveSearch) follows() int { return max(0, len(x.frames)-1) }

// branches: another choice of the last state is open.
func (x *ExhaustiveSearch) branches() bool {
	f := &x.frames[len(x.frames)-1]
	return x.state.Depth == len(x.frames)-1 && f.open&^f.done&^(1<<f.choice) != 0
}

// Next is of Scheduler.
func (x *ExhaustiveSearch) Next(s *State) int {
	x.state, x.ranks = s, s.Ranks
	d := s.Depth
	if d < len(x.frames) {
		f := &x.frames[d]
		if !slices.Equal(f.steps, s.Steps) {
			panic("sim: a body is not deterministic: it has other steps when it is run again")
		}
		return f.choice
	}
	if len(s.Steps) > 64 {
		panic("sim: Exhaustive is for up to 64 steps at once")
	}
	f := x.push(s)
	if d > 0 {
		x.note()
		x.inherit(&x.frames[d-1], f, s)
	}
	if x.bound >= 0 {
		x.bounded(f, s)
	}
	if f.open&^f.done == 0 || !x.fresh(f, s) {
		x.frames = x.frames[:d]
		return -1
	}
	f.choice = bits.TrailingZeros64(f.open &^ f.done)
	return f.choice
}

// push makes the frame of a new state, in memory of an earlier one.
func (x *ExhaustiveSearch) push(s *State) *frame {
	if len(x.frames) < cap(x.frames) {
		x.frames = x.frames[:len(x.frames)+1]
	} else {
		x.frames = append(x.frames, frame{})
	}
	f := &x.frames[len(x.frames)-1]
	*f = frame{steps: append(f.steps[:0], s.Steps...), last: int32(s.Last)}
	for i := range s.Steps {
		if !s.Steps[i].Idle {
			f.open |= 1 << i
		}
	}
	return f
}

// note notes whether the last step was visible to the check, and whether it read the clock.
func (x *ExhaustiveSearch) note() {
	f := &x.frames[min(x.state.Depth, len(x.frames))-1]
	choice := uint64(1) << f.choice
	f.visible &^= choice
	f.timed &^= choice
	if x.state.Visible {
		f.visible |= choice
	}
	if x.state.Timed {
		f.timed |= choice
	}
}

// inherit puts steps to sleep that were explored before the parent's present one and commute
// with it.
func (x *ExhaustiveSearch) inherit(parent, f *frame, s *State) {
	if x.bound >= 0 || s.Counted {
		return
	}
	did, saw := &parent.steps[parent.choice], parent.visible>>parent.choice&1
	for b := parent.done &^ (1 << parent.choice); b != 0; b &= b - 1 {
		i := bits.TrailingZeros64(b)
		u := &parent.steps[i]
		vis := parent.visible >> i & 1
		if !commute(u, did) || vis&saw == 1 {
			continue
		}
		if u.Kind|did.Kind == StepOwn {
			if bit(u.Rank, u.OpIndex) == 0 {
				continue
			}
		} else if !foreignCommute(u, did) || x.name(u) == 0 ||
			u.Kind == StepTick && parent.timed>>parent.choice&1 == 1 || did.Kind == StepTick && parent.timed>>i&1 == 1 {
			continue
		}
		for j := range s.Steps {
			if u.is(&s.Steps[j]) {
				f.done |= 1 << j
				f.visible |= vis << j
				f.timed |= parent.timed >> i & 1 << j
				break // there is one at most
			}
		}
	}
}

// is reports whether two steps are the same in different states. A tick that must come is
// another one.
func (a *Step) is(b *Step) bool {
	return a.Rank == b.Rank && a.OpIndex == b.OpIndex && a.Kind == b.Kind && (a.Kind != StepTick || a.Must == b.Must)
}

// foreignCommute is the part of commute for steps that are not both of the ranks' own.
func foreignCommute(a, b *Step) bool {
	if a.Kind == StepCrash && b.Kind == StepCrash || a.Kind == StepJoin || b.Kind == StepJoin {
		return false // one of them may be the last that is allowed
	}
	if a.Scarce || b.Scarce { // a tick behind the other step may have to come, and not count
		return false
	}
	return !(a.Kind == StepTick && a.Must || b.Kind == StepTick && b.Must)
}

// commute reports whether the order of two steps makes no difference, readings of the clock
// and the check aside.
func commute(a, b *Step) bool {
	return a.Rank != b.Rank && !a.Ends && !b.Ends && (!a.Writes && !b.Writes || !a.shares(b))
}

// shares reports whether two steps touch a word in common.
func (a *Step) shares(b *Step) bool {
	if a.More|b.More != 0 {
		return a.touches(b.Word, b.More) || b.Other != noWord && a.touches(b.Other, 0) || a.Other != noWord && b.touches(a.Other, 0)
	}
	if a.Word != noWord && (a.Word == b.Word || a.Word == b.Other) {
		return true
	}
	return a.Other != noWord && (a.Other == b.Word || a.Other == b.Other)
}

// touches reports whether a step reads or writes one of some words.
func (a *Step) touches(first, more uint64) bool {
	return a.Word != noWord && first != noWord && a.Word <= first+more && first <= a.Word+a.More
}

// bounded drops the steps that exceed the bound on preemptions.
func (x *ExhaustiveSearch) bounded(f *frame, s *State) {
	if s.Depth > 0 {
		p := &x.frames[s.Depth-1]
		f.used = p.used + int32(x.preempts(p.steps, p.choice, int(p.last)))
	}
	for i := range f.steps {
		if int(f.used)+x.preempts(f.steps, i, s.Last) > x.bound {
			f.open &^= 1 << i
		}
	}
}

// preempts is 1 if step i leaves a rank that could continue, or is an early tick that counts.
func (x *ExhaustiveSearch) preempts(steps []Step, i, last int) int {
	if x.TicksCount && steps[i].Kind == StepTick && !steps[i].Must {
		return 1
	}
	if steps[i].Kind <= StepLimit && steps[i].Rank != last && goesOn(steps, last) {
		return 1
	}
	return 0
}

// goesOn reports whether a rank has a step that must happen.
func goesOn(steps []Step, rank int) bool {
	for k := range steps {
		if steps[k].Rank == rank && steps[k].Must && steps[k].Kind <= StepLimit {
			return true
		}
	}
	return false
}

// fresh reports whether a step of the state was not explored yet, and drops those that were.
func (x *ExhaustiveSearch) fresh(f *frame, s *State) bool {
	h := s.Hash()
	if x.bound >= 0 {
		// Otherwise any next step is no preemption. A step that is no rank's own leaves Last, which may
		// go on after it.
		if goesOn(f.steps, s.Last) || f.steps[len(f.steps)-1].Kind > StepLimit {
			h += mix(1<<62, s.nameOfLast())
		}
		left := uint64(x.bound-int(f.used)) + 1
		most, _ := x.seen.lookup(h)
		if *most >= left {
			return false
		}
		*most = left
		return true
	}
	asleep := x.names(f.steps, f.done)
	slept, was := x.seen.lookup(h)
	if !was {
		*slept = asleep
		return true
	}
	before := *slept
	*slept &= asleep
	if before&^asleep == 0 {
		return false
	}
	for i := range f.steps { // only what slept then and is awake now; the rest was explored then
		if before&x.name(&f.steps[i]) == 0 {
			f.open &^= 1 << i
			f.done &^= 1 << i
		}
	}
	return f.open&^f.done != 0
}

// name is the step's bit in a sleep set, the same in every state; 0 for a step that never
// sleeps.
func (x *ExhaustiveSearch) name(k *Step) uint64 {
	if k.Kind == StepOwn {
		return bit(x.state.e.place(k.Rank), k.OpIndex)
	}
	return x.bitBeyond(k)
}

// bit is name for a step of the rank's own.
func bit(rank, op int) uint64 {
	if rank > 7 || op > 6 {
		return 0
	}
	return 1 << (rank*8 + op + 1)
}

// bitBeyond is name for steps that are not of a rank's own: they have the bits of the ranks
// from 4 on, if there are no such ranks.
func (x *ExhaustiveSearch) bitBeyond(k *Step) uint64 {
	if x.ranks > 4 {
		return 0
	}
	of := (4 + x.state.e.place(k.Rank)) * 8
	switch k.Kind {
	case StepTick:
		return 1 << 63
	case StepCrash:
		return 1 << of
	case StepLimit:
		return 1 << (of + 1)
	case StepGhost:
		if k.OpIndex < 5 {
			return 1 << (of + 2 + k.OpIndex)
		}
	case StepOwn, StepJoin:
	}
	return 0
}

func (x *ExhaustiveSearch) names(steps []Step, set uint64) uint64 {
	var out uint64
	for b := set; b != 0; b &= b - 1 {
		if k := &steps[bits.TrailingZeros64(b)]; k.Kind == StepOwn {
			out |= bit(x.state.e.place(k.Rank), k.OpIndex)
		} else {
			out |= x.bitBeyond(k)
		}
	}
	return out
}

// End is of Scheduler: it returns to the last state with a step left to explore.
func (x *ExhaustiveSearch) End(failed bool) {
	if len(x.frames) > 0 && x.state.Depth == len(x.frames) {
		x.note()
	}
	for len(x.frames) > 0 {
		f := &x.frames[len(x.frames)-1]
		f.done |= 1 << f.choice
		if left := f.open &^ f.done; left != 0 {
			f.choice = bits.TrailingZeros64(left)
			return
		}
		x.frames = x.frames[:len(x.frames)-1]
	}
}
