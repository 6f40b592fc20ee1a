package alock

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
)

// Promise of an exclusive acquire is the swap of TAIL, the Put of NEXT, and at a used-up budget the
// look at the other TAIL and the Put of VICTIM; with a shared mode two looks at counts. A release is
// the CompareAndSwap of TAIL and the Put of BUDGET. Where a swap is a loop, Bypass holds from
// the try on that succeeds.
//
// A shared acquire counts the rank and looks at both TAILs; if it must queue it takes the count
// back, and has both of the above. From its third atomic operation, the swap, on the bounds hold for
// writers. Readers may pass it any number of times: when it has passed the lock on it is in, and so
// are they.
func (t *Table) Promise(mode lock.Mode) lock.Promise {
	p := lock.Promise{Acquire: 4, Release: 2}
	for id := range min(t.cfg.Locks, t.size) {
		own, other := t.bounds(id)
		p.Bypass = max(p.Bypass, own+other)
		if t.cfg.Locks == 1 { // the cohorts differ from lock to lock
			p.Bounds = []lock.Bound{
				{After: 1, Most: own, Of: func(rank int, _ lock.Mode) bool { return t.mates(rank, t.rank, id) }},
				{After: 1, Most: other, Of: func(rank int, _ lock.Mode) bool { return !t.mates(rank, t.rank, id) }},
			}
		}
	}
	writers := p.Bypass + 1 // one that has its turn may wait for readers still
	if t.cfg.Shared {       // each other rank may be between its entry and the end of its Lock
		p.Acquire += 2
		p.Bypass, p.Bounds = p.Bypass+t.size-1, nil
	}
	if t.shares(mode) {
		p.Acquire, p.Release = 3+1+p.Acquire-2+1+p.Release, 1
		p.Bounds = []lock.Bound{{After: 3, Most: writers, Of: func(_ int, mode lock.Mode) bool { return mode == lock.Exclusive }}}
		p.Bypass = lock.Unbounded
	}
	if !t.w.Caps().NativeSwap {
		p.Acquire = lock.Unbounded
	}
	return p
}

// mates reports whether two ranks are of one cohort of a lock.
func (t *Table) mates(a, b, id int) bool {
	home := t.node[t.Home(id)]
	return (t.node[a] == home) == (t.node[b] == home)
}

// bounds are the most entries of ranks of the caller's own cohort, and of the other one, between
// the swap of TAIL and the end of a Lock. Before the caller are at most all others of its cohort.
// They, and it, compete once for each budget. A competition lets the other cohort enter as
// often as its budget says. Before the first one the other cohort may use up a budget whose
// first entry it has had.
func (t *Table) bounds(id int) (own, other int) {
	n := 0
	for r := range t.size {
		if t.mates(r, t.rank, id) {
			n++
		}
	}
	if n == t.size {
		return n - 1, 0
	}
	mine, theirs := t.budget[local], t.budget[remote]
	if t.place(id).own == remote {
		mine, theirs = theirs, mine
	}
	return n - 1, ((n+int(mine)-1)/int(mine)+1)*int(theirs) - 1
}

// Idle checks that the rank's descriptors are unused and nothing queues at its locks.
func (t *Table) Idle() error {
	if t.busy != 0 {
		return fmt.Errorf("alock: rank %d uses slots %b", t.rank, t.busy)
	}
	for disp := range t.w.Words() {
		word := disp % lineWords
		queued := word == localTail || word == remoteTail
		if disp < MaxHeld*lineWords {
			queued = word == localDescriptor+next || word == remoteDescriptor+next
		}
		if v := t.w.Peek(disp); queued && v != null {
			return fmt.Errorf("alock: %s of rank %d is %d, want null", t.w.Spec().WordName(disp), t.rank, v)
		}
	}
	return t.checkCounts()
}
