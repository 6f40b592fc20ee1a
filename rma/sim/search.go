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
