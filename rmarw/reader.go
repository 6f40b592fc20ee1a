package rmarw

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// enterSym is Listing 9 at a symmetric counter (L9:1). A reader that is not let in stays
// counted, and waits for its phase. So it neither backs off nor tries again: the loop
// around the listing and its variables are left out (L9:2 L9:3 L9:4 L9:5 L9:14 L9:24).
func (t *Table) enterSym(c counter, id int) error {
	w := t.tree.W
	a, err := t.ownWords[arrive].Add(1) // L9:12
	a--
	if err != nil || a&write == 0 && countOf(a) < t.tr { // L9:13
		return err
	}
	g, err := w.GetFlush(c.host, c.disp+opened)
	if err != nil {
		return err
	}
	next := g + 1 + phasesAhead(a, g) // the phase that lets this reader in
	if next <= g {
		return nil
	}
	if a&write == 0 && countOf(a) == t.tr { // L9:15
		if in, err := t.openNextPhase(c, id, a, next); in || err != nil {
			return err
		}
	}
	_, err = w.Await(c.host, c.disp+opened, rma.AtLeast(next)) // L9:6 L9:7 L9:8
	return err
}

// openNextPhase opens the phase next after a full one if no writer does. It reports false
// if a writer is about to.
func (t *Table) openNextPhase(c counter, id int, a, next int64) (bool, error) {
	w := t.tree.W
	host, tail := t.tree.RootTail(id)
	if _, err := w.Await(c.host, c.disp+opened, rma.AtLeast(next-1)); err != nil { // the full one is open
		return false, err
	}
	for try := 0; ; try++ {
		signal, err := w.GetFlush(c.host, c.disp+openerSignal) // before the words that it stands for
		if err != nil {
			return false, err
		}
		gr, dr := w.Get(c.host, c.disp+opened), w.Get(c.host, c.disp+depart)
		if err := w.Flush(c.host); err != nil {
			return false, err
		}
		g, d := w.Value(gr), w.Value(dr)
		if g >= next {
			return true, nil
		}
		last, err := w.GetFlush(host, tail) // L9:17 L9:18
		if err != nil {
			return false, err
		}
		if last == 0 && departed(d) >= t.tr { // L9:19
			return t.openAfterFull(c, a) // L9:20
		}
		if err := w.Backoff(c.host, c.disp+openerSignal, signal, try); err != nil {
			return false, err
		}
	}
}

// openAfterFull opens the phase after the full one of a. It reports false if a writer has
// come, which will open it.
func (t *Table) openAfterFull(c counter, a int64) (bool, error) {
	w := t.tree.W
	old, err := w.GetFlush(c.host, c.disp+arrive)
	for {
		if err != nil || old&write != 0 || phaseOf(old) != phaseOf(a) {
			return false, err
		}
		var last int64
		if last, err = w.CompareAndSwapFlush(arriveAfter(old), old, c.host, c.disp+arrive); err == nil && last == old {
			break
		}
		old = last // others have arrived: each of them once
	}
	return true, t.completeOpening(c, old)
}

// completeOpening completes the opening of a phase: the readers that the phase of old let
// in have departed, and those that it did not are in now.
func (t *Table) completeOpening(c counter, old int64) error {
	w := t.tree.W
	if err := w.AccumulateFlush(phaseEndDelta(old), c.host, c.disp+depart, rma.Sum); err != nil {
		return err
	}
	return w.AccumulateFlush(1, c.host, c.disp+opened, rma.Sum)
}

// leaveSym is Listing 10 at a symmetric counter (L10:1). The last reader of a full phase
// signals the reader that waits to open the next one.
func (t *Table) leaveSym(c counter) error {
	d, err := t.ownWords[depart].Add(1) // L10:2
	if err != nil || departed(d) != t.tr {
		return err
	}
	return t.tree.W.AccumulateFlush(1, c.host, c.disp+openerSignal, rma.Sum)
}

// tryEnter shares the lock if no writer has or wants it. Otherwise blockedAt and blockedBy
// say which word was in the way, and its value.
func (t *Table) tryEnter(c counter, id int) (bool, error) {
	if t.asym {
		return t.tryEnterAsym(c)
	}
	return t.tryEnterSym(c, id)
}

func (t *Table) tryEnterSym(c counter, id int) (bool, error) {
	w := t.tree.W
	a, err := w.GetFlush(c.host, c.disp+arrive)
	for err == nil && a&write == 0 && countOf(a) <= t.tr {
		full := countOf(a) == t.tr
		to := a + 1
		if full { // and no reader waits: begin the next phase, if this one has departed
			to = arriveAfter(a) + 1
			if over, err := t.phaseOver(c, id, a); !over || err != nil {
				return false, err
			}
		}
		var last int64
		if last, err = w.CompareAndSwapFlush(to, a, c.host, c.disp+arrive); err != nil || last != a {
			a = last
			continue
		}
		if full {
			err = t.completeOpening(c, a)
		}
		return err == nil, err
	}
	t.blockedAt, t.blockedBy = counter{c.host, c.disp + arrive}, a
	return false, err
}

// phaseOver reports whether a full phase, that of a, has departed and no writer is there.
func (t *Table) phaseOver(c counter, id int, a int64) (bool, error) {
	w := t.tree.W
	sr, gr := w.Get(c.host, c.disp+openerSignal), w.Get(c.host, c.disp+opened)
	if err := w.Flush(c.host); err != nil {
		return false, err
	}
	signal, g := w.Value(sr), w.Value(gr)
	// After OPENER_SIGNAL, which stands for it, and OPENED: before, it may be too large.
	d, err := w.GetFlush(c.host, c.disp+depart)
	if err != nil {
		return false, err
	}
	switch {
	case phasesAhead(a, g) < 0: // a phase was opened since ARRIVE was read
		t.blockedAt, t.blockedBy = counter{c.host, c.disp + arrive}, a
		return false, nil
	case phasesAhead(a, g) > 0: // or is being opened
		t.blockedAt, t.blockedBy = counter{c.host, c.disp + opened}, g
		return false, nil
	case !inPhase(d, a): // or was
		t.blockedAt, t.blockedBy = counter{c.host, c.disp + arrive}, a
		return false, nil
	case departed(d) < t.tr:
		t.blockedAt, t.blockedBy = counter{c.host, c.disp + openerSignal}, signal
		return false, nil
	}
	host, tail := t.tree.RootTail(id)
	last, err := w.GetFlush(host, tail)
	t.blockedAt, t.blockedBy = counter{host, tail}, last
	return last == 0, err
}

// pollEnter shares the lock without waiting in line, until ctx ends.
func (t *Table) pollEnter(ctx context.Context, c counter, id int) error {
	for try := 0; ; try++ {
		got, err := t.tryEnter(c, id)
		if got || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("rmarw: lock %d: %w (%w)", id, lock.ErrDeadline, context.Cause(ctx))
		}
		if err := t.Backoff(try); err != nil {
			return err
		}
	}
}
