package sim

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// course is what has happened to the job as a whole.
type course struct {
	clock  int64 // nanoseconds
	ticks  int   // since Begin
	forced int   // of these, where nothing else had to happen
	deaths int
	joins  int
}

// mostReadings is how often a rank reads the clock without a wait in between, before it waits
// for a tick: a loop that does nothing else has to end.
const mostReadings = 100

func (e *search) now(r *rank) int64 {
	if r.readings++; r.readings > mostReadings && e.exploring {
		e.sleep(r, 1)
	}
	return e.ask(r, request{state: reading}).value
}

func (e *search) sleep(r *rank, ns int64) {
	q := request{state: sleeping}
	switch {
	case !e.exploring:
		e.clock += max(ns, 0)
	case e.Ticks > 0 && ns > 0:
		q.wait.Until = e.ask(r, request{state: reading}).value + ns
	}
	e.ask(r, q)
}

func (e *search) clockForCheck(*rank) int64 {
	e.state.Timed = true
	return e.clock
}

// readClock is a rank's reading of the clock, which outside Begin and End advances with it.
func (e *search) readClock(r *rank) {
	if !e.exploring {
		e.clock += 1000
		return
	}
	e.needTicks(r, "reads the clock")
	if e.Ages {
		r.history += learnt(r.issued, int64(r.age(e.clock, r.since)))
	} else {
		r.history += learnt(r.issued, e.clock)
	}
	r.issued++
	r.looked, r.lookedAgain, e.state.Timed = true, true, true
}

// needTicks refuses what a clock decides in a search in which it does not move.
func (e *search) needTicks(r *rank, does string) {
	if e.Ticks == 0 && e.violation == nil {
		e.violation = fmt.Errorf("%w: rank %d %s; set Search.Ticks (Plan.Ticks, --ticks) to the number of times that it may advance", ErrClock, r.id, does)
	}
}

// missedMark is part of the history of a rank whose wait with a limit may end by it.
const missedMark = 0xC2B2AE3D27D4EB4F

// looks reports whether a rank in a wait with a limit has yet to see that its condition does not
// hold, and can. Only then may the wait end with the limit.
func (r *rank) looks() bool {
	return r.state == awaiting && r.wait.Until != rma.Forever && !r.missed && r.found() < 0
}

// look is the step by which the rank sees it.
func (e *search) look(r *rank) {
	r.missed = true
	r.history += missedMark

}

// passLimit ends a rank's wait by its limit.
func (e *search) passLimit(r *rank) {
	if e.tracing {
		e.note(Event{Rank: r.id, Kind: EventMark, Text: "waits no longer: the limit has passed"})
	}
	r.history += learnt(1<<42^r.issued, 0)
	r.issued++
	r.late = true
	e.wake(r)
}

// tick advances the clock. A retry may then find something else though its word is the same.
func (e *search) tick(forced bool) {
	e.ticks++
	if forced {
		e.forced++
	}
	e.clock += e.TickNs
	e.expire()
	for _, r := range e.w.ranks {
		if r.state == pausing && !r.changed {
			r.changed = true
			r.history += changedMark
		}
	}
	if e.tracing {
		e.note(Event{Rank: -1, Kind: EventMark, Text: fmt.Sprintf("the clock advances to %d ns", e.clock)})
	}
	e.tell(func(w Watcher) { w.Ticked(forced) })
}

// tell tells the watcher, as a part of the step.
func (e *search) tell(f func(w Watcher)) {
	if e.watcher != nil {
		e.replaying = true // no rank runs
		f(e.watcher)
		e.replaying = false
	}
}

// awaitsClock reports whether a rank waits for a moment that is to come.
func (e *search) awaitsClock() bool {
	for _, r := range e.w.ranks {
		switch r.state {
		case awaiting:
			if r.wait.Until != rma.Forever {
				return true
			}
		case sleeping:
			if r.wait.Until > e.clock {
				return true
			}
		case pausing:
			if r.looked {
				return true
			}
		}
	}
	return false
}

// limitPasses ends, outside Begin and End, the wait whose limit is the earliest, where no rank
// can continue before it. It reports whether there is one.
func (e *search) limitPasses() bool {
	var first *rank
	for _, r := range e.w.ranks {
		if r.state == awaiting && r.wait.Until != rma.Forever && (first == nil || r.wait.Until < first.wait.Until) {
			first = r
		}
	}
	if first == nil {
		return false
	}
	e.clock = max(e.clock, first.wait.Until)
	first.late = true
	e.w.ready = append(e.w.ready, first)
	return true
}

// ticked is a number for the ticks that have been, by which those that may come follow.
func (e *search) ticked() uint64 {
	if e.TicksForced {
		return uint64(e.ticks) | uint64(e.forced)<<32
	}
	return uint64(e.ticks)
}

// hashCourse is the hash of the clock, the deaths, and of what the dead have left.
func (e *search) hashCourse() uint64 {
	h := mix(1<<53, e.ticked())
	if e.deaths == 0 {
		return h
	}
	for _, r := range e.w.ranks {
		h += mix(1<<54+uint64(r.id), 2*uint64(r.generation)+b2u(r.state == dead))
		for i, o := range r.ghosts {
			x := o.hash(1<<55 + uint64(r.id)<<32 + uint64(i))
			if o.half {
				x = learnt(x, o.seen)
			}
			h += x
		}
	}
	return h
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
