package rmarw

import (
	"fmt"
	"math"

	"github.com/rmalock/rmalock/lock"
)

// Promise has the bounds of the package comment and these operations. A reader arrives with
// one, or two if it waits, and departs with one, or two if it is the last of a full phase.
// A reader that opens a phase makes nine more, and one for each reader that arrives
// meanwhile. A writer looks at each counter with three operations, closes it with three and
// opens it with six. It looks again where the counter is not ready: 14 for both is the most
// that searches found, and each phase that readers open meanwhile may add three. With a
// barging root it looks at a counter at most three times, closes it with one operation and
// opens it with one. The rest is the tree's.
//
// Where a swap is a loop of tries there is no bound on operations, and the bounds of the
// queues hold from the try on that succeeds.
func (t *Table) Promise(mode lock.Mode) lock.Promise {
	p := t.promise(mode)
	if !t.tree.W.Caps().NativeSwap && (mode == lock.Exclusive || !t.asym) {
		p.Acquire = lock.Unbounded
		if mode == lock.Exclusive && !t.asym {
			p.Release = lock.Unbounded
		}
	}
	return p
}

func (t *Table) promise(mode lock.Mode) lock.Promise {
	k := t.counters.Len()
	acquire, release, bounds := 2*(t.tree.Leaf+1), 2+5*t.tree.Leaf, t.tree.Bounds()
	if t.tree.Barging() {
		acquire, release, bounds = acquire+5, release+2, []lock.Bound{t.tree.BargingBound()}
	}
	tenure := int(t.tree.Tenure(0))
	switch passed := (lock.Bound{After: 1, Most: tenure, Of: is(lock.Exclusive)}); {
	case t.asym && mode == lock.Shared: // until it has looked at ADMISSION, it may be passed by the tenure that is on and by the next one
		waits := passed
		waits.After, passed.Most = 2, 2*tenure
		passed.After, waits.After = passed.After+2*t.tries, waits.After+2*t.tries // of the try with which it waits in line
		return lock.Promise{Bypass: lock.Unbounded, Bounds: []lock.Bound{passed, waits}, Acquire: 3 * (t.tries + 1), Release: 1}
	case t.asym:
		closing, opening := 7*k, 3*k
		if t.bargingRoot() {
			closing, opening = 4*k, k
		}
		return lock.Promise{
			Bypass:  lock.Unbounded,
			Bounds:  bounds,
			Acquire: acquire + closing,
			Release: release + opening,
		}
	case mode == lock.Shared:
		return lock.Promise{
			Bypass:  lock.Unbounded,
			Bounds:  []lock.Bound{passed},
			Acquire: 10 + t.counters.Count(t.own),
			Release: 2,
		}
	}
	if !t.tree.Barging() { // there the number of atomic operations does not tell when the rank is in the root's queue
		bounds = append(bounds, lock.Bound{After: t.tree.Leaf + 1, Most: t.readers(), Of: is(lock.Shared)})
	}
	return lock.Promise{Bypass: lock.Unbounded, Bounds: bounds, Acquire: acquire + 14*k, Release: release + 6*k}
}

// readers is the most readers that pass a writer in the root's queue: in the present
// phase, in one that a reader opens that has not seen the writer yet, in those that
// writers before it open, and in one that a TryLock before it opens that failed.
func (t *Table) readers() int {
	phases := 3 + int64(t.tree.Rivals())/(int64(t.cfg.Thresholds.TL[0])+1)
	each := int64(t.counters.Len())*t.cfg.Thresholds.TR + int64(t.size-1)
	return int(min(phases*each, math.MaxInt))
}

// is says which entries are in a mode.
func is(mode lock.Mode) func(int, lock.Mode) bool {
	return func(_ int, m lock.Mode) bool { return m == mode }
}

// Idle checks that nothing is left in the rank's part of the tree, and that the
// counters it hosts are between readers.
func (t *Table) Idle() error {
	if t.nshared != 0 {
		return fmt.Errorf("rmarw: a rank shares %d locks", t.nshared)
	}
	w := t.tree.W
	for disp := t.tree.ExtraBase; disp < w.Words(); disp += t.words() {
		if t.asym {
			if err := t.asymIdle(disp); err != nil {
				return err
			}
			continue
		}
		a, d, g := w.Peek(disp+arrive), w.Peek(disp+depart), w.Peek(disp+opened)
		if a&write != 0 || countOf(a) != departed(d) || !inPhase(d, a) || phasesAhead(a, g) != 0 || countOf(a) > t.tr {
			return fmt.Errorf("rmarw: at rank %d ARRIVE is %#x, DEPART %d, OPENED %d, T_R %d", w.Rank(), a, d, g, t.tr)
		}
	}
	return t.tree.Idle()
}
