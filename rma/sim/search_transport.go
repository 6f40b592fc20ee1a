package sim

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// searchTransport is a rank's way to a window under a search.
type searchTransport struct {
	e *search
	c *Comm
	s *segment
}

// pieces is the number of parts of a bulk operation. Parts take effect in any order, the
// words of a part one after the other.
const pieces = 4

func (t *searchTransport) Issue(o rma.Operation) {
	r, e := t.c.r, t.e
	r.counts.add(t.c, t.s, o.Target)
	if o.Kind == rma.KindGetBulk { // its results come with the Flush
		o.Slot = rma.MaxPending + len(r.bulkWords)
		for i := range o.Data {
			r.bulkWords = append(r.bulkWords, &o.Data[i])
		}
		r.bulkDue += len(o.Data)
	}
	if r.lagging {
		return
	}
	if e.tracing && e.exploring {
		e.note(Event{Rank: r.id, Kind: EventIssue, Seg: t.s, Target: o.Target, Disp: o.Disp, Op: o})
	}
	if r.memo != nil {
		o.Data = slices.Clone(o.Data) // as it is now
		r.record(action{t: t, op: o})
	}
	t.accept(&o)
}

// accept issues an operation, whole or in pieces.
func (t *searchTransport) accept(o *rma.Operation) {
	t.c.r.whole++
	if o.Data == nil || t.e.Ascending {
		t.issue(o)
		return
	}
	part, all := *o, o.Data
	for n := (len(all) + pieces - 1) / pieces; len(all) > 0; {
		part.Data, all = all[:min(n, len(all))], all[min(n, len(all)):]
		t.issue(&part)
		part.Disp += n
		part.Slot += n
	}
}

// issue issues an operation, or a piece of one.
func (t *searchTransport) issue(o *rma.Operation) {
	r, e := t.c.r, t.e
	p := r.operation(o, t.s)
	p.number, p.whole, p.ticks = r.issued, r.whole, e.ticks
	r.issued++
	p.cpu = t.s.mate(t.c.rank, o.Target) && (o.Class != rma.Far || e.CPUFar)
	if o.Class == rma.Flag && o.Kind.Writes() {
		e.write(r, p)
	}
	r.pending = append(r.pending, p)
}

// write notes that the rank writes a flag word, and checks that no other rank does.
func (e *search) write(r *rank, o *operation) {
	for i := range o.Words() {
		k := o.seg.key(o.Target, o.Disp+i)
		at := e.writerIndex(k)
		if at < 0 {
			e.writers = append(e.writers, flagWriter{k, r.id})
			continue
		}
		if other := e.writers[at].rank; other != r.id && e.violation == nil {
			e.violation = fmt.Errorf("%w: %s, by ranks %d and %d", ErrFlag, o.seg.name(o.Target, o.Disp+i), other, r.id)
		}
		e.writers[at].rank = r.id
	}
}

// unwrite notes that a write took effect, unless another one of the rank is pending.
func (e *search) unwrite(r *rank, o *operation) {
	for i := range o.Words() {
		k := o.seg.key(o.Target, o.Disp+i)
		at := e.writerIndex(k)
		if at < 0 || e.writers[at].rank != r.id {
			continue
		}
		writes := func(p *operation) bool { return p.Class == rma.Flag && p.Kind.Writes() && p.overlaps(o) }
		if !slices.ContainsFunc(r.pending, writes) && !slices.ContainsFunc(r.ghosts, writes) {
			e.writers = slices.Delete(e.writers, at, at+1)
		}
	}
}

func (t *searchTransport) Flush(target int, res *rma.Results) (int, error) {
	r := t.c.r
	a := t.e.ask(r, request{state: flushing, seg: t.s, target: target})
	for _, f := range a.found {
		if f.slot < rma.MaxPending {
			res[f.slot] = f.value
			continue
		}
		*r.bulkWords[f.slot-rma.MaxPending] = f.value
		if r.bulkDue--; r.bulkDue == 0 {
			r.bulkWords = r.bulkWords[:0]
		}
	}
	return a.open, a.err
}

func (t *searchTransport) Await(q rma.Waiting) (int, int64, error) {
	t.c.r.counts.Awaits++
	a := t.e.ask(t.c.r, request{state: awaiting, seg: t.s, wait: q})
	if a.err != nil {
		return -1, 0, a.err
	}
	if a.which < 0 {
		t.c.r.counts.Late++
		t.woke()
	}
	return a.which, a.value, nil
}

func (t *searchTransport) Backoff(target, disp int, seen int64, try int) error {
	t.c.r.counts.Backoffs++
	err := t.e.ask(t.c.r, request{state: pausing, seg: t.s, target: target, disp: disp, seen: seen, try: try}).err
	t.woke()
	return err
}

// woke notes that the rank goes on though what it waits for may not have come.
func (t *searchTransport) woke() {
	n := &t.c.r.counts
	n.Woke, n.WokeAfter = t.e.clock, n.All()
}

// beginRetry sets the rank's history back to that before its first try: by the contract of
// Backoff the rank depends on seen alone from here on. It does not while an operation is
// pending, nor if it has read the clock since the first try.
func (r *rank) beginRetry(word uint64, seen int64, try int) {
	open := len(r.pending)+len(r.results) > 0
	if try == 0 || open || r.beforeOpen || r.lookedAgain {
		r.before, r.beforeIssued, r.beforeOpen = r.history, r.issued, open
	}
	if try == 0 {
		r.lookedAgain = false
	}
	r.history = r.before + learnt(1<<41^word, seen)
	r.issued = r.beforeIssued + 1
}

// SpinBriefly takes any number of steps.
func (t *searchTransport) SpinBriefly(int, int64) { t.e.ask(t.c.r, request{state: sleeping}) }

func (t *searchTransport) SyncInboundStores() error { return nil }
func (t *searchTransport) HandedOver(int)           {}
func (t *searchTransport) Wake(int)                 {}
func (t *searchTransport) Free() error {
	return t.c.Barrier()
}
