package hook

import "github.com/rmalock/rmalock/rma"

// ledger lies under every decorator and makes the window as strict as its contract:
// an operation is pending until a Flush of its target, also where the window below
// has done it at once, and a result is handed up by that Flush and no other.
type ledger struct {
	rma.Transport
	n     int
	open  [rma.MaxPending]entry // pending operations; the window refuses one more
	found rma.Results           // what the window below hands up: all that it knows
}

// entry is a pending operation.
type entry struct {
	target int
	slot   int // of its result, or -1
}

func (l *ledger) Issue(o rma.Operation) {
	slot := -1
	switch o.Kind {
	case rma.KindGet, rma.KindFetchAndOp, rma.KindCompareAndSwap:
		slot = o.Slot
	}
	l.open[l.n] = entry{o.Target, slot}
	l.n++
	l.Transport.Issue(o)
}

func (l *ledger) Flush(target int, r *rma.Results) (int, error) {
	_, err := l.Transport.Flush(target, &l.found)
	kept := l.open[:0]
	for _, e := range l.open[:l.n] {
		switch {
		case target >= 0 && e.target != target:
			kept = append(kept, e)
		case e.slot >= 0:
			r[e.slot] = l.found[e.slot]
		}
	}
	l.n = len(kept)
	return l.n, err
}
