package sim

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// Begin gives the schedule to the Scheduler from here on. Collective over all ranks
// of a search; nothing may be unflushed.
func (c *Comm) Begin() error {
	c.r.counts, c.r.lands, c.r.due = Counts{}, c.r.lands[:0], 0
	if c.r.page != nil {
		return nil
	}
	_, err := c.meet(nil, func([]any) any {
		if e := c.r.w.search; e != nil {
			e.keep()
			e.on, e.state.Last = true, -1
			for _, r := range e.w.ranks {
				r.searched.reset()
			}
		}
		return nil
	})
	return err
}

// Keep, called by all ranks of a search before the same Begin, lets the windows that they
// have live through all executions. At every Begin they hold what they held at this one.
func (c *Comm) Keep() {
	if e := c.r.w.search; e != nil {
		e.keepers++
	}
}

// kept is what Keep keeps.
type kept struct {
	words [][]int64 // of each segment
	mem   uint64
	looks int64
}

// keep keeps, or puts back what was kept.
func (e *search) keep() {
	switch k := e.kept; {
	case k != nil:
		for i, s := range e.w.segments {
			copy(s.mem, k.words[i])
		}
		e.mem, e.looks = k.mem, k.looks
	case e.keepers == len(e.w.ranks):
		e.kept = &kept{mem: e.mem, looks: e.looks}
		for _, s := range e.w.segments {
			e.kept.words = append(e.kept.words, slices.Clone(s.mem))
		}
	}
}

// End takes the schedule back. Collective. What ranks have not flushed by then may
// have had no effect.
func (c *Comm) End() error {
	e := c.r.w.search
	open, err := c.meet(nil, func([]any) any {
		if e == nil {
			return false
		}
		for _, r := range e.w.ranks {
			if len(r.pending) > 0 {
				return true
			}
		}
		e.on = false
		return false
	})
	if err != nil || !open.(bool) {
		return err
	}
	if c.r.id == 0 { // some of it may still take effect before the end
		c.r.ask(request{state: ending})
		e.on = false
	}
	return c.Barrier()
}

// Home says that the rank's state, apart from operations that it has not flushed, is
// described by state(): states with equal numbers go on alike. It is what lets a search
// see that it has been at a state before.
func (c *Comm) Home(state func() uint64) {
	r := c.r
	switch {
	case r.w.search == nil || r.behind:
	case r.page != nil:
		h := state()
		r.home(h)
		r.write(deed{home: h})
	default:
		r.home(r.w.search.home(r.id, state))
	}
}

// home is Home of a state.
func (r *rank) home(h uint64) {
	r.history, r.issued = told(1<<40, int64(h)), 0
	for i, o := range r.pending {
		o.number = 1<<50 + uint64(i)
		x := told(o.number, int64(o.Kind)<<8|int64(o.Op))
		for _, v := range [...]int64{int64(o.seg.key(o.Target, o.Disp)), o.Operand, o.Compare, int64(o.next), int64(o.Words())} {
			x = told(x, v)
		}
		if o.Kind == rma.KindPutBulk {
			for _, v := range o.Data {
				x = told(x, v)
			}
		}
		r.history += x
		if o.half {
			r.history += told(halfway|o.number, o.seen)
		}
	}
	for _, f := range r.results {
		r.history += told(told(1<<51+uint64(f.slot), int64(f.seg.key(f.target, 0))), f.value)
	}
	r.before, r.beforeIssued, r.beforeOpen = r.history, 0, true
}

// home is state(), which is not called again where the execution is as the last one.
func (e *search) home(rank int, state func() uint64) uint64 {
	depth := e.state.Depth
	if h := e.homes; e.homed >= len(h) || h[e.homed].rank != rank || h[e.homed].depth != depth || depth > e.same {
		e.homes = append(h[:e.homed], home{rank, depth, state()})
	}
	e.homed++
	return e.homes[e.homed-1].h
}

// Visible says that the check saw this moment: a search does not take schedules for
// alike in which such moments come in another order.
func (c *Comm) Visible() {
	if e := c.r.w.search; e != nil {
		e.state.Visible = true
	}
}

// Doorway calls f when the rank's next atomic operation takes effect that changes a
// word. Until then it is as if the rank had not come.
func (c *Comm) Doorway(f func()) { c.r.doorway = f }

// Counts counts what the rank did since Begin.
func (c *Comm) Counts() Counts { return c.r.counts }

// Mark writes a line into the trace.
func (c *Comm) Mark(format string, args ...any) {
	if e := c.r.w.search; e != nil && e.tracing {
		e.note(Event{Rank: c.r.id, Kind: EventMark, Text: fmt.Sprintf(format, args...)})
	}
}

// Extra adds to the hash of the state what a check keeps beside it.
func (c *Comm) Extra(hash func() uint64) {
	if e := c.r.w.search; e != nil {
		e.extra = hash
	}
}

// Fail ends the execution: a check found something wrong.
func (c *Comm) Fail(err error) {
	w := c.r.w
	if w.search == nil {
		panic(err)
	}
	if w.search.violation == nil {
		w.search.violation = err
	}
	if !w.search.acting {
		c.r.park(sleeping)
	}
}

// clockNs is what reading the clock takes, so that who waits by looking at it gets on.
const clockNs = 20

// Now is the virtual time; in a search it goes on by a microsecond whenever somebody
// looks at it, or a step is done.
func (c *Comm) Now() int64 {
	if e := c.r.w.search; e != nil {
		c.r.unwritten()
		e.looks++
		return (e.looks + int64(len(e.choices))) * 1000
	}
	c.r.now += clockNs
	return c.r.now
}

// Sleep lets others go on: in virtual time for ns nanoseconds, in a search for as many
// steps as the schedule says, and Now goes on by ns.
func (c *Comm) Sleep(ns int64) {
	if w := c.r.w; w.clock != nil {
		w.clock.sleep(c.r, ns)
		return
	}
	c.r.ask(request{state: sleeping, us: (max(ns, 0) + 999) / 1000})
}

// Rank in the job, not in a part of it.
func (c *Comm) World() int { return c.r.id }
