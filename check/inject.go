package check

import (
	"fmt"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

// A stepKind is what a step on a window is.
type stepKind uint8

const (
	issueStep stepKind = iota
	flushStep
	awaitStep
	backoffStep
)

// inject returns a Plan.Disturb that makes the mistake of v's mutant, or with v nil records
// sites.
func inject(v *Verdict, rec *recording) func(rma.Comm, func() Position) rma.Comm {
	plain := rec != nil && rec.bare || v != nil && v.bare
	return func(c rma.Comm, at func() Position) rma.Comm {
		return &mutantComm{Comm: c, injector: &injector{at: at, verdict: v, rec: rec, bare: plain}}
	}
}

// A mutantComm is a Comm whose windows have an injector.
type mutantComm struct {
	rma.Comm
	injector *injector
}

func (c *mutantComm) Unwrap() rma.Comm { return c.Comm }

func (c *mutantComm) Split(color, key int) (rma.Comm, error) {
	part, err := c.Comm.Split(color, key)
	if err != nil || part == nil {
		return nil, err
	}
	return &mutantComm{part, c.injector}, nil
}

func (c *mutantComm) Allocate(spec rma.Spec) (*rma.Window, error) {
	w, err := c.Comm.Allocate(spec)
	if err != nil {
		return nil, err
	}
	rank, node, spec := w.Rank(), w.Node(), w.Spec()
	return rma.Decorate(w, func(t rma.Transport) rma.Transport {
		return &mutantTransport{Transport: t, injector: c.injector, rank: rank, node: node, spec: spec}
	}), nil
}

// injector makes the mistake, or records sites, on the windows of one rank.
type injector struct {
	at      func() Position
	verdict *Verdict
	rec     *recording
	bare    bool // steps are named without distances

	position Position
	before   string     // the last step at this position
	recorded []recorded // the steps at this position, when recording

	delayed *delayed // an operation that is to come later
}

// delayed is an operation that a Late mutant holds back.
type delayed struct {
	to      *mutantTransport
	o       rma.Operation
	flushed bool // its own Flush has returned
}

// recorded is a step that was recorded.
type recorded struct {
	site   Site
	kind   stepKind
	window *mutantTransport
	target int
	result bool
}

// bare is the name of a step without distances.
var bare = strings.NewReplacer(" own", "", " mate", "", " far", "", " all", "").Replace

// step notes a step and reports whether the mistake is to be made at it.
func (h *injector) step(t *mutantTransport, kind stepKind, o *rma.Operation, name string) bool {
	if h.bare {
		name = bare(name)
	}
	if now := h.at(); now != h.position {
		h.ended()
		h.position, h.before, h.recorded = now, "", h.recorded[:0]
	}
	site := Site{Phase: h.position.Phase, Mode: h.position.Mode, Step: name, Before: h.before}
	h.before = name
	if h.rec == nil {
		if site == h.verdict.Site {
			h.verdict.Applied++
			return true
		}
		return false
	}
	if site.Phase != Outside {
		h.rec.steps[site] = kind
		h.rec.sites[site] = *o
		h.recorded = append(h.recorded, recorded{site, kind, t, o.Target, kind != issueStep || resulting(o.Kind)})
	}
	return false
}

// ended notes, of the steps of a phase that has ended, the operations that were flushed and
// followed by another Flush without a wait in between.
func (h *injector) ended() {
	for i, p := range h.recorded {
		if p.result {
			continue
		}
		flushes := 0
		for _, q := range h.recorded[i+1:] {
			if q.kind == awaitStep || q.kind == backoffStep {
				break
			}
			if q.kind == flushStep && (flushes > 0 || q.window == p.window && (q.target < 0 || q.target == p.target)) {
				if flushes++; flushes == 2 {
					break
				}
			}
		}
		is := flushes == 2
		if was, ok := h.rec.followed[p.site]; ok {
			is = is && was
		}
		h.rec.followed[p.site] = is
	}
}

// mutantTransport is the Transport of one window. As a window expects of its Transport,
// operations are pending until the Flush of their target, and a result is returned by that
// Flush and by no other.
type mutantTransport struct {
	rma.Transport
	injector *injector
	rank     int
	node     rma.Node
	spec     rma.Spec

	open  []entry
	found rma.Results
	err   error // of what was done besides
}

// entry is an operation that the lock has issued and not flushed.
type entry struct {
	target int
	slot   int   // of its result, or -1
	made   bool  // the result is value and not what the window below found
	value  int64 // of the result
}

// name names a step on a word.
func (t *mutantTransport) name(what string, target, disp int) string {
	word, _, _ := strings.Cut(t.spec.WordName(disp), "[")
	return fmt.Sprintf("%s %s.%s %s", what, t.spec.Name, word, t.distance(target))
}

func (t *mutantTransport) distance(target int) string {
	switch {
	case target < 0:
		return "all"
	case target == t.rank:
		return "own"
	case t.node.Has(target):
		return "mate"
	}
	return "far"
}

func (t *mutantTransport) Issue(o rma.Operation) {
	what := o.Kind.String()
	if o.Kind == rma.KindAccumulate || o.Kind == rma.KindFetchAndOp {
		what += " " + o.Op.String()
	}
	made := t.injector.step(t, issueStep, &o, t.name(what, o.Target, o.Disp))
	e := entry{target: o.Target, slot: -1}
	if resulting(o.Kind) && o.Kind != rma.KindGetBulk {
		e.slot = o.Slot
	}
	if made {
		switch t.injector.verdict.Mutation {
		case Forget:
			t.open = append(t.open, e)
			return
		case Late:
			if t.injector.delayed == nil {
				t.injector.delayed = &delayed{to: t, o: o}
				t.open = append(t.open, e)
				return
			}
		case Torn:
			e.made, e.value = true, t.now(o.Target, o.Disp, o.Slot)
			if v, writes := after(&o, e.value); writes {
				t.Transport.Issue(rma.Operation{Kind: rma.KindPut, Class: o.Class, Target: o.Target, Disp: o.Disp, Operand: v, Epoch: o.Epoch})
			}
			t.open = append(t.open, e)
			return
		case Blind:
			if o.CompareMask = 0; o.Kind == rma.KindCompareAndSwap {
				o.Kind, o.Op = rma.KindFetchAndOp, rma.Replace
			}
		case NoFence:
			o.Epoch = 0
		case Trusting:
			e.made, e.value = true, o.Compare
		}
	}
	t.open = append(t.open, e)
	t.Transport.Issue(o)
}

// after is what an operation leaves in a word that holds v, if it writes.
func after(o *rma.Operation, v int64) (int64, bool) {
	switch {
	case o.Kind == rma.KindCompareAndSwap:
		return o.Operand, v == o.Compare
	case o.Kind == rma.KindMaskedSwap:
		return o.Masked(v), o.Matches(v)
	case o.Op == rma.Sum:
		return v + o.Operand, true
	}
	return o.Operand, true
}

// now reads a word at once; slot is one that no pending operation has.
func (t *mutantTransport) now(target, disp, slot int) int64 {
	t.Transport.Issue(rma.Operation{Kind: rma.KindGet, Class: t.spec.Class(disp), Target: target, Disp: disp, Slot: slot})
	if _, err := t.Transport.Flush(target, &t.found); err != nil && t.err == nil {
		t.err = err
	}
	return t.found[slot]
}

// free is a slot that no pending operation has.
func (t *mutantTransport) free() int {
	for slot := rma.MaxPending - 1; slot > 0; slot-- {
		taken := false
		for _, e := range t.open {
			taken = taken || e.slot == slot
		}
		if !taken {
			return slot
		}
	}
	return 0
}

func (t *mutantTransport) Flush(target int, r *rma.Results) (int, error) {
	o := rma.Operation{Target: target}
	if t.injector.step(t, flushStep, &o, "Flush "+t.distance(target)+" of "+t.injector.before) {
		for i := range t.open {
			if e := &t.open[i]; e.slot >= 0 && (target < 0 || e.target == target) {
				r[e.slot], e.slot = 0, -1
			}
		}
		return len(t.open), nil
	}
	_, err := t.Transport.Flush(target, &t.found)
	kept := t.open[:0]
	for _, e := range t.open {
		switch {
		case target >= 0 && e.target != target:
			kept = append(kept, e)
		case e.slot >= 0 && e.made:
			r[e.slot] = e.value
		case e.slot >= 0:
			r[e.slot] = t.found[e.slot]
		}
	}
	t.open = kept
	if err == nil {
		err = t.injector.flushed(t, target)
	}
	if err == nil {
		err, t.err = t.err, nil
	}
	return len(t.open), err
}

// flushed is called after a Flush. A delayed operation is delivered after the one that
// follows its own.
func (h *injector) flushed(t *mutantTransport, target int) error {
	l := h.delayed
	switch {
	case l == nil:
	case l.flushed:
		return h.deliverDelayed()
	case l.to == t && (target < 0 || target == l.o.Target):
		l.flushed = true
	}
	return nil
}

// deliverDelayed issues and flushes the delayed operation.
func (h *injector) deliverDelayed() error {
	l := h.delayed
	if l == nil {
		return nil
	}
	h.delayed = nil
	l.to.Transport.Issue(l.o)
	var none rma.Results
	_, err := l.to.Transport.Flush(l.o.Target, &none)
	return err
}

func (t *mutantTransport) Await(q rma.Waiting) (int, int64, error) {
	if err := t.injector.deliverDelayed(); err != nil {
		return -1, 0, err
	}
	a := &q.Words[0]
	o := rma.Operation{Target: a.Target, Disp: a.Disp}
	if t.injector.step(t, awaitStep, &o, t.name("Await", a.Target, a.Disp)) {
		v := t.now(a.Target, a.Disp, t.free())
		switch {
		case t.err != nil:
			return -1, v, t.err
		case t.injector.verdict.Mutation == NoWait || a.Cond.Holds(v):
			return 0, v, nil
		}
		a.Cond = rma.NotEqual(v)
	}
	return t.Transport.Await(q)
}

func (t *mutantTransport) Backoff(target, disp int, seen int64, try int) error {
	if err := t.injector.deliverDelayed(); err != nil {
		return err
	}
	o := rma.Operation{Target: target, Disp: disp}
	t.injector.step(t, backoffStep, &o, t.name("Backoff", target, disp))
	return t.Transport.Backoff(target, disp, seen, try)
}
