package sim

import (
	"slices"

	"github.com/rmalock/rmalock/rma"
)

func (e *search) beginSchedule(c *Comm) error {
	if c.r.memo != nil || c.r.generation > 0 { // replayed from the memo tree, or in the middle
		c.r.begun = true
		return nil
	}
	_, err := c.meet(nil, func([]any) any {
		e.keep()
		e.explore()
		return nil
	})
	return err
}

// explore gives the schedule to the scheduler.
func (e *search) explore() {
	e.exploring, e.state.Last = true, -1
	e.clock = (e.clock + e.TickNs - 1) / e.TickNs * e.TickNs
	e.resetRanks()
	if e.alike.on {
		e.pair()
	}
}

func (e *search) endSchedule(c *Comm) error {
	open, err := c.meet(nil, func([]any) any {
		for _, r := range e.w.ranks {
			if len(r.pending)+len(r.ghosts) > 0 {
				return true
			}
		}
		e.exploring = false
		return false
	})
	if err != nil || !open.(bool) {
		return err
	}
	if c.r == e.w.lowest() { // pending operations may still take effect before the end
		e.ask(c.r, request{state: ending})
		e.exploring = false
	}
	return c.Barrier()
}

func (e *search) keepWindows(r *rank) {
	if r.generation == 0 {
		e.keepers++
	}
}

// keptWords is the content of the windows that Keep keeps.
type keptWords struct {
	words [][]int64 // of each segment
	mem   uint64
	clock int64
}

// keep saves the content of the windows, or restores it.
func (e *search) keep() {
	switch k := e.kept; {
	case k != nil:
		for i, s := range e.w.segments {
			copy(s.mem, k.words[i])
		}
		e.mem, e.clock = k.mem, k.clock
	case e.keepers == len(e.w.ranks):
		e.kept = &keptWords{mem: e.mem, clock: e.clock}
		for _, s := range e.w.segments {
			e.kept.words = append(e.kept.words, slices.Clone(s.mem))
		}
	}
}

func (e *search) memoiseRanks(r *rank, outside Snapshotter) {
	if r.generation > 0 {
		return
	}
	_, e.memoise = e.scheduler.(prefixKeeper)
	e.memoise, e.outside = e.memoise && len(e.Faults) == 0, outside
}

func (e *search) startWith(r *rank, f func()) {
	if r.memo != nil || r.generation > 0 { // the execution has begun
		return
	}
	e.start = f
	f()
}

func (e *search) watch(w Watcher) { e.watcher = w }

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
		r.history += o.hash(o.number)
		if o.half {
			r.history += learnt(halfway|o.number, o.seen)
		}
	}
	for _, f := range r.results {
		r.history += learnt(learnt(1<<51+uint64(f.slot), int64(f.seg.key(f.target, 0))), f.value)
	}
	r.before, r.beforeIssued, r.beforeOpen = r.history, 0, true
	r.looked, r.lookedAgain, r.inLoop = false, false, inLoop{}
}

// hash is the hash of what an operation is, under a number.
func (o *operation) hash(number uint64) uint64 {
	x := learnt(number, int64(o.Kind)<<8|int64(o.Op))
	for _, v := range [...]int64{int64(o.seg.key(o.Target, o.Disp)), o.Operand, o.Compare, int64(o.next), int64(o.Words()), int64(o.Epoch)} {
		x = learnt(x, v)
	}
	if o.Kind == rma.KindPutBulk {
		for _, v := range o.Data {
			x = learnt(x, v)
		}
	}
	return x
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

func (e *search) traces(r *rank) bool { return e.tracing && !r.lagging }

func (e *search) markTrace(r *rank, text string) {
	e.note(Event{Rank: r.id, Kind: EventMark, Text: text})
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

func (e *search) name() string { return "sim, schedules searched" }

func (e *search) memory(s *segment, hosts int) error {
	if err := rma.CheckMemory(s.spec, hosts); err != nil {
		return err
	}
	s.mem = make([]int64, s.words*hosts)
	return nil
}

func (e *search) open(c *Comm, s *segment) (rma.Transport, rma.Caps) {
	s.packed = slices.ContainsFunc(s.spec.Regions, func(r rma.Region) bool {
		return slices.ContainsFunc(r.Words, func(w rma.Word) bool { return len(w.Fields) > 0 })
	})
	return &searchTransport{e: e, c: c, s: s}, rma.Caps{NativeSwap: true, AtomicPut: true, MaskedSwap: true}
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
		if r != last && r.state != dead {
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
