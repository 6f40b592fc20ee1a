package hook

import "github.com/rmalock/rmalock/rma"

// pendingSet is under every decorator and makes the window as strict as its contract. An
// operation is pending until a Flush of its target, even if the window below has done it at
// once. Its result is returned by that Flush and by no other.
type pendingSet struct {
	rma.Transport
	n       int
	pending [rma.MaxPending]entry // pending operations; the window refuses one more
	found   rma.Results           // of the window below, of all its operations
}

// entry is a pending operation.
type entry struct {
	target int
	slot   int // of its result, or -1
}

func (l *pendingSet) Issue(o rma.Operation) {
	slot := -1
	if o.Finds() {
		slot = o.Slot
	}
	l.pending[l.n] = entry{o.Target, slot}
	l.n++
	l.Transport.Issue(o)
}

func (l *pendingSet) Flush(target int, r *rma.Results) (int, error) {
	_, err := l.Transport.Flush(target, &l.found)
	kept := l.pending[:0]
	for _, e := range l.pending[:l.n] {
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
