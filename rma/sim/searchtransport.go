package sim

import (
	"fmt"

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
	if e.tracing && e.on {
		e.note(Event{Rank: r.id, Kind: EventIssue, Seg: t.s, Target: o.Target, Disp: o.Disp, Op: o})
	}
	r.whole++
	if o.Data == nil || e.Ascending {
		t.issue(o)
		return
	}
	part, all := o, o.Data
	for n := (len(all) + pieces - 1) / pieces; len(all) > 0; {
		part.Data, all = all[:min(n, len(all))], all[min(n, len(all)):]
		t.issue(part)
		part.Disp += n
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
	if e.writers == nil {
		e.writers = map[uint64]int{}
	}
	for i := range o.Words() {
		k := o.seg.key(o.Target, o.Disp+i)
		if other, ok := e.writers[k]; ok && other != r.id && e.violation == nil {
			e.violation = fmt.Errorf("%w: %s, by ranks %d and %d", ErrFlag, o.seg.name(o.Target, o.Disp+i), other, r.id)
		}
		e.writers[k] = r.id
	}
}

// unwrite notes that a write took effect; another one of the rank may be pending.
func (e *search) unwrite(r *rank, o *operation) {
	for i := range o.Words() {
		k := o.seg.key(o.Target, o.Disp+i)
		if e.writers[k] != r.id {
			continue
		}
		delete(e.writers, k)
		for _, p := range r.pending {
			if p.Class == rma.Flag && p.Kind.Writes() && p.overlaps(o) {
				e.writers[k] = r.id
			}
		}
	}
}

func (t *searchTransport) Flush(target int, res *rma.Results) (int, error) {
	r := t.c.r
	if r.owes(t.s, target) {
		r.seg, r.at = t.s, target
		r.park(flushing)
		if r.w.failed != nil {
			return 0, r.w.peer()
		}
	}
	kept := r.results[:0]
	for _, f := range r.results {
		if f.seg == t.s && (target < 0 || f.target == target) {
			res[f.slot] = f.value
		} else {
			kept = append(kept, f)
		}
	}
	r.results = kept
	n, last := 0, uint64(0)
	for _, o := range r.pending {
		if o.seg == t.s && o.whole != last {
			n, last = n+1, o.whole
		}
	}
	for _, f := range r.results { // took effect, and is still pending to the window
		if f.seg == t.s {
			n++
		}
	}
	return n, nil
}

func (t *searchTransport) Await(target, disp int, c rma.Cond) (int64, error) {
	r := t.c.r
	r.seg, r.at, r.disp, r.cond = t.s, target, disp, c
	r.counts.Awaits++
	r.park(awaiting)
	if r.w.failed != nil {
		return 0, r.w.peer()
	}
	return *t.s.word(target, disp), nil
}

func (t *searchTransport) Backoff(target, disp int, seen int64, try int) error {
	r := t.c.r
	r.counts.Backoffs++
	r.again(t.s.key(target, disp), seen, try)
	r.seg, r.at, r.disp, r.seen = t.s, target, disp, seen
	r.w.search.state.Beaten = r.id
	r.rung = false
	r.w.search.paused++
	r.park(pausing)
	r.w.search.paused--
	if r.rung {
		r.rung, r.history = false, r.history-rungMark
	}
	if r.w.failed != nil {
		return r.w.peer()
	}
	return nil
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

// Linger: how long a moment is, is anybody's guess.
func (t *searchTransport) Linger(int, int64) { t.c.r.park(sleeping) }

func (t *searchTransport) Settle() error { return nil }
func (t *searchTransport) Handed(int)    {}
func (t *searchTransport) Wake(int)      {}
func (t *searchTransport) Free() error {
	return t.c.Barrier()
}
