package sim

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

func (e *search) beginSchedule(c *Comm) error {
	if c.r.memo != nil { // replayed from the memo tree, which begins here
		return nil
	}
	_, err := c.meet(nil, func([]any) any {
		e.keep()
		e.exploring, e.state.Last = true, -1
		e.resetRanks()
		return nil
	})
	return err
}

func (e *search) endSchedule(c *Comm) error {
	open, err := c.meet(nil, func([]any) any {
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
		e.ask(c.r, request{state: ending})
		e.exploring = false
	}
	return c.Barrier()
}

func (e *search) keepWindows() { e.keepers++ }

// keptWords is the content of the windows that Keep keeps.
type keptWords struct {
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
		e.kept = &keptWords{mem: e.mem, clockReads: e.clockReads}
		for _, s := range e.w.segments {
			e.kept.words = append(e.kept.words, slices.Clone(s.mem))
		}
	}
}

func (e *search) memoiseRanks(outside Snapshotter) {
	_, e.memoise = e.scheduler.(prefixKeeper)
	e.memoise, e.outside = e.memoise && len(e.Faults) == 0 && !e.CPUFar, outside
}

func (e *search) startWith(r *rank, f func()) {
	if r.memo != nil { // the execution has begun
		return
	}
	e.start = f
	f()
}

func (e *search) effectOutside(r *rank, f func()) {
	if r.lagging {
		return
	}
	f()
	r.record(action{effect: f})
}

func (e *search) declareHome(r *rank, state func() uint64) {
	switch {
	case r.lagging:
	case r.memo != nil:
		h := state()
		r.home(h)
		r.record(action{home: h})
	default:
		r.home(e.home(r.id, state))
	}
}

// home is Home, by the hash.
func (r *rank) home(h uint64) {
	r.history, r.issued = learnt(1<<40, int64(h)), 0
	for i, o := range r.pending {
		o.number = 1<<50 + uint64(i)
		x := learnt(o.number, int64(o.Kind)<<8|int64(o.Op))
		for _, v := range [...]int64{int64(o.seg.key(o.Target, o.Disp)), o.Operand, o.Compare, int64(o.next), int64(o.Words()), int64(o.Epoch)} {
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

func (e *search) seeVisible() { e.state.Visible = true }

func (e *search) markTrace(r *rank, format string, args []any) {
	if e.tracing {
		e.note(Event{Rank: r.id, Kind: EventMark, Text: fmt.Sprintf(format, args...)})
	}
}

func (e *search) extraHash(hash func() uint64) { e.extra = hash }

func (e *search) failWith(r *rank, err error) {
	if e.violation == nil {
		e.violation = err
	}
	if !e.replaying {
		r.park(sleeping)
	}
}

func (e *search) now(r *rank) int64 {
	e.impure(r)
	e.clockReads++
	return (e.clockReads + int64(len(e.choices))) * 1000
}

func (e *search) sleep(r *rank, ns int64) {
	e.ask(r, request{state: sleeping, us: (max(ns, 0) + 999) / 1000})
}

func (e *search) name() string { return "sim, schedules searched" }

func (e *search) memory(s *segment, hosts int) error {
	if err := rma.CheckMemory(s.spec, hosts); err != nil {
		return err
	}
	s.mem = make([]int64, s.words*hosts)
	return nil
}

func (e *search) open(c *Comm, s *segment) (rma.Transport, rma.Caps) {
	return &searchTransport{e: e, c: c, s: s}, rma.Caps{NativeSwap: true, AtomicPut: true}
}

// enter has a memoised rank wait until all are at the collective call.
func (e *search) enter(r *rank) {
	if r.memo != nil {
		e.ask(r, request{state: leaving})
	}
}

func (e *search) met(g *group, last *rank) {
	g.know()
	for _, r := range g.ranks {
		if r != last {
			e.w.ready = append(e.w.ready, r)
		}
	}
}

// know adds the histories of all ranks to that of each.
func (g *group) know() {
	known := uint64(0)
	for _, r := range g.ranks {
		known += mix(uint64(r.id)+1, r.history)
	}
	for _, r := range g.ranks {
		r.history = learnt(r.history, int64(known))
	}
}

// returned ends a memoised execution: the rank's own code shows whether with an error.
func (e *search) returned(r *rank) {
	if r.memo != nil {
		e.w.alive--
		e.violation = errImpure
		return
	}
	e.w.returned(r)
}

func (e *search) elapsedSoFar() Elapsed { return Elapsed{} }
