package hook

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// A Failure says which step of a rank goes wrong, and how.
type Failure struct {
	// Match chooses among operations (StepIssue), Awaits and Backoffs; nil chooses all.
	Match func(Event) bool
	// Nth is the number of the chosen step that goes wrong, from 1.
	Nth int
	// CutOff makes the failure permanent. Without it only the one step fails: an operation
	// is dropped and the next Flush that covers its target returns an error that wraps
	// rma.ErrTransport; an Await or Backoff returns it at once. With it the rank counts as
	// dead from that step on, for all windows of the Comm: its operations are dropped, and
	// every Await, Backoff and Flush of pending operations returns an error that wraps
	// rma.ErrPeer. Collective calls, Free among them, still work, so that a test can end.
	CutOff bool
	// Dies is CutOff with errors that wrap rma.ErrDied, for a rank that plays dead: its body
	// returns the error, and a job whose ranks may die goes on without it.
	Dies bool
}

// Fault has a step of the calling rank fail. Decorate the Comm on the ranks that are to fail.
func Fault(c rma.Comm, f Failure) rma.Comm {
	n := &faultState{Failure: f}
	return decorate(c, func(s handleID, below rma.Transport) rma.Transport {
		return &faulty{Transport: below, id: s, state: n}
	})
}

// faultState is the progress of a Failure, common to the windows of a Comm.
type faultState struct {
	Failure
	seen int   // chosen steps so far
	cut  error // not nil once the rank is cut off
}

// hit reports whether the step goes wrong, as an error.
func (f *faultState) hit(e Event) error {
	if f.cut != nil {
		return f.cut
	}
	if f.Match != nil && !f.Match(e) {
		return nil
	}
	f.seen++
	if f.seen != f.Nth {
		return nil
	}
	what := e.Step.String()
	if e.Step == StepIssue {
		what = e.Op.Kind.String()
	}
	at := fmt.Sprintf("hook: window %q: injected fault at rank %d: %s at %v %d, word %s",
		e.Window, e.Origin, what, e.hosts(), e.Target, e.Word())
	switch {
	case f.Dies:
		f.cut = fmt.Errorf("%s and all after it: %w", at, rma.ErrDied)
	case f.CutOff:
		f.cut = fmt.Errorf("%s and all after it: %w", at, rma.ErrPeer)
	default:
		return fmt.Errorf("%s: %w", at, rma.ErrTransport)
	}
	return f.cut
}

// faulty is the Transport of Fault.
type faulty struct {
	rma.Transport
	id     handleID
	state  *faultState
	failed bool  // an operation was dropped and no Flush has reported it yet
	target int   // its target
	err    error // its error
}

func (f *faulty) Issue(o rma.Operation) {
	err := f.state.hit(f.id.issue(o))
	switch {
	case err == nil:
		f.Transport.Issue(o)
	case f.state.cut == nil: // at most once, since only step Nth fails
		f.failed, f.target, f.err = true, o.Target, err
	}
}

func (f *faulty) Flush(target int, r *rma.Results) (int, error) {
	if f.state.cut != nil {
		return 0, f.state.cut
	}
	pending, err := f.Transport.Flush(target, r)
	if f.failed {
		if target >= 0 && target != f.target {
			return pending + 1, err
		}
		f.failed = false
		if err == nil {
			err = f.err
		}
	}
	return pending, err
}

func (f *faulty) Await(q rma.Waiting) (int, int64, error) {
	if err := f.state.hit(f.id.await(&q)); err != nil {
		return -1, 0, err
	}
	return f.Transport.Await(q)
}

func (f *faulty) Backoff(target, disp int, seen int64, try int) error {
	if err := f.state.hit(f.id.backoff(target, disp, seen, try)); err != nil {
		return err
	}
	return f.Transport.Backoff(target, disp, seen, try)
}
