package sim

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// Search says what is searched: a body that every rank runs, on a number of nodes.
//
// Between Comm.Begin and Comm.End a Scheduler decides what happens next; before and
// after, ranks take turns.
type Search struct {
	Node []int // the node of each rank
	// MemoryNodes is the number of memory nodes.
	MemoryNodes int
	// MaxSteps is the number of steps after which an execution has failed; 0 means 1,000,000, and
	// 20,000 under Exhaustive, whose executions are short where ranks do not stop each other for ever.
	MaxSteps int
	Faults   []Fault
	// CPUFar lets the CPU do the operations on far words of a node's own ranks, as a
	// backend would that takes CPU and NIC atomics for atomic with each other. They
	// are not: an operation of the NIC that reads and writes takes two steps.
	CPUFar bool
	// Ascending lets the words of a bulk operation take effect in their order, as most
	// transports do; package rma permits any. It keeps an exhaustive search small.
	Ascending bool
	// AtOnce lets a bulk operation take effect in one step. That loses nothing where no rank writes
	// words that another one may read meanwhile, such as a block that no pointer leads to.
	AtOnce bool

	// Ticks is how often the clock may advance, each time by TickNs nanoseconds; a TickNs of
	// 0 means DefaultTickNs. With Ticks 0 a rank that reads the clock, or waits with a limit,
	// is an error (ErrClock).
	Ticks  int
	TickNs int64
	// MaxDelay is after how many ticks an operation has taken effect that a rank has issued; of
	// a dead rank it may also never do so. 0 is for no bound.
	MaxDelay int
	// Ages says that ranks read the clock in loops of waits alone, and tell what they know of it
	// (Comm.Turn). A search then takes states for one that differ by when they are. A tick comes only
	// where it makes a difference to a rank.
	Ages bool
	// TicksForced has a tick come only where no other step must, but for TicksEarly of them: leases
	// are longer than what ranks do without a wait.
	TicksForced bool
	TicksEarly  int
	// Crashes is how many ranks may stop for ever, each at any step.
	Crashes int
	// Rejoins is how many successors may take the place of ranks that stopped. A successor
	// runs the body anew, as the next Comm.Generation of the rank.
	Rejoins int
}

// Bounds on the steps of an execution where Search.MaxSteps is 0.
const (
	mostSteps           = 1_000_000
	mostStepsExhaustive = 20_000
)

// DefaultTickNs is by how much a tick advances the clock of a search.
const DefaultTickNs = 1000

// A StepKind is what happens in a Step.
type StepKind uint8

const (
	StepOwn   StepKind = iota // an operation of the rank takes effect, or the rank wakes
	StepLimit                 // the rank stops waiting, since the limit has passed
	StepGhost                 // an operation that a dead rank had issued takes effect
	StepCrash                 // the rank stops for ever
	StepJoin                  // a successor takes the dead rank's place
	StepTick                  // the clock advances
)

// A Step is something that can happen next.
type Step struct {
	Rank int // -1 for a tick
	// OpIndex is the index, among the rank's pending operations, of the one that takes
	// effect; -1: no operation does.
	OpIndex int
	Word    uint64 // number of the word that it reads or writes, or the first; noWord for none
	More    uint64 // how many words behind Word it reads or writes too
	Other   uint64 // of the second word that it reads; noWord for none
	Kind    StepKind
	Must    bool // it must happen sooner or later; an operation without a Flush need not
	Idle    bool // a retry whose word has not changed
	Again   bool // a retry whose word has changed
	Writes  bool
	Ends    bool // the job's End: operations that have not taken effect by then never do
	Scarce  bool // a tick of which there are TicksEarly
}

const noWord = ^uint64(0)

// State is what a Scheduler sees.
type State struct {
	// Steps are those of rank Last first, then by rank; of one rank: its operations, then its
	// wake-up. Those that are no rank's own come after all others.
	Steps []Step
	Last  int // rank of the last step of a rank's own, or -1
	Depth int // steps done since Begin
	Ranks int

	Visible bool // a rank called Comm.Visible after the last step
	Timed   bool // a rank read the clock after it
	Beaten  int  // the rank that just entered Backoff, or -1
	Idles   int  // steps that are Idle
	Agains  int  // and Again
	Counted bool // faults count steps, so no two steps commute

	e *search
}

// Hash is a number that two states share only if the same can happen after them.
func (s *State) Hash() uint64 { return s.e.hash() }

// A Scheduler chooses the step that happens next.
type Scheduler interface {
	// Begin begins an execution, or returns false if there are no more.
	Begin() bool
	// Next returns the index of a step in s.Steps. A negative one ends the execution,
	// because all that could follow was seen.
	Next(s *State) int
	// End ends an execution.
	End(failed bool)
}

// A prefixKeeper is a Scheduler that knows how many steps the next execution has in common
// with the last one. Next is not called for them.
type prefixKeeper interface {
	follows() int
	branches() bool // another choice is left where Next was called last
}

// Errors of an execution.
var (
	ErrEndless = errors.New("too many steps")
	ErrFlag    = errors.New("two ranks write a flag word at once")
	ErrCarry   = errors.New("a sum carries out of a field")
	ErrClock   = errors.New("the clock of the search stands still")
)

// Stats counts what a search did.
type Stats struct {
	Executions int64 // that ran to the end
	Cut        int64 // that came to a state seen before, or to OutOfTicks
	OutOfTicks int64 // that ended because a rank waits for more ticks than are allowed
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
	exploring bool // between Begin and End
	state     State
	choices   []int
	violation error
	events    []Event
	paused    int // ranks in Backoff
	course
	byMemo      bool // ranks are replayed from their memo trees
	watcher     Watcher
	hazards     bool // there may be ticks or deaths
	tracing     bool
	ghostly     bool   // the last step was a StepGhost
	mem         uint64 // hash of the memory
	extra       func() uint64
	alike       alike
	stats       Stats
	writers     []flagWriter // of flag words
	faults      []faultState // by fault
	path        []Step       // of the last execution
	prefix      int          // steps that this execution has in common with the last
	homes       []home       // states declared by Comm.Home, in order
	homed       int          // of these, in this execution
	keepers     int          // ranks that called Comm.Keep
	memoise     bool         // ranks called Comm.Memoise
	start       func()       // of Comm.Start, or nil
	replaying   bool         // actions of a memo node are being repeated
	kept        *keptWords   // by Comm.Keep
	outside     Snapshotter  // of Comm.Memoise
	checkpoints []checkpoint // of the last execution
}

// A home is the state that a rank declared by Comm.Home after depth steps.
type home struct {
	rank, depth int
	h           uint64
}

// searchState is a rank's part in a search.
type searchState struct {
	steps        int    // of its own, since Begin
	issued       uint64 // operations and waits
	history      uint64 // hash of the answers it got
	before       uint64 // history at the first Backoff of a loop
	beforeIssued uint64
	whole        uint64 // operations issued, bulk ones counted once
	generation   uint16
	beforeOpen   bool // operations were pending at the first Backoff
	changed      bool // its word has changed since it entered Backoff, or the clock has moved
	looked       bool // it has read the clock since Begin or Home
	lookedAgain  bool // and since the first Backoff of a loop
	missed       bool // it has seen that the condition of its wait with a limit does not hold
	late         bool // its wait ended with its limit
	inLoop
}

// resetRanks forgets what the ranks did, at Begin.
func (e *search) resetRanks() {
	for _, r := range e.w.ranks {
		r.searchState, r.doorway, r.ghosts = searchState{}, nil, r.ghosts[:0]
	}
}

// Run runs body under one schedule after the other, until the Scheduler has no more
// or one fails. It returns the first failure.
func (s Search) Run(sched Scheduler, body func(rma.Comm) error) (Stats, *Failure) {
	e := s.engine(sched, body)
	defer e.w.close()
	for sched.Begin() {
		memoised := e.memoise && e.kept != nil
		cut, err := e.execute(memoised)
		if err != nil && memoised { // repeat it by the ranks' own code, for the trace
			e.abandonMemo()
			was := err
			if cut, err = e.execute(false); err == nil && was != errImpure {
				panic(fmt.Sprintf("sim: a body breaks the rules of Comm.Memoise: there is an error from the memo tree alone, %v", was))
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
	e := &search{Search: s, scheduler: sched, w: newWorld(s.Node, s.MemoryNodes)}
	if e.MaxSteps == 0 {
		e.MaxSteps = mostSteps
		switch p := sched.(type) {
		case prefixKeeper:
			e.MaxSteps = mostStepsExhaustive
		case *replay:
			if len(p.choices) == mostStepsExhaustive { // it has failed for its length
				e.MaxSteps = mostStepsExhaustive
			}
		}
	}
	e.hazards = s.Ticks+s.Crashes+len(s.Faults) > 0
	if e.TickNs == 0 {
		e.TickNs = DefaultTickNs
	}
	e.w.engine, e.w.body = e, body
	e.state.e, e.state.Ranks, e.state.Counted = e, len(s.Node), len(s.Faults) > 0
	e.faults = make([]faultState, len(s.Faults))
	for _, r := range e.w.ranks {
		r.start()
	}
	return e
}

// execute runs one execution, memoised or by the ranks' code alone. cut says that the
// scheduler ended it.
func (e *search) execute(memoised bool) (cut bool, err error) {
	w := e.w
	e.violation, e.events, e.replaying, e.prefix, e.byMemo = nil, nil, false, 0, memoised
	f, ok := e.scheduler.(prefixKeeper)
	if ok && len(e.Faults) == 0 { // faults depend on the list of steps
		e.prefix = min(f.follows(), len(e.path)) // it may have begun with another engine
	}
	if !memoised || !e.restoreCheckpoint() {
		e.begin(memoised)
	}
	for {
		w.run()
		if e.violation != nil {
			break
		}
		if memoised && e.leaveMemo() {
			memoised, e.byMemo = false, false
			continue
		}
		if w.alive == 0 {
			return false, w.outcome()
		}
		if w.failed != nil { // all waits ended, and some ranks wait again
			e.violation = w.failed
			break
		}
		if e.exploring && len(e.choices) < e.prefix {
			e.choices = e.choices[:len(e.choices)+1]
			e.do(&e.path[len(e.choices)-1])
			continue
		}
		if len(e.Faults) > 0 && e.strike() {
			continue
		}
		if !e.steps() && !(e.resumed() && e.steps()) {
			if !e.exploring && e.limitPasses() {
				continue
			}
			if cut = e.exploring && e.awaitsClock(); cut {
				e.stats.OutOfTicks++
			} else {
				e.violation = e.deadlock()
			}
			break
		}
		if !e.exploring {
			e.do(&e.state.Steps[e.nextInTurn()])
			continue
		}
		if len(e.choices) >= e.MaxSteps {
			e.violation = fmt.Errorf("%w: %d, and %s", ErrEndless, len(e.choices), e.describeWaits())
			break
		}
		i := e.scheduler.Next(&e.state)
		if i < 0 {
			cut = true
			break
		}
		if memoised {
			e.saveCheckpoint(f.branches())
		}
		e.path = append(e.path[:len(e.choices)], e.state.Steps[i])
		e.choices = append(e.choices, i)
		e.do(&e.state.Steps[i])
	}
	e.abort()
	return cut, e.violation
}

// abort ends the bodies of all coroutines but those that are at older memo nodes.
func (e *search) abort() {
	for _, r := range e.w.ranks {
		if r.in && r.memo == nil {
			e.quit(r)
		}
	}
	e.w.ready = e.w.ready[:0]
}

// begin begins an execution.
func (e *search) begin(memoised bool) {
	e.w.reset(e.kept != nil)
	e.resetRanks()
	e.exploring, e.mem, e.paused, e.course, e.choices = false, 0, 0, course{}, e.choices[:0]
	e.homes, e.homed = e.homes[:e.homed], 0
	e.writers = e.writers[:0]
	clear(e.faults)
	e.state.Last, e.state.Depth, e.state.Beaten, e.state.Visible, e.state.Timed = -1, 0, -1, false, false
	if memoised {
		e.beginMemoised()
		return
	}
	e.extra, e.alike.of = nil, nil
	e.w.ready = append(e.w.ready, e.w.ranks...)
}

// deadlock is the error of a state in which nothing must happen.
func (e *search) deadlock() error {
	return fmt.Errorf("%w: %s", ErrDeadlock, e.describeWaits())
}

func (e *search) describeWaits() string {
	return e.w.describeWaits(func(r *rank) string {
		switch {
		case r.state == dead:
			return ", has died"
		case e.stops(r):
			return ", was stopped by a fault"
		}
		return ""
	})
}

// hash is the hash of the whole state.
func (e *search) hash() uint64 {
	if e.alike.on {
		return e.hashAlike()
	}
	h := e.mem
	if len(e.Faults) > 0 {
		h += e.hashFaults()
	}
	if e.ticks+e.deaths > 0 {
		h += e.hashCourse()
	}
	for _, r := range e.w.ranks {
		h += mix(uint64(r.id)<<32|0xABCD, r.history)
		if e.MaxDelay > 0 {
			h += r.hashAges()
		}
		if e.Ages {
			h += mix(uint64(r.id)<<40|1<<52, e.hashMoments(r))
		}
	}
	if e.extra != nil {
		h += e.extra()
	}
	return h
}

// learnt hashes the answer v to the n'th operation or wait of a rank; never 0.
func learnt(n uint64, v int64) uint64 { return mix(n, uint64(v)+0x5851F42D4C957F2D) | 1 }

// mix hashes a key with a value; 0 for the value 0, which unwritten words have.
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
