package sim

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// searchTransport is a rank's way to a window under a search.
type searchTransport struct {
	c *Comm
	s *segment
}

// pieces is how many parts of a bulk operation take effect in any order. Within a part
// the words do so one after the other.
const pieces = 4

func (t *searchTransport) Issue(o rma.Operation) {
	r, e := t.c.r, t.c.r.w.search
	r.counts.add(t.c, o.Target)
	if o.Kind == rma.KindGetBulk { // what it finds comes with the flush
		o.Slot = rma.MaxPending + len(r.lands)
		for i := range o.Data {
			r.lands = append(r.lands, &o.Data[i])
		}
		r.due += len(o.Data)
	}
	if r.behind {
		return
	}
	if e.tracing && e.on {
		e.note(Event{Rank: r.id, Kind: EventIssue, Seg: t.s, Target: o.Target, Disp: o.Disp, Op: o})
	}
	if r.page != nil {
		o.Data = slices.Clone(o.Data) // what there is now
		r.write(deed{t: t, op: o})
	}
	t.take(o)
}

// take takes an operation, whole or in pieces.
func (t *searchTransport) take(o rma.Operation) {
	t.c.r.whole++
	if o.Data == nil || t.c.r.w.search.Ascending {
		t.issue(o)
		return
	}
	part, all := o, o.Data
	for n := (len(all) + pieces - 1) / pieces; len(all) > 0; {
		part.Data, all = all[:min(n, len(all))], all[min(n, len(all)):]
		t.issue(part)
		part.Disp += n
		part.Slot += n
	}
}

// issue issues an operation, or a piece of one.
func (t *searchTransport) issue(o rma.Operation) {
	r, e := t.c.r, t.c.r.w.search
	p := r.operation(o, t.s)
	p.number, p.whole = r.issued, r.whole
	r.issued++
	p.cpu = t.c.g.mates(t.c.rank, o.Target) && (o.Class != rma.Far || e.CPUFar)
	if o.Class == rma.Flag && o.Kind.Writes() {
		e.write(r, p)
	}
	r.pending = append(r.pending, p)
}

// write notes that a flag word is being written, and checks that nobody else does.
func (e *search) write(r *rank, o *operation) {
	for i := range o.Words() {
		k := o.seg.key(o.Target, o.Disp+i)
		at := e.writes(k)
		if at < 0 {
			e.writers = append(e.writers, writer{k, r.id})
			continue
		}
		if other := e.writers[at].rank; other != r.id && e.violation == nil {
			e.violation = fmt.Errorf("%w: %s, by ranks %d and %d", ErrFlag, o.seg.name(o.Target, o.Disp+i), other, r.id)
		}
		e.writers[at].rank = r.id
	}
}

// unwrite notes that a write took effect; another one of the rank may be pending.
func (e *search) unwrite(r *rank, o *operation) {
	for i := range o.Words() {
		k := o.seg.key(o.Target, o.Disp+i)
		at := e.writes(k)
		if at < 0 || e.writers[at].rank != r.id {
			continue
		}
		if !slices.ContainsFunc(r.pending, func(p *operation) bool { return p.Class == rma.Flag && p.Kind.Writes() && p.overlaps(o) }) {
			e.writers = slices.Delete(e.writers, at, at+1)
		}
	}
}

func (t *searchTransport) Flush(target int, res *rma.Results) (int, error) {
	r := t.c.r
	a := r.ask(request{state: flushing, seg: t.s, at: target})
	for _, f := range a.found {
		if f.slot < rma.MaxPending {
			res[f.slot] = f.value
			continue
		}
		*r.lands[f.slot-rma.MaxPending] = f.value
		if r.due--; r.due == 0 {
			r.lands = r.lands[:0]
		}
	}
	return a.open, a.err
}

func (t *searchTransport) Await(target, disp int, c rma.Cond) (int64, error) {
	t.c.r.counts.Awaits++
	a := t.c.r.ask(request{state: awaiting, seg: t.s, at: target, disp: disp, cond: c})
	if a.err != nil {
		return 0, a.err
	}
	return a.value, nil
}

func (t *searchTransport) Backoff(target, disp int, seen int64, try int) error {
	t.c.r.counts.Backoffs++
	return t.c.r.ask(request{state: pausing, seg: t.s, at: target, disp: disp, seen: seen, try: try}).err
}

// again forgets what the rank found in the tries before: all that it goes on with is
// seen. It remembers where there is an operation that it did not flush.
func (r *rank) again(word uint64, seen int64, try int) {
	open := len(r.pending)+len(r.results) > 0
	if try == 0 || open || r.beforeOpen {
		r.before, r.beforeIssued, r.beforeOpen = r.history, r.issued, open
	}
	r.history = r.before + told(1<<41^word, seen)
	r.issued = r.beforeIssued + 1
}

// SpinBriefly: how long a moment is, is anybody's guess.
func (t *searchTransport) SpinBriefly(int, int64) { t.c.r.ask(request{state: sleeping}) }

func (t *searchTransport) SyncInboundStores() error { return nil }
func (t *searchTransport) HandedOver(int)           {}
func (t *searchTransport) Wake(int)                 {}
func (t *searchTransport) Free() error {
	return t.c.Barrier()
}
