package sim

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// Begin gives the schedule to the Scheduler until End. Collective over all ranks of a
// search; no operation may be pending.
func (c *Comm) Begin() error {
	c.r.counts, c.r.bulkWords, c.r.bulkDue = Counts{}, c.r.bulkWords[:0], 0
	if c.r.memo != nil {
		return nil
	}
	_, err := c.meet(nil, func([]any) any {
		if e := c.r.w.search; e != nil {
			e.keep()
			e.exploring, e.state.Last = true, -1
			for _, r := range e.w.ranks {
				r.searchState.reset()
			}
		}
		return nil
	})
	return err
}

// Keep keeps the windows of the ranks for all executions of a search. All ranks call it
// before the same Begin. At every Begin the windows hold what they held at this one.
func (c *Comm) Keep() {
	if e := c.r.w.search; e != nil {
		e.keepers++
	}
}

// kept is the content of the windows that Keep keeps.
type kept struct {
	words      [][]int64 // of each segment
	mem        uint64
	clockReads int64
}

// keep saves the content of the windows, or restores it.
func (e *search) keep() {
	switch k := e.kept; {
	case k != nil:
		for i, s := range e.w.segments {
			copy(s.mem, k.words[i])
		}
		e.mem, e.clockReads = k.mem, k.clockReads
	case e.keepers == len(e.w.ranks):
		e.kept = &kept{mem: e.mem, clockReads: e.clockReads}
		for _, s := range e.w.segments {
			e.kept.words = append(e.kept.words, slices.Clone(s.mem))
		}
	}
}

// End takes the schedule from the Scheduler. Collective. Operations that are pending then
// take effect before it or never.
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
		e.exploring = false
		return false
	})
	if err != nil || !open.(bool) {
		return err
	}
	if c.r.id == 0 { // pending operations may still take effect before the end
		c.r.ask(request{state: ending})
		e.exploring = false
	}
	return c.Barrier()
}

// Home declares that state() is a hash of the rank's state, pending operations excepted.
// Ranks whose hashes are equal must behave alike from then on. A search recognises states
// by it.
func (c *Comm) Home(state func() uint64) {
	r := c.r
	switch {
	case r.w.search == nil || r.lagging:
	case r.memo != nil:
		h := state()
		r.home(h)
		r.record(action{home: h})
	default:
		r.home(r.w.search.home(r.id, state))
	}
}

// home is Home, by the hash.
func (r *rank) home(h uint64) {
	r.history, r.issued = learnt(1<<40, int64(h)), 0
	for i, o := range r.pending {
		o.number = 1<<50 + uint64(i)
		x := learnt(o.number, int64(o.Kind)<<8|int64(o.Op))
		for _, v := range [...]int64{int64(o.seg.key(o.Target, o.Disp)), o.Operand, o.Compare, int64(o.next), int64(o.Words())} {
			x = learnt(x, v)
		}
		if o.Kind == rma.KindPutBulk {
			for _, v := range o.Data {
				x = learnt(x, v)
			}
		}
		r.history += x
		if o.half {
			r.history += learnt(halfway|o.number, o.seen)
		}
	}
	for _, f := range r.results {
		r.history += learnt(learnt(1<<51+uint64(f.slot), int64(f.seg.key(f.target, 0))), f.value)
	}
	r.before, r.beforeIssued, r.beforeOpen = r.history, 0, true
}

// home returns state(), or the hash of the last execution within the common steps.
func (e *search) home(rank int, state func() uint64) uint64 {
	depth := e.state.Depth
	if h := e.homes; e.homed >= len(h) || h[e.homed].rank != rank || h[e.homed].depth != depth || depth > e.prefix {
		e.homes = append(h[:e.homed], home{rank, depth, state()})
	}
	e.homed++
	return e.homes[e.homed-1].h
}

// Visible says that the check depends on the order of this call among those of other ranks:
// a search then tells schedules apart in which the order differs.
func (c *Comm) Visible() {
	if e := c.r.w.search; e != nil {
		e.state.Visible = true
	}
}

// Doorway calls f when the rank's next atomic operation that changes a word takes effect.
func (c *Comm) Doorway(f func()) { c.r.doorway = f }

// Counts counts what the rank did since Begin.
func (c *Comm) Counts() Counts { return c.r.counts }

// Mark writes a line into the trace.
func (c *Comm) Mark(format string, args ...any) {
	if e := c.r.w.search; e != nil && e.tracing {
		e.note(Event{Rank: c.r.id, Kind: EventMark, Text: fmt.Sprintf(format, args...)})
	}
}

// Extra adds the hash of a check's own state to that of the search's state.
func (c *Comm) Extra(hash func() uint64) {
	if e := c.r.w.search; e != nil {
		e.extra = hash
	}
}

// Fail ends the execution with an error that a check found.
func (c *Comm) Fail(err error) {
	w := c.r.w
	if w.search == nil {
		panic(err)
	}
	if w.search.violation == nil {
		w.search.violation = err
	}
	if !w.search.replaying {
		c.r.park(sleeping)
	}
}

// clockNs is the time that a reading of the clock takes. Without it a loop that waits for
// the clock would never end.
const clockNs = 20

// Now is the virtual time. In a search it advances by a microsecond at every reading and at
// every step.
func (c *Comm) Now() int64 {
	if e := c.r.w.search; e != nil {
		c.r.impure()
		e.clockReads++
		return (e.clockReads + int64(len(e.choices))) * 1000
	}
	c.r.now += clockNs
	return c.r.now
}

// Sleep suspends the rank: in virtual time for ns nanoseconds, in a search for as many steps
// as the schedule says, while Now advances by ns.
func (c *Comm) Sleep(ns int64) {
	if w := c.r.w; w.clock != nil {
		w.clock.sleep(c.r, ns)
		return
	}
	c.r.ask(request{state: sleeping, us: (max(ns, 0) + 999) / 1000})
}

// WorldRank is the caller's rank in the job, also on a part of it that Split made.
func (c *Comm) WorldRank() int { return c.r.id }
