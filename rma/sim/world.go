package sim

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

// A world is one job: its ranks, their memory, and the engine that resumes them.
type world struct {
	ranks    []*rank
	comms    []*Comm
	body     func(rma.Comm) error
	all      *group
	groups   []*group // parts of it
	segments []*segment
	words    uint64 // in all segments
	ready    []*rank
	alive    int
	dead     int
	failed   error // why all waits end, or nil
	engine   engine

	memoryNodes int
}

// newWorld makes a world whose rank r lies on the node node[r], with memory nodes beside.
func newWorld(node []int, memoryNodes int) *world {
	w := &world{ranks: make([]*rank, len(node)), comms: make([]*Comm, len(node)), memoryNodes: memoryNodes}
	all := make([]rank, len(node))
	comms := make([]Comm, len(node))
	for i := range all {
		all[i] = rank{w: w, id: i}
		all[i].request = &all[i].own
		w.ranks[i] = &all[i]
	}
	w.all = newGroup(w.ranks, node)
	for i := range comms {
		comms[i] = Comm{r: w.ranks[i], g: w.all, rank: i}
		w.comms[i] = &comms[i]
	}
	return w
}

// reset makes the world new for another execution, its windows excepted if they are kept.
func (w *world) reset(kept bool) {
	if !kept {
		w.segments, w.words, w.groups = w.segments[:0], 0, w.groups[:0]
	}
	for _, g := range w.groups {
		g.arrived = 0
	}
	w.ready = w.ready[:0]
	w.failed = nil
	w.alive, w.dead = len(w.ranks), 0
	w.all.arrived = 0
	for _, r := range w.ranks {
		r.state, r.err, r.met = running, nil, nil
		r.pending, r.results = r.pending[:0], r.results[:0]
	}
}

// run resumes the ranks that are ready, until there are none.
func (w *world) run() {
	for i := 0; i < len(w.ready); i++ {
		w.engine.wake(w.ready[i])
	}
	w.ready = w.ready[:0]
}

// abort ends the bodies of all coroutines.
func (w *world) abort() {
	for _, r := range w.ranks {
		if r.in {
			r.quit()
		}
	}
	w.ready = w.ready[:0]
}

// close ends the coroutines.
func (w *world) close() {
	for _, r := range w.ranks {
		if r.stop != nil {
			r.quits = true
			r.stop()
		}
	}
}

// returned notes that a rank has returned from its body. Its error ends the waits of the
// other ranks, which may depend on it.
func (w *world) returned(r *rank) {
	w.alive--
	if r.err != nil {
		w.fail(fmt.Errorf("rank %d failed: %w", r.id, r.err))
	}
}

// fail ends the waits of all ranks: their calls return an error.
func (w *world) fail(cause error) {
	if w.failed != nil {
		return
	}
	w.failed = cause
	for _, r := range w.ranks {
		if r.state != running && r.state != finished && r.state != dead {
			w.ready = append(w.ready, r)
		}
	}
}

// peer is the error of a rank whose wait was ended.
func (w *world) peer() error {
	return fmt.Errorf("sim: %v: %w", w.failed, rma.ErrPeer)
}

// outcome is the error of an execution: that of the lowest rank whose error is its own, else
// of the lowest with one.
func (w *world) outcome() error {
	for _, r := range w.ranks {
		if r.err != nil && !errors.Is(r.err, rma.ErrPeer) {
			return fmt.Errorf("rank %d: %w", r.id, r.err)
		}
	}
	for _, r := range w.ranks {
		if r.err != nil {
			return fmt.Errorf("rank %d: %w", r.id, r.err)
		}
	}
	return nil
}

// describeWaits says what each rank waits for; more adds to that of a rank.
func (w *world) describeWaits(more func(r *rank) string) string {
	var b strings.Builder
	left := 0
	for _, r := range w.ranks {
		what := strings.TrimPrefix(r.doing()+more(r), ", ")
		if what == "" {
			continue
		}
		if b.Len() > 1500 {
			left++
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "rank %d %s", r.id, what)
	}
	if left > 0 {
		fmt.Fprintf(&b, "; and %d ranks more", left)
	}
	return b.String()
}

// doing describes what a rank waits for.
func (r *rank) doing() string {
	what := ""
	switch r.state {
	case flushing:
		what = fmt.Sprintf("flushes rank %d", r.target)
	case awaiting:
		for i := range r.wait.N {
			a := &r.wait.Words[i]
			what += fmt.Sprintf(", awaits %s %v, which is %s", r.seg.name(a.Target, a.Disp), a.Cond, r.seg.format(a.Disp, *r.seg.word(a.Target, a.Disp)))
		}
		what = strings.TrimPrefix(what, ", ")
	case pausing:
		what = fmt.Sprintf("tries again when %s is not %d", r.seg.name(r.target, r.disp), r.seen)
	case sleeping:
		what = "sleeps"
	}
	for _, o := range r.pending {
		if !(r.state == flushing && o.seg == r.seg && (r.target < 0 || o.Target == r.target)) {
			what += fmt.Sprintf(", has not flushed %s of %s", describe(&o.Operation), o.seg.name(o.Target, o.Disp))
		}
	}
	return what
}

// describe is an operation with its operands.
func describe(o *rma.Operation) string {
	switch o.Kind {
	case rma.KindPut:
		return fmt.Sprintf("Put(%d)", o.Operand)
	case rma.KindAccumulate, rma.KindFetchAndOp:
		return fmt.Sprintf("%v(%v, %d)", o.Kind, o.Op, o.Operand)
	case rma.KindCompareAndSwap:
		return fmt.Sprintf("CompareAndSwap(%d to %d)", o.Compare, o.Operand)
	case rma.KindMaskedSwap:
		return fmt.Sprintf("MaskedSwap(%d of %#x to %d of %#x)", o.Compare, uint64(o.CompareMask), o.Operand, uint64(o.SwapMask))
	case rma.KindGet, rma.KindPutBulk, rma.KindGetBulk: // no operand of one word
	}
	return o.Kind.String()
}

// apply does the operation on its next word. It returns the word's value before and after,
// and whether it was written.
func (o *operation) apply() (before, after int64, wrote bool) {
	if !o.Kind.Writes() {
		before = o.seg.read(o.Target, o.Disp+o.next)
		return before, before, false
	}
	p := o.seg.word(o.Target, o.Disp+o.next)
	before = *p
	after = o.value(before)
	if o.Kind == rma.KindPutBulk {
		after = o.Data[o.next]
	}
	*p = after
	return before, after, o.writes(before)
}

// value is a word's value after the operation, if it was v; not for bulk operations.
func (o *operation) value(v int64) int64 {
	switch o.Kind {
	case rma.KindPut:
		return o.Operand
	case rma.KindAccumulate, rma.KindFetchAndOp:
		switch o.Op {
		case rma.Sum:
			return v + o.Operand
		case rma.Replace:
			return o.Operand
		case rma.NoOp:
		}
	case rma.KindCompareAndSwap:
		if v == o.Compare {
			return o.Operand
		}
	case rma.KindMaskedSwap:
		if o.Matches(v) {
			return o.Masked(v)
		}
	case rma.KindGet, rma.KindPutBulk, rma.KindGetBulk:
	}
	return v
}

// writes reports whether the operation stores into a word that holds v.
func (o *operation) writes(v int64) bool {
	switch o.Kind {
	case rma.KindGet, rma.KindGetBulk:
		return false
	case rma.KindAccumulate, rma.KindFetchAndOp:
		return o.Op != rma.NoOp
	case rma.KindCompareAndSwap:
		return v == o.Compare
	case rma.KindMaskedSwap:
		return o.Matches(v)
	case rma.KindPut, rma.KindPutBulk:
	}
	return true
}

// overlaps reports whether two operations of one rank touch a word in common.
func (o *operation) overlaps(p *operation) bool {
	return o.seg == p.seg && o.Target == p.Target && o.Disp < p.Disp+p.Words() && p.Disp < o.Disp+o.Words()
}

// follows reports whether an operation must take effect after p, an earlier one of its rank.
func (o *operation) follows(p *operation) bool { return o.seg == p.seg && o.Follows(&p.Operation) }

// found is the index of the word whose condition holds for a rank that awaits, or -1.
func (r *rank) found() int {
	for i := range r.wait.N {
		if a := &r.wait.Words[i]; a.Cond.Holds(*r.seg.word(a.Target, a.Disp)) {
			return i
		}
	}
	return -1
}
