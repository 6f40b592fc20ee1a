package sim

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

// Search says what is searched: a body that every rank runs, on a number of nodes.
//
// Between Comm.Begin and Comm.End a Scheduler decides what happens next; before and
// after, ranks take turns.
type Search struct {
	Node     []int // the node of each rank
	MaxSteps int   // an execution that takes more has failed; 0 means 1,000,000
	Faults   []Fault
	// CPUFar lets the CPU do the operations on far words of a node's own ranks, as a
	// backend would that takes CPU and NIC atomics for atomic with each other. They
	// are not: an operation of the NIC that reads and writes takes two steps.
	CPUFar bool
	// Ascending lets the words of a bulk operation take effect in their order, as most
	// transports do; package rma permits any. It keeps an exhaustive search small.
	Ascending bool
}

// A Step is something that can happen next.
type Step struct {
	Rank   int
	Op     int    // 1 + the place of the operation that takes effect among the rank's pending ones; 0: the rank sees its word, or wakes
	Must   bool   // it must happen sooner or later; an operation that nobody flushes need not
	Idle   bool   // a try again that cannot find anything new
	Again  bool   // a try again after the word has changed
	Word   uint64 // number of the word that it touches; noWord for none
	Writes bool
	Ends   bool // it ends the search: what has not taken effect by now never does
}

const noWord = ^uint64(0)

// State is what a Scheduler sees.
type State struct {
	Steps []Step // the last rank's first, then by rank; of one rank: its operations, then its waking
	Last  int    // the rank whose step was last, or -1
	Depth int    // steps done since Begin
	Ranks int

	Did     Step // the last step
	Visible bool // it let a rank pass a Visible mark
	Beaten  int  // the rank whose last try has just failed, or -1
	Idles   int  // steps that are Idle
	Agains  int  // and Again
	Counted bool // what happens depends on numbers of steps (there are faults): no two steps commute

	w *world
}

// Hash is a number that two states share only if the same can happen after them.
func (s *State) Hash() uint64 { return s.w.hash() }

// A Scheduler decides what happens next.
type Scheduler interface {
	// Begin begins an execution, or says that there are no more.
	Begin() bool
	// Next picks a step by its index in s.Steps. A negative one ends the execution:
	// all that could follow was seen.
	Next(s *State) int
	// End ends an execution.
	End(failed bool)
}

// A follower is a Scheduler that knows how many steps at the beginning of the
// execution to come are those of the last: it is not asked for them.
type follower interface {
	follows() int
	branches() bool // whether it will come back to where it picked the last step
}

// Errors of an execution.
var (
	ErrDeadlock = errors.New("deadlock")
	ErrEndless  = errors.New("too many steps")
	ErrFlag     = errors.New("two ranks write a flag word at once")
)

// Stats counts what a search did.
type Stats struct {
	Executions int64 // that ran to the end
	Cut        int64 // that came to a state seen before
	Steps      int64
	Longest    int // steps of the longest execution
}

// A Failure is an execution that went wrong.
type Failure struct {
	Err       error
	Schedule  string // for Replay
	Steps     int
	Execution int64 // its number
	Trace     []Event
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// search is the engine of Run.
type search struct {
	Search
	w         *world
	scheduler Scheduler
	on        bool // between Begin and End
	state     State
	choices   []int
	violation error
	events    []Event
	paused    int   // ranks that wait to try again
	looks     int64 // at the clock
	tracing   bool
	mem       uint64 // hash of the memory
	extra     func() uint64
	stats     Stats
	nic       map[uint64]*operation // words that an operation of a NIC is half through with
	writers   []writer              // of flag words
	faults    []stop                // by fault
	way       []Step                // of the last execution
	same      int                   // steps at the beginning of this one that are those of the last
	homes     []home                // what Comm.Home was told, in order
	homed     int                   // of these, in this execution
	keepers   int                   // ranks that called Comm.Keep
	recall    bool                  // ranks called Comm.Recall
	start     func()                // of Comm.Start, or nil
	acting    bool                  // deeds are done from a page
	kept      *kept                 // from the Begin on that all had
	beside    Beside                // of Comm.Recall
	moments   []moment              // of the last execution, to go back to
}

// A home is a rank's state as Comm.Home was told it after a number of steps.
type home struct {
	rank, depth int
	h           uint64
}

// Counts counts what a rank did since Begin.
type Counts struct {
	Own, Mate, Far int // operations, by the distance of their target
	Awaits         int
	Backoffs       int
}

// Others is the number of operations on other ranks' memory.
func (c Counts) Others() int { return c.Mate + c.Far }

// add counts an operation.
func (n *Counts) add(c *Comm, target int) {
	switch {
	case target == c.rank:
		n.Own++
	case c.g.mates(c.rank, target):
		n.Mate++
	default:
		n.Far++
	}
}

// searched is a rank's part in a search.
type searched struct {
	steps        int    // of its own, since Begin
	issued       uint64 // operations and waits
	history      uint64 // hash of what it found
	before       uint64 // history when the first try of a loop had failed
	beforeIssued uint64
	beforeOpen   bool   // something was not flushed then
	whole        uint64 // operations issued, bulk ones counted once
	rung         bool   // its word has changed since it waits to try again
	doorway      func() // called when the rank's next atomic operation takes effect
}

func (r *searched) reset() { *r = searched{} }

// Run runs body under one schedule after the other, until the Scheduler has no more
// or one fails. It returns the first failure.
func (s Search) Run(sched Scheduler, body func(rma.Comm) error) (Stats, *Failure) {
	e := s.engine(sched, body)
	defer e.w.close()
	for sched.Begin() {
		recalls := e.recall && e.kept != nil
		cut, err := e.execute(recalls)
		if err != nil && recalls { // by the ranks' own code it can be told
			e.forsake()
			was := err
			if cut, err = e.execute(false); err == nil && was != errForsaken {
				panic(fmt.Sprintf("sim: a body does what Comm.Recall does not permit: from pages there is an error, %v", was))
			}
		}
		sched.End(err != nil)
		if cut {
			e.stats.Cut++
		} else {
			e.stats.Executions++
		}
		e.stats.Steps += int64(len(e.choices))
		e.stats.Longest = max(e.stats.Longest, len(e.choices))
		if err != nil {
			return e.stats, &Failure{
				Err: err, Schedule: encode(e.choices), Steps: len(e.choices),
				Execution: e.stats.Executions + e.stats.Cut, Trace: e.events,
			}
		}
	}
	return e.stats, nil
}

// engine makes ready to run executions; close its world when done.
func (s Search) engine(sched Scheduler, body func(rma.Comm) error) *search {
	e := &search{Search: s, scheduler: sched, w: newWorld(s.Node)}
	if e.MaxSteps == 0 {
		e.MaxSteps = 1_000_000
	}
	e.w.search, e.w.body = e, body
	e.state.w, e.state.Ranks, e.state.Counted = e.w, len(s.Node), len(s.Faults) > 0
	e.faults = make([]stop, len(s.Faults))
	for _, r := range e.w.ranks {
		r.start()
	}
	return e
}

// execute runs one execution, from pages or by the ranks' code alone. cut says that the
// scheduler ended it.
func (e *search) execute(recalls bool) (cut bool, err error) {
	w := e.w
	e.violation, e.events, e.acting, e.same = nil, nil, false, 0
	f, ok := e.scheduler.(follower)
	if ok && len(e.Faults) == 0 { // which look at what can happen
		e.same = min(f.follows(), len(e.way)) // it may have begun with another engine
	}
	if !recalls || !e.back() {
		e.begin(recalls)
	}
	for {
		w.run()
		if e.violation != nil {
			break
		}
		if recalls && e.leave() {
			recalls = false
			continue
		}
		if w.alive == 0 {
			return false, w.outcome()
		}
		if w.failed != nil { // they were all let go, and some wait again
			e.violation = w.failed
			break
		}
		if e.on && len(e.choices) < e.same {
			e.choices = e.choices[:len(e.choices)+1]
			e.do(e.way[len(e.choices)-1])
			continue
		}
		if !e.steps() && !(e.resumed() && e.steps()) {
			e.violation = e.deadlock()
			break
		}
		if !e.on {
			e.do(e.state.Steps[e.turn()])
			continue
		}
		if len(e.choices) >= e.MaxSteps {
			e.violation = fmt.Errorf("%w: %d, and %s", ErrEndless, len(e.choices), e.whoWaits())
			break
		}
		i := e.scheduler.Next(&e.state)
		if i < 0 {
			cut = true
			break
		}
		if recalls {
			e.save(f.branches())
		}
		e.way = append(e.way[:len(e.choices)], e.state.Steps[i])
		e.choices = append(e.choices, i)
		e.do(e.state.Steps[i])
	}
	w.abort()
	return cut, e.violation
}

// begin begins an execution.
func (e *search) begin(recalls bool) {
	e.w.reset()
	e.on, e.mem, e.paused, e.looks, e.choices = false, 0, 0, 0, e.choices[:0]
	e.homes, e.homed = e.homes[:e.homed], 0
	e.writers = e.writers[:0]
	clear(e.nic)
	clear(e.faults)
	e.state.Last, e.state.Depth, e.state.Beaten, e.state.Visible = -1, 0, -1, false
	if recalls {
		e.recalls()
		return
	}
	e.extra = nil
	e.w.ready = append(e.w.ready, e.w.ranks...)
}

// steps lists what can happen. It reports false if nothing must.
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
	return must
}

// turn is the step that is next when no scheduler decides: the one that must happen
// of the rank after the last one. Those that fail again and again let others go on.
func (e *search) turn() int {
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
		if e.CPUFar && !o.cpu {
			if h := e.nic[word]; h != nil && h != o {
				continue // the NIC does one after the other
			}
		}
		due := !stops && r.state == flushing && o.seg == r.seg && (r.at < 0 || o.Target == r.at)
		must = must || due
		e.state.Steps = append(e.state.Steps, Step{Rank: r.id, Op: i + 1, Must: due, Word: word, Writes: o.Kind.Writes() && o.Op != rma.NoOp})
	}
	if stops && r.state != ending {
		return must
	}
	step := Step{Rank: r.id, Must: true, Word: noWord}
	switch r.state {
	case flushing: // it was stopped when its last operation took effect
		if r.owes(r.seg, r.at) {
			return must
		}
	case awaiting:
		step.Word = r.seg.key(r.at, r.disp)
		if !r.cond.Holds(*r.seg.word(r.at, r.disp)) {
			return must
		}
	case pausing:
		step.Word = r.seg.key(r.at, r.disp)
		if !r.rung && *r.seg.word(r.at, r.disp) == r.seen {
			step.Must, step.Idle = false, true
			e.state.Idles++
		} else {
			step.Again = true
			e.state.Agains++
		}
	case sleeping:
	case ending:
		step.Ends = true
	default:
		return must
	}
	e.state.Steps = append(e.state.Steps, step)
	return must || step.Must
}

// blocked reports whether an earlier operation of the rank on the same word has not
// taken effect.
func blocked(earlier []*operation, o *operation) bool {
	for _, p := range earlier {
		if p.overlaps(o) {
			return true
		}
	}
	return false
}

// do makes a step happen.
func (e *search) do(step Step) {
	r := e.w.ranks[step.Rank]
	s := &e.state
	s.Did, s.Last, s.Visible, s.Beaten = step, step.Rank, false, -1
	if e.on {
		s.Depth++
		r.steps++
	}
	if step.Op == 0 {
		r.history += told(r.issued, e.found(r))
		r.issued++
		r.wake()
		return
	}
	e.effect(r, step.Op-1)
	if r.state == flushing && !r.owes(r.seg, r.at) && !e.stops(r) {
		r.wake()
	}
}

// found is what a waiting rank sees when it wakes.
func (e *search) found(r *rank) int64 {
	if r.state != awaiting && r.state != pausing {
		return 0
	}
	v := *r.seg.word(r.at, r.disp)
	if e.tracing {
		e.note(Event{Rank: r.id, Kind: EventSees, Seg: r.seg, Target: r.at, Disp: r.disp, After: v})
	}
	if r.state == pausing {
		return 0 // it is not told
	}
	return v
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

// effect lets a pending operation take effect, or its next word or half.
func (e *search) effect(r *rank, i int) {
	o := r.pending[i]
	key := o.seg.key(o.Target, o.Disp+o.next)
	if e.CPUFar && !o.cpu && !o.half && o.readsAndWrites() {
		if e.nic == nil {
			e.nic = map[uint64]*operation{}
		}
		o.half, o.seen = true, *o.seg.word(o.Target, o.Disp)
		e.nic[key] = o
		r.history += told(halfway|o.number, o.seen)
		if e.tracing {
			e.note(Event{Rank: r.id, Kind: EventHalf, Seg: o.seg, Target: o.Target, Disp: o.Disp, Op: o.Operation, Before: o.seen})
		}
		return
	}
	if o.half { // the second half: what it read may be old
		delete(e.nic, key)
		r.history -= told(halfway|o.number, o.seen)
		p := o.seg.word(o.Target, o.Disp)
		now := *p
		*p = o.seen
		before, after, wrote := o.take()
		if !wrote {
			*p, after = now, now
		}
		e.changed(r, o, key, now, after, before)
		r.pass(wrote)
		e.complete(r, i, before)
		return
	}
	before, after, wrote := o.take()
	e.changed(r, o, key, before, after, before)
	r.pass(wrote && o.readsAndWrites())
	if o.Kind == rma.KindGetBulk {
		r.results = append(r.results, result{o.seg, o.Target, o.Slot + o.next, before})
	}
	if o.Data != nil {
		found := before
		if o.Kind == rma.KindPutBulk {
			found = 0
		}
		r.history += told(bulkWord|uint64(o.next+1)<<32^o.number, found)
	}
	if o.next++; o.next == o.Words() {
		e.complete(r, i, before)
	}
}

// pass calls the rank's doorway when an atomic operation has changed a word.
func (r *rank) pass(changed bool) {
	if f := r.doorway; f != nil && changed {
		r.doorway = nil
		f()
	}
}

// What a rank learns has the number of the operation that tells it, and one of these.
const (
	halfway  = 1 << 61 // the first half of an operation
	bulkWord = 1 << 60 // a word of a bulk operation, and its place there, from bit 32 on
)

// readsAndWrites reports whether a NIC does the operation in two halves.
func (o *operation) readsAndWrites() bool {
	return o.Kind == rma.KindCompareAndSwap || (o.Kind == rma.KindFetchAndOp || o.Kind == rma.KindAccumulate) && o.Op != rma.NoOp
}

// changed notes what an effect did to a word.
func (e *search) changed(r *rank, o *operation, key uint64, was, is, found int64) {
	if was != is && e.paused > 0 {
		e.ring(key)
	}
	e.mem += mix(key, uint64(is)) - mix(key, uint64(was))
	if e.tracing {
		e.note(Event{Rank: r.id, Kind: EventEffect, Seg: o.seg, Target: o.Target, Disp: o.Disp + o.next, Op: o.Operation, Before: found, After: is})
	}
}

// rungMark is in the history of a rank that was rung and has not gone on.
const rungMark = 0x9E3779B97F4A7C15

// ring lets ranks go on that wait for a word to change. It may hold again what they
// saw when they come to look: other words have changed too.
func (e *search) ring(key uint64) {
	for _, r := range e.w.ranks {
		if r.state == pausing && !r.rung && r.seg.key(r.at, r.disp) == key {
			r.rung = true
			r.history += rungMark
		}
	}
}

// complete takes an operation from the pending ones.
func (e *search) complete(r *rank, i int, found int64) {
	o := r.pending[i]
	copy(r.pending[i:], r.pending[i+1:])
	r.pending = r.pending[:len(r.pending)-1]
	if o.finds() {
		r.results = append(r.results, result{o.seg, o.Target, o.Slot, found})
	} else {
		found = 0
	}
	r.history += told(o.number, found)
	if o.Class == rma.Flag && o.Kind.Writes() {
		e.unwrite(r, o)
	}
	r.spare = append(r.spare, o)
}

// deadlock says who waits for what.
func (e *search) deadlock() error {
	return fmt.Errorf("%w: %s", ErrDeadlock, e.whoWaits())
}

func (e *search) whoWaits() string {
	var b strings.Builder
	more := 0
	for _, r := range e.w.ranks {
		what := e.doing(r)
		if what == "" {
			continue
		}
		if b.Len() > 1500 {
			more++
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "rank %d %s", r.id, what)
	}
	if more > 0 {
		fmt.Fprintf(&b, "; and %d ranks more", more)
	}
	return b.String()
}

// doing says what a rank waits for.
func (e *search) doing(r *rank) string {
	what := ""
	switch r.state {
	case flushing:
		what = fmt.Sprintf("flushes rank %d", r.at)
	case awaiting:
		what = fmt.Sprintf("awaits %s %v, which is %d", r.seg.name(r.at, r.disp), r.cond, *r.seg.word(r.at, r.disp))
	case pausing:
		what = fmt.Sprintf("tries again when %s is not %d", r.seg.name(r.at, r.disp), r.seen)
	case sleeping:
		what = "sleeps"
	}
	for _, o := range r.pending {
		if !(r.state == flushing && o.seg == r.seg && (r.at < 0 || o.Target == r.at)) {
			what += fmt.Sprintf(", has not flushed %s of %s", describe(&o.Operation), o.seg.name(o.Target, o.Disp))
		}
	}
	if e.stops(r) {
		what += ", was stopped by a fault"
	}
	return strings.TrimPrefix(what, ", ")
}

// hash is that of the whole state.
func (w *world) hash() uint64 {
	e := w.search
	h := e.mem + e.hashFaults()
	for _, r := range w.ranks {
		h += mix(uint64(r.id)<<32|0xABCD, r.history)
	}
	if e.extra != nil {
		h += e.extra()
	}
	return h
}

// told hashes what the rank learnt from the n'th thing that it did; never 0.
func told(n uint64, v int64) uint64 { return mix(n, uint64(v)+0x5851F42D4C957F2D) | 1 }

// mix hashes a number with another; 0 for a value of 0 as untouched words have.
func mix(key, value uint64) uint64 {
	if value == 0 {
		return 0
	}
	x := (key+1)*0x9E3779B97F4A7C15 ^ value*0xD6E8FEB86659FD93
	x ^= x >> 32
	x *= 0xD6E8FEB86659FD93
	x ^= x >> 29
	x *= 0x94D049BB133111EB
	return x ^ x>>32
}
