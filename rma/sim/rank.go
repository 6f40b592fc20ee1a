package sim

import (
	"errors"
	"fmt"
	"iter"
	"runtime/debug"

	"github.com/rmalock/rmalock/rma"
)

// A state says what a rank waits for.
type state uint8

const (
	running  state = iota
	flushing       // until its operations towards target have taken effect
	awaiting       // until a word satisfies its condition, in wait
	pausing        // in Backoff: until its word is not seen
	sleeping
	meeting // in a collective call
	ending  // in End, while pending operations may take effect
	leaving // a memo tree, at a collective call
	reading // the clock
	finished
	dead
)

// A rank is a coroutine: it runs until it must wait, and then suspends itself until the
// engine resumes it.
type rank struct {
	w      *world
	id     int
	state  state
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	in     bool // the coroutine is in a body
	quits  bool // the body is to end in the middle
	err    error

	*request         // what it waits for: of its memo node, or its own
	own      request // where there is no memo node
	met      any     // result of a collective call

	pending []*operation // issued, not flushed, in the order of issue
	results []result     // of operations that took effect and were not flushed
	ghosts  []*operation // of the rank's dead predecessors, and of itself once dead
	spare   []*operation

	counts    Counts
	doorway   func()   // called when the next atomic operation that changes a word takes effect
	bulkWords []*int64 // destinations of pending bulk operations, word by word
	bulkDue   int      // how many of them are not there yet
	readings  int      // of the clock, one after the other
	attached  int      // windows that a successor has opened
	begun     bool     // it has called Begin

	searchState // of the search
	memoState
	timedState // of the clock
}

// An operation is one that was issued and has not completed.
type operation struct {
	issued
	timedOperation // of the clock
}

// issued is what a search knows of an operation.
type issued struct {
	rma.Operation
	seg    *segment
	number uint64 // of the rank's operations; names it in the rank's history
	whole  uint64 // the same for the pieces of a bulk operation
	next   int    // word of a bulk operation that is next to take effect
	seen   int64  // what the first half of a split operation read
	ticks  int    // of the search's clock when it was issued
	cpu    bool   // done by the CPU of the origin's node
	half   bool   // the first half has taken effect
}

// result is that of an operation which has taken effect.
type result struct {
	seg    *segment
	target int
	slot   int
	value  int64
}

// operation makes one; it is given back to r.spare.
func (r *rank) operation(o *rma.Operation, s *segment) *operation {
	p := r.unused()
	*p = operation{issued: issued{Operation: *o, seg: s}}
	return p
}

// unused is an operation with any content.
func (r *rank) unused() *operation {
	n := len(r.spare) - 1
	if n < 0 {
		return new(operation)
	}
	p := r.spare[n]
	r.spare = r.spare[:n]
	return p
}

// aborted ends a coroutine in the middle.
var aborted = errors.New("sim: aborted")

// A request is what a rank waits for.
type request struct {
	state  state
	seg    *segment
	target int // target rank in seg's group; of a flush, -1 for all
	disp   int
	wait   rma.Waiting
	seen   int64
	try    int
}

// loop runs the body once for each execution. One coroutine for all of them keeps its
// grown stack.
func (r *rank) loop(yield func(struct{}) bool) {
	r.yield = yield
	for {
		r.in, r.readings, r.attached, r.begun = true, 0, 0, false
		r.run()
		r.in = false
		if !r.quits {
			r.state = finished
			r.w.engine.returned(r)
		}
		if !yield(struct{}{}) {
			return
		}
	}
}

func (r *rank) run() {
	defer func() {
		if p := recover(); p != nil && p != any(aborted) {
			r.err = &PanicError{Rank: r.id, Value: p, Stack: debug.Stack()}
		}
	}()
	r.err = r.w.body(r.w.comms[r.id])
}

// park waits until the engine resumes the rank.
func (r *rank) park(s state) {
	r.state = s
	r.suspend()
	r.state = running
}

// suspend returns to the engine.
func (r *rank) suspend() {
	if r.quits || !r.yield(struct{}{}) || r.quits {
		panic(aborted)
	}
}

// quit ends the body in the middle.
func (r *rank) quit() {
	r.quits = true
	r.resume()
	r.quits = false
}

func (r *rank) start() { r.resume, r.stop = iter.Pull(r.loop) }

// A PanicError is a panic of a rank.
type PanicError struct {
	Rank  int
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("rank %d panics: %v", e.Rank, e.Value) }

// Unwrap is the panic's value, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
