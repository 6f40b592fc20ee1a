package rmarw

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// rlock is Listing 9.
func (t *Table) rlock(ctx context.Context, id int) error {
	c := t.mine(id)
	if ctx.Done() != nil {
		return t.rpoll(ctx, c, id)
	}
	w := t.tree.W
	a, err := w.FetchAndOpFlush(1, c.host, c.disp+arrive, rma.Sum) // line 12
	if err != nil || a&write == 0 && countOf(a) < t.tr {           // line 13
		return err
	}
	g, err := w.GetFlush(c.host, c.disp+gate)
	if err != nil {
		return err
	}
	next := g + 1 + step(a, g) // the phase that lets this reader in
	if next <= g {
		return nil
	}
	if a&write == 0 && countOf(a) == t.tr { // line 15
		if in, err := t.follow(c, id, a, next); in || err != nil {
			return err
		}
	}
	_, err = w.Await(c.host, c.disp+gate, rma.AtLeast(next)) // lines 6 to 8
	return err
}

// follow opens the phase next after a full one, if no writer does: lines 16 to 21. It
// reports false if a writer is about to.
func (t *Table) follow(c counter, id int, a, next int64) (bool, error) {
	w := t.tree.W
	host, tail := t.tree.RootTail(id)
	if _, err := w.Await(c.host, c.disp+gate, rma.AtLeast(next-1)); err != nil { // the full one is open
		return false, err
	}
	for try := 0; ; try++ {
		seen, err := w.GetFlush(c.host, c.disp+turn) // before what it rings for
		if err != nil {
			return false, err
		}
		gr, dr := w.Get(c.host, c.disp+gate), w.Get(c.host, c.disp+depart)
		if err := w.Flush(c.host); err != nil {
			return false, err
		}
		g, d := w.Value(gr), w.Value(dr)
		if g >= next {
			return true, nil
		}
		last, err := w.GetFlush(host, tail) // line 17
		if err != nil {
			return false, err
		}
		if last == 0 && departs(d) >= t.tr { // line 19
			return t.reopen(c, a)
		}
		if err := w.Backoff(c.host, c.disp+turn, seen, try); err != nil {
			return false, err
		}
	}
}

// reopen opens the phase after the full one of a: line 20. It reports false if a writer
// has come: it will.
func (t *Table) reopen(c counter, a int64) (bool, error) {
	w := t.tree.W
	old, err := w.GetFlush(c.host, c.disp+arrive)
	for {
		if err != nil || old&write != 0 || phaseOf(old) != phaseOf(a) {
			return false, err
		}
		var last int64
		if last, err = w.CompareAndSwapFlush(opened(old), old, c.host, c.disp+arrive); err == nil && last == old {
			break
		}
		old = last // others have arrived: each of them once
	}
	return true, t.begin(c, old)
}

// begin completes the opening of a phase: whoever the phase of old let in has departed,
// and whoever it did not is in now.
func (t *Table) begin(c counter, old int64) error {
	w := t.tree.W
	if err := w.AccumulateFlush(ended(old), c.host, c.disp+depart, rma.Sum); err != nil {
		return err
	}
	return w.AccumulateFlush(1, c.host, c.disp+gate, rma.Sum)
}

// runlock is Listing 10. The last of a full phase rings for the reader that waits to
// open the next one.
func (t *Table) runlock(id int) error {
	c := t.mine(id)
	w := t.tree.W
	d, err := w.FetchAndOpFlush(1, c.host, c.disp+depart, rma.Sum)
	if err != nil || departs(d)+1 != t.tr {
		return err
	}
	return w.AccumulateFlush(1, c.host, c.disp+turn, rma.Sum)
}

// tryRLock takes the lock in shared mode if no writer has or wants it. If it does not,
// block and seen say what was in the way.
func (t *Table) tryRLock(c counter, id int) (bool, error) {
	w := t.tree.W
	a, err := w.GetFlush(c.host, c.disp+arrive)
	for err == nil && a&write == 0 && countOf(a) <= t.tr {
		full := countOf(a) == t.tr
		to := a + 1
		if full { // and nobody waits: begin the next phase, if it has departed
			to = opened(a) + 1
			if over, err := t.over(c, id, a); !over || err != nil {
				return false, err
			}
		}
		var last int64
		if last, err = w.CompareAndSwapFlush(to, a, c.host, c.disp+arrive); err != nil || last != a {
			a = last
			continue
		}
		if full {
			err = t.begin(c, a)
		}
		return err == nil, err
	}
	t.block, t.seen = counter{c.host, c.disp + arrive}, a
	return false, err
}

// over reports whether a full phase, that of a, has departed and no writer is there.
func (t *Table) over(c counter, id int, a int64) (bool, error) {
	w := t.tree.W
	tr, gr := w.Get(c.host, c.disp+turn), w.Get(c.host, c.disp+gate)
	if err := w.Flush(c.host); err != nil {
		return false, err
	}
	seen, g := w.Value(tr), w.Value(gr)
	d, err := w.GetFlush(c.host, c.disp+depart) // after TURN, which rings for it, and GATE: before, it may be too large
	if err != nil {
		return false, err
	}
	switch {
	case step(a, g) < 0: // a phase was opened since ARRIVE was read
		t.block, t.seen = counter{c.host, c.disp + arrive}, a
		return false, nil
	case step(a, g) > 0: // or is being opened
		t.block, t.seen = counter{c.host, c.disp + gate}, g
		return false, nil
	case !isOf(d, a): // or was
		t.block, t.seen = counter{c.host, c.disp + arrive}, a
		return false, nil
	case departs(d) < t.tr:
		t.block, t.seen = counter{c.host, c.disp + turn}, seen
		return false, nil
	}
	host, tail := t.tree.RootTail(id)
	last, err := w.GetFlush(host, tail)
	t.block, t.seen = counter{host, tail}, last
	return last == 0, err
}

// rpoll takes the lock without waiting in line, until ctx ends.
func (t *Table) rpoll(ctx context.Context, c counter, id int) error {
	for try := 0; ; try++ {
		got, err := t.tryRLock(c, id)
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
