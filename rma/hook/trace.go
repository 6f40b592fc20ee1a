package hook

import (
	"slices"
	"sync"

	"github.com/rmalock/rmalock/rma"
)

// Trace shows every step of the caller to sink, in order: operations before they
// are issued, a Flush after it returned and then the results that it completed,
// an Await when it begins and when it ends. Ranks of one process may share a sink
// that permits it, as those of [Text] and [Log] do.
func Trace(c rma.Comm, sink func(Event)) rma.Comm {
	return decorate(c, func(s handleID, below rma.Transport) rma.Transport {
		return &tracer{Transport: below, id: s, sink: sink}
	})
}

// tracer is the Transport of Trace.
type tracer struct {
	rma.Transport
	id      handleID
	sink    func(Event)
	results []rma.Operation // pending operations with results
}

func (t *tracer) Issue(o rma.Operation) {
	t.sink(t.id.issue(o))
	if o.Finds() || o.Kind == rma.KindGetBulk {
		t.results = append(t.results, o)
	}
	t.Transport.Issue(o)
}

func (t *tracer) Flush(target int, r *rma.Results) (int, error) {
	pending, err := t.Transport.Flush(target, r)
	e := t.id.event(StepFlush, target, 0)
	e.Err = err
	t.sink(e)
	kept := t.results[:0]
	for _, o := range t.results {
		if target >= 0 && o.Target != target {
			kept = append(kept, o)
			continue
		}
		if err != nil {
			continue // there is no result
		}
		e := t.id.issue(o)
		e.Step = StepResult
		if o.Kind != rma.KindGetBulk {
			e.Value = r[o.Slot]
		}
		t.sink(e)
	}
	t.results = kept
	return pending, err
}

func (t *tracer) Await(q rma.Waiting) (int, int64, error) {
	t.sink(t.id.await(&q))
	which, v, err := t.Transport.Await(q)
	t.sink(t.id.woke(&q, which, v, err))
	return which, v, err
}

func (t *tracer) Backoff(target, disp int, seen int64, try int) error {
	t.sink(t.id.backoff(target, disp, seen, try))
	return t.Transport.Backoff(target, disp, seen, try)
}

// A Log keeps events. Its zero value is ready; ranks of one process may share it.
type Log struct {
	mu     sync.Mutex
	events []Event
}

// Add is a sink for Trace.
func (l *Log) Add(e Event) {
	e.Op.Data = slices.Clone(e.Op.Data)
	l.mu.Lock()
	l.events = append(l.events, e)
	l.mu.Unlock()
}

// Events are the events so far, in the order in which they came in.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}
