package hook

import "github.com/rmalock/rmalock/rma"

// A Step is what happens on a window.
type Step uint8

const (
	StepIssue   Step = iota // an operation is issued
	StepFlush               // a Flush of Target, or of all ranks for Target < 0
	StepResult              // the Flush before completed the Get, FetchAndOp, CompareAndSwap, MaskedSwap or GetBulk Op
	StepAwait               // an Await begins
	StepWoke                // an Await ends
	StepBackoff             // a Backoff begins
)

var stepNames = [...]string{"issue", "flush", "result", "await", "woke", "backoff"}

func (s Step) String() string {
	if int(s) < len(stepNames) {
		return stepNames[s]
	}
	return "Step?"
}

// An Event is one step of one rank on one window. Trace makes events of all steps;
// Delay and Fault show the events StepIssue, StepFlush, StepAwait and StepBackoff
// to their functions before the step is done.
type Event struct {
	Step   Step
	Time   int64         // nanoseconds on the rank's clock (Comm.Now)
	Origin int           // the rank in the Comm that was decorated
	Rank   int           // the rank in the window; differs from Origin after a Split
	Window string        // its name
	Target int           // rank in the window; negative for FlushAll
	Disp   int           // in words; 0 for StepFlush
	Op     rma.Operation // of StepIssue and StepResult; Data is the caller's, not to be kept
	Cond   rma.Cond      // of StepAwait and StepWoke
	Or     *rma.Wait     // of a StepAwait for one of two words, the second; else nil
	Until  int64         // of StepAwait: the limit, or rma.Forever
	Late   bool          // of StepWoke: the limit has passed, and there is no Value
	Value  int64         // of StepResult and StepWoke; the value seen, of StepBackoff
	Try    int           // of StepBackoff, from 0
	Err    error         // of StepFlush and StepWoke

	spec *rma.Spec
}

// Word is the name of the word at Disp, such as "TAIL" or "NEXT[3]".
func (e *Event) Word() string { return e.spec.WordName(e.Disp) }

// hosts says what Target is: a rank or a memory node.
func (e *Event) hosts() rma.Hosts {
	if e.spec == nil {
		return rma.Ranks
	}
	return e.spec.Hosts
}

// event makes an Event of the handle.
func (s *handleID) event(step Step, target, disp int) Event {
	return Event{
		Step: step, Time: s.clock(), Origin: s.origin, Rank: s.rank, Window: s.spec.Name,
		Target: target, Disp: disp, spec: &s.spec,
	}
}

// issue is the event of an operation.
func (s *handleID) issue(o rma.Operation) Event {
	e := s.event(StepIssue, o.Target, o.Disp)
	e.Op = o
	return e
}

// await is the event of an Await that begins.
func (s *handleID) await(q *rma.Waiting) Event {
	e := s.waits(StepAwait, q, 0)
	e.Until = q.Until
	if q.N == 2 {
		or := q.Words[1]
		e.Or = &or
	}
	return e
}

// woke is the event of an Await that ends with the word which, or -1.
func (s *handleID) woke(q *rma.Waiting, which int, v int64, err error) Event {
	e := s.waits(StepWoke, q, max(which, 0))
	e.Late, e.Value, e.Err = which < 0 && err == nil, v, err
	return e
}

// waits is the event of a wait for word i of q.
func (s *handleID) waits(step Step, q *rma.Waiting, i int) Event {
	e := s.event(step, q.Words[i].Target, q.Words[i].Disp)
	e.Cond = q.Words[i].Cond
	return e
}

// backoff is the event of a Backoff.
func (s *handleID) backoff(target, disp int, seen int64, try int) Event {
	e := s.event(StepBackoff, target, disp)
	e.Value, e.Try = seen, try
	return e
}
