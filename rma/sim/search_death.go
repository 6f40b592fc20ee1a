package sim

import (
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// foreignSteps lists the steps that are no rank's own: operations of the dead, then deaths and
// successors, then the tick. must says whether another step must happen.
func (e *search) foreignSteps(must bool) bool {
	if e.deaths > 0 {
		for _, r := range e.w.ranks {
			e.ghostSteps(r)
		}
	}
	if !slices.ContainsFunc(e.w.ranks, (*rank).waits) {
		return must // all are at End, or in another collective call
	}
	for _, r := range e.w.ranks {
		switch {
		case r.waits() && e.deaths < e.Crashes:
			e.state.step(r.id).Kind = StepCrash
		case r.state == dead && e.joins < e.Rejoins:
			e.state.step(r.id).Kind = StepJoin
		}
	}
	if e.ticks < e.Ticks && (!e.Ages || e.matters()) && !(must && e.TicksForced && e.ticks-e.forced >= e.TicksEarly) {
		forced := !must && e.awaitsClock()
		if e.MaxDelay > 0 && e.delayed() {
			return must || forced && e.hurry()
		}
		s := e.state.step(-1)
		s.Kind, s.Must, s.Scarce = StepTick, forced, e.TicksForced && !forced
		return must || forced
	}
	return must
}

// ghostSteps lists the operations of a dead rank, and of the predecessors of a rank, that can
// take effect.
func (e *search) ghostSteps(r *rank) {
	for i, o := range r.ghosts {
		word := o.seg.key(o.Target, o.Disp+o.next)
		if blocked(r.ghosts[:i], o) || e.lost(o) || e.CPUFar && e.taken(o, word) || e.MaxDelay > 0 && e.ticks-o.ticks > e.MaxDelay {
			continue
		}
		s := e.state.step(r.id)
		s.OpIndex, s.Kind, s.Word, s.More, s.Writes = i, StepGhost, word, e.beyondNext(o), o.Kind.Writes() && o.Op != rma.NoOp
	}
}

// waits reports whether the rank waits for its windows or for the clock. It may die there.
func (r *rank) waits() bool {
	return r.state == flushing || r.state == awaiting || r.state == pausing || r.state == sleeping
}

// taken reports whether, with CPUFar, the NIC is in the middle of another operation on the
// word: it does one after the other.
func (e *search) taken(o *operation, word uint64) bool {
	if o.cpu {
		return false
	}
	half := func(h *operation) bool { return h.half && h != o && h.seg.key(h.Target, h.Disp) == word }
	for _, r := range e.w.ranks {
		if slices.ContainsFunc(r.pending, half) || slices.ContainsFunc(r.ghosts, half) {
			return true
		}
	}
	return false
}

// doForeign does a step that is no rank's own.
func (e *search) doForeign(step *Step) {
	switch step.Kind {
	case StepTick:
		e.tick(step.Must)
	case StepCrash:
		e.crash(e.w.ranks[step.Rank])
	case StepJoin:
		e.join(e.w.ranks[step.Rank])
	case StepGhost:
		e.ghost(e.w.ranks[step.Rank], step.OpIndex)
	case StepOwn, StepLimit:
	}
}

// ghost has an operation of a dead rank take effect. No rank gets its result.
func (e *search) ghost(r *rank, i int) {
	history, results, doorway := r.history, len(r.results), r.doorway
	r.pending, r.ghosts, r.doorway = r.ghosts, r.pending, nil
	e.effect(r, i)
	r.pending, r.ghosts, r.doorway = r.ghosts, r.pending, doorway
	r.history, r.results = history, r.results[:results]
}

// crash stops a rank for ever. Its pending operations may take effect later, or never.
func (e *search) crash(r *rank) {
	e.deaths++
	e.w.dead++
	e.w.alive--
	if r.state == pausing {
		e.paused--
	}
	r.ghosts = append(r.ghosts, r.pending...)
	r.pending, r.results, r.doorway = r.pending[:0], r.results[:0], nil
	r.searchState = searchState{steps: r.steps, generation: r.generation}
	if r.memo == nil {
		e.quit(r)
	}
	r.state = dead
	if e.tracing {
		e.note(Event{Rank: r.id, Kind: EventMark, Text: "dies"})
	}
	e.tell(func(w Watcher) { w.Died(r.id) })
	e.finishWithout(r, e.w.all)
	for _, g := range e.w.groups {
		e.finishWithout(r, g)
	}
}

// finishWithout ends a collective call that waited for nobody but a rank that has died.
func (e *search) finishWithout(r *rank, g *group) {
	if n := g.living(); g.arrived > 0 && g.arrived == n && g.has(r) {
		g.finish(nil)
	}
}

func (g *group) has(r *rank) bool {
	for _, q := range g.ranks {
		if q == r {
			return true
		}
	}
	return false
}

// join has a successor take the place of a dead rank.
func (e *search) join(r *rank) {
	e.joins++
	e.w.dead--
	e.w.alive++
	r.searchState = searchState{steps: r.steps, generation: r.generation + 1}
	r.history = learnt(1<<43, int64(r.generation))
	r.state = running
	if e.tracing {
		e.note(Event{Rank: r.id, Kind: EventMark, Text: "has a successor"})
	}
	e.tell(func(w Watcher) { w.Joined(r.id) })
	if !e.byMemo {
		r.memo = nil
	} else if n := int(r.generation) - 1; n < len(r.heirs) {
		r.memo = r.heirs[n]
		e.replayNode(r)
		return
	} else {
		r.heirs = append(r.heirs, &memoNode{})
		r.memo = r.heirs[n]
	}
	if r.in {
		e.quit(r)
	}
	r.state, r.lagging = running, false
	e.runOn(r)
}

// lowest is the lowest rank that lives.
func (w *world) lowest() *rank {
	for _, r := range w.ranks {
		if r.state != dead {
			return r
		}
	}
	return nil
}
