package rmarw

import (
	"github.com/rmalock/rmalock/rma"
)

// The words of a physical counter that readers and writers both change.
const (
	arrive = iota
	depart
	gate
	turn
	counterWords
)

// The fields of ARRIVE: WRITE, the phase, and how many readers have arrived in it. The
// phase is wide, since a rank that looks on may be late by any number of phases: two
// bits told those apart that had arrived, but not those that only try.
const (
	write      = 1 << 62
	phaseShift = 24
	phaseBits  = 62 - phaseShift
	countMask  = 1<<phaseShift - 1
)

func phaseOf(a int64) int64 { return a &^ write >> phaseShift }
func countOf(a int64) int64 { return a & countMask }

// departs is how many readers DEPART counts in its phase. It is less than 0 while those
// depart whom the phase let in at its beginning.
func departs(d int64) int64 { return d << (64 - phaseShift) >> (64 - phaseShift) }

// isOf reports whether DEPART counts the phase of a: it comes to the next one before GATE
// does.
func isOf(d, a int64) bool {
	return (d-departs(d))>>phaseShift&(1<<phaseBits-1) == phaseOf(a)
}

// ended is what DEPART changes by when the phase of a ends: all whom a counts have
// departed or are in the next one. Phases are counted above, and wrap, so that DEPART
// never holds again what it held before: who waits for it to change is not deceived.
func ended(a int64) int64 { return 1<<phaseShift - countOf(a) }

// opened is the ARRIVE of the phase after that of a.
func opened(a int64) int64 { return (phaseOf(a) + 1) & (1<<phaseBits - 1) << phaseShift }

// step is how many phases ARRIVE is ahead of GATE: 0, 1 while the phase is being
// opened, or less than 0 if a was read before the phase ended. There is no more: a
// phase ends only when all have departed whom it or the one before let in.
func step(a, gate int64) int64 {
	return (phaseOf(a) - gate) << (64 - phaseBits) >> (64 - phaseBits)
}

// counter is where a physical counter of a lock is.
type counter struct{ host, disp int }

func (t *Table) counter(k, id int) counter {
	return counter{t.counters.HostOf(k, id), t.tree.ExtraBase + id/t.counters.Count(k)*t.words()}
}

// batch is how many counters a writer looks at together.
const batch = rma.MaxPending / 4

// words is the number of words of a counter.
func (t *Table) words() int {
	if t.asym {
		return asymWords
	}
	return counterWords
}

// some is a batch of counters, from number k on.
func (t *Table) some(k, id int) []counter {
	n := min(batch, t.counters.Len()-k)
	for i := range n {
		t.at[i] = t.counter(k+i, id)
	}
	return t.at[:n]
}

// each calls f for the physical counters of a lock, batch by batch.
func (t *Table) each(id int, f func(cs []counter) error) error {
	for k := 0; k < t.counters.Len(); k += batch {
		if err := f(t.some(k, id)); err != nil {
			return err
		}
	}
	return nil
}

// LeaveFirst: a reader that opens a phase relies on it; an asymmetric counter's DOOR has
// one writer at a time, the one that has the root.
func (t *Table) DequeueBeforeRelease() bool { return !t.asym }

// Acquire takes lock id from the readers: Listing 7, lines 14 to 22. The caller is at the
// head of the root's queue.
func (t *Table) Acquire(id int) error { return t.each(id, t.close) }

// words is a word of each counter of a batch.
type words [batch]int64

// read reads a word of each counter.
func (t *Table) read(cs []counter, word int, v *words) error {
	w := t.tree.W
	var r [batch]rma.Result
	for i, c := range cs {
		r[i] = w.Get(c.host, c.disp+word)
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	for i := range cs {
		v[i] = w.Value(r[i])
	}
	return nil
}

// doClose sets WRITE at counters and waits until the readers that are in have departed.
// All counters are looked at together, and waited for one by one where that shows that
// there is something to wait for.
func (t *Table) doClose(cs []counter) error {
	w := t.tree.W
	var a, g, d words
	if err := t.read(cs, arrive, &a); err != nil {
		return err
	}
	if err := t.read(cs, depart, &d); err != nil {
		return err
	}
	if err := t.read(cs, gate, &g); err != nil {
		return err
	}
	for i, c := range cs {
		if !t.ready(a[i], d[i], g[i]) {
			if err := t.await(c); err != nil {
				return err
			}
		}
	}
	var r [batch]rma.Result
	for i, c := range cs { // Listing 6, line 6
		r[i] = w.FetchAndOp(write, c.host, c.disp+arrive, rma.Sum)
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	for i := range cs {
		a[i] = w.Value(r[i])
	}
	if err := t.read(cs, gate, &g); err != nil {
		return err
	}
	for i, c := range cs {
		if step(a[i], g[i]) != 0 { // a reader has just opened the phase: DEPART is not right before GATE is
			if _, err := w.Await(c.host, c.disp+gate, rma.AtLeast(g[i]+1)); err != nil {
				return err
			}
		}
	}
	if err := t.read(cs, depart, &d); err != nil {
		return err
	}
	for i, c := range cs {
		for now, in := d[i], min(countOf(a[i]), t.tr); departs(now) < in; {
			var err error
			if now, err = w.Await(c.host, c.disp+depart, rma.NotEqual(now)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ready reports whether the phase is open and no reader is in or it is full. DEPART may
// be that of the phase before: this is about who goes first, not about who is in.
func (t *Table) ready(a, d, g int64) bool {
	return a&write == 0 && step(a, g) == 0 && (countOf(a) >= t.tr || departs(d) >= countOf(a))
}

// await waits until a counter is ready.
func (t *Table) await(c counter) error {
	w := t.tree.W
	for try := 0; ; {
		a, err := w.GetFlush(c.host, c.disp+arrive)
		if err != nil {
			return err
		}
		d, err := w.GetFlush(c.host, c.disp+depart)
		if err != nil {
			return err
		}
		g, err := w.GetFlush(c.host, c.disp+gate) // after DEPART, which is of this phase if GATE is
		switch {
		case err != nil:
			return err
		case t.ready(a, d, g):
			return nil
		case step(a, g) < 0: // a phase was opened since ARRIVE was read
		case a&write != 0 || step(a, g) > 0: // one is being opened, or will be by the writer before
			if _, err := w.Await(c.host, c.disp+gate, rma.AtLeast(g+1)); err != nil {
				return err
			}
		default:
			if err := w.Backoff(c.host, c.disp+depart, d, try); err != nil {
				return err
			}
			try++
		}
	}
}

// Release gives lock id to the readers: Listing 6's reset_counters. The caller has set
// WRITE everywhere, and all readers have departed.
func (t *Table) Release(id int, more bool) (waited bool, err error) {
	t.more, t.waited = more, false
	err = t.each(id, t.open)
	return t.waited, err
}

// doOpen opens a new phase at counters at which WRITE is set.
func (t *Table) doOpen(cs []counter) error {
	w := t.tree.W
	var a, d [batch]rma.Result
	for i, c := range cs {
		a[i] = w.Get(c.host, c.disp+arrive)
		d[i] = w.Get(c.host, c.disp+depart)
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	for i, c := range cs { // the phase stays, and DEPART; who arrives meanwhile waits
		a[i] = w.FetchAndOp(opened(w.Value(a[i])), c.host, c.disp+arrive, rma.Replace)
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	for i, c := range cs {
		was := w.Value(a[i])
		t.waited = t.waited || countOf(was) > departs(w.Value(d[i]))
		w.Accumulate(ended(was), c.host, c.disp+depart, rma.Sum)
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	for _, c := range cs {
		w.Accumulate(1, c.host, c.disp+gate, rma.Sum)
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	for i, c := range cs { // the reader that waits to open a phase, where it was full
		if departs(w.Value(d[i])) >= t.tr {
			w.Accumulate(1, c.host, c.disp+turn, rma.Sum)
		}
	}
	return w.FlushAll()
}

// Withdrawn tells readers that saw this rank in the root's queue that it is gone.
func (t *Table) Withdrawn(id int) error {
	if t.asym {
		return nil // none looks there
	}
	return t.each(id, t.ring)
}

// doRing tells readers that wait to open a phase to look again.
func (t *Table) doRing(cs []counter) error {
	w := t.tree.W
	for _, c := range cs {
		w.Accumulate(1, c.host, c.disp+turn, rma.Sum)
	}
	return w.FlushAll()
}

// TryAcquire takes lock id from the readers if none of them has or wants it. The caller is
// alone in the root's queue.
func (t *Table) TryAcquire(id int) (bool, error) {
	if t.asym {
		return t.tryShut(id)
	}
	for k := range t.counters.Len() {
		if got, err := t.tryClose(t.counter(k, id)); err != nil {
			return false, err
		} else if got {
			continue
		}
		for i := range k { // who arrived there since waits for a phase
			t.at[0] = t.counter(i, id)
			if err := t.open(t.at[:1]); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	return true, nil
}

// tryClose sets WRITE at a counter if no reader is in and none waits. If it does not,
// block and seen say what was in the way.
func (t *Table) tryClose(c counter) (bool, error) {
	w := t.tree.W
	for {
		a, err := w.GetFlush(c.host, c.disp+arrive)
		if err != nil {
			return false, err
		}
		g, err := w.GetFlush(c.host, c.disp+gate)
		if err != nil {
			return false, err
		}
		d, err := w.GetFlush(c.host, c.disp+depart) // after GATE: before, it may be too large
		if err != nil {
			return false, err
		}
		switch {
		case step(a, g) < 0: // a phase was opened since ARRIVE was read
			continue
		case a&write != 0 || step(a, g) > 0 || countOf(a) > t.tr: // one is about to be
			t.block, t.seen = counter{c.host, c.disp + gate}, g
			return false, nil
		case departs(d) < countOf(a): // readers are in
			if !isOf(d, a) { // or were: a phase is being opened, or was
				continue
			}
			t.block, t.seen = counter{c.host, c.disp + depart}, d
			return false, nil
		}
		last, err := w.CompareAndSwapFlush(a|write, a, c.host, c.disp+arrive)
		if last == a || err != nil {
			return err == nil, err
		}
	}
}

// Backoff waits before another TryAcquire.
func (t *Table) Backoff(try int) error {
	return t.tree.W.Backoff(t.block.host, t.block.disp, t.seen, try)
}
