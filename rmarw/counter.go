package rmarw

import (
	"github.com/rmalock/rmalock/rma"
)

// The words of a symmetric physical counter, which readers and writers both change.
const (
	arrive = iota
	depart
	opened
	openerSignal
	counterWords
)

// The fields of ARRIVE: WRITE, the phase, and how many readers have arrived in it. The
// phase is wide, since a rank that only tries may be late by any number of phases. For
// ranks that have arrived two bits would do.
const (
	write      = 1 << 62
	phaseShift = 24
	phaseBits  = 62 - phaseShift
	countMask  = 1<<phaseShift - 1
)

func phaseOf(a int64) int64 { return a &^ write >> phaseShift }
func countOf(a int64) int64 { return a & countMask }

// departed is how many readers DEPART counts in its phase. It is less than 0 until the
// readers that the phase let in at its beginning have departed.
func departed(d int64) int64 { return d << (64 - phaseShift) >> (64 - phaseShift) }

// inPhase reports whether DEPART counts the phase of a: it comes to the next one before OPENED
// does.
func inPhase(d, a int64) bool {
	return (d-departed(d))>>phaseShift&(1<<phaseBits-1) == phaseOf(a)
}

// phaseEndDelta is added to DEPART when the phase of ARRIVE value a ends: one phase more,
// less the readers that a counts. The number of the phase makes every value of DEPART
// unique, so that a rank that waits for a change cannot miss one (no ABA).
func phaseEndDelta(a int64) int64 { return 1<<phaseShift - countOf(a) }

// arriveAfter is the ARRIVE of the phase after that of a.
func arriveAfter(a int64) int64 { return (phaseOf(a) + 1) & (1<<phaseBits - 1) << phaseShift }

// phasesAhead is how many phases ARRIVE is ahead of OPENED: 0, 1 while the phase is being
// opened, or less than 0 if a was read before the phase ended. It is never more: a phase
// ends only when all readers have departed that it or the one before let in.
func phasesAhead(a, opened int64) int64 {
	return (phaseOf(a) - opened) << (64 - phaseBits) >> (64 - phaseBits)
}

// A counter is where a physical counter of a lock is.
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

// A batchName says which counters a batch has: those of a lock, from a number on.
type batchName struct{ id, from int }

// countersFrom is a batch of counters, from number k on.
func (t *Table) countersFrom(k, id int) []counter {
	n := min(batch, t.counters.Len()-k)
	if t.batchOf != (batchName{id, k}) {
		for i := range n {
			c := t.counter(k+i, id)
			t.batchBuf[i] = c
			if t.bargingRoot() {
				for j := range t.batchWords[i] {
					t.batchWords[i][j] = t.tree.W.Pointer(c.host, c.disp+j)
				}
			}
		}
		t.batchOf = batchName{id, k}
	}
	return t.batchBuf[:n]
}

// eachBatch calls f for the physical counters of a lock, batch by batch.
func (t *Table) eachBatch(id int, f func(cs []counter) error) error {
	for k := 0; k < t.counters.Len(); k += batch {
		if err := f(t.countersFrom(k, id)); err != nil {
			return err
		}
	}
	return nil
}

// DequeueBeforeRelease holds for symmetric counters, as a reader that opens a phase relies
// on it. An asymmetric counter's ADMISSION needs the opposite: only the writer that has the
// root may write it.
func (t *Table) DequeueBeforeRelease() bool { return !t.asym }

// Acquire takes lock id from the readers: set_counters_to_WRITE (L6:2). The caller is at the
// head of the root's queue.
func (t *Table) Acquire(id int) error {
	before := t.arrivals
	t.arrivals = 0
	err := t.eachBatch(id, t.close) // L6:4
	if t.quiet++; t.arrivals != before {
		t.quiet = 0
	}
	return err
}

// words is a word of each counter of a batch.
type words [batch]int64

// readWord reads a word of each counter.
func (t *Table) readWord(cs []counter, word int, v *words) error {
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

// closeSym sets WRITE at counters and waits until the readers that are in have departed.
// It reads all counters of the batch together, and waits at one counter after the other
// where that shows that there is something to wait for.
func (t *Table) closeSym(cs []counter) error {
	w := t.tree.W
	var a, g, d words
	if err := t.readWord(cs, arrive, &a); err != nil {
		return err
	}
	if err := t.readWord(cs, depart, &d); err != nil {
		return err
	}
	if err := t.readWord(cs, opened, &g); err != nil {
		return err
	}
	for i, c := range cs {
		if !t.ready(a[i], d[i], g[i]) {
			if err := t.awaitReady(c); err != nil {
				return err
			}
		}
	}
	var r [batch]rma.Result
	for i, c := range cs {
		r[i] = w.FetchAndOp(write, c.host, c.disp+arrive, rma.Sum) // L6:6
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	for i := range cs {
		a[i] = w.Value(r[i])
	}
	if err := t.readWord(cs, opened, &g); err != nil {
		return err
	}
	for i, c := range cs {
		if phasesAhead(a[i], g[i]) != 0 { // a reader has just opened the phase: DEPART is not right before OPENED is
			if _, err := w.Await(c.host, c.disp+opened, rma.AtLeast(g[i]+1)); err != nil {
				return err
			}
		}
	}
	if err := t.readWord(cs, depart, &d); err != nil {
		return err
	}
	for i, c := range cs {
		for now, in := d[i], min(countOf(a[i]), t.tr); departed(now) < in; {
			var err error
			if now, err = w.Await(c.host, c.disp+depart, rma.NotEqual(now)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ready reports whether a writer may set WRITE: the phase is open and no reader is in, or
// it is full, so that T_R readers have had their turn. A stale DEPART is harmless here:
// ready only decides which side goes first. The second look, after WRITE, excludes readers.
func (t *Table) ready(a, d, g int64) bool {
	return a&write == 0 && phasesAhead(a, g) == 0 && (countOf(a) >= t.tr || departed(d) >= countOf(a))
}

// awaitReady waits until a counter is ready.
func (t *Table) awaitReady(c counter) error {
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
		g, err := w.GetFlush(c.host, c.disp+opened) // after DEPART, which is of this phase if OPENED is
		switch {
		case err != nil:
			return err
		case t.ready(a, d, g):
			return nil
		case phasesAhead(a, g) < 0: // a phase was opened since ARRIVE was read
		case a&write != 0 || phasesAhead(a, g) > 0: // one is being opened, or will be by the writer before
			if _, err := w.Await(c.host, c.disp+opened, rma.AtLeast(g+1)); err != nil {
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

// Release gives lock id to the readers: reset_counters (L6:27). The caller has set WRITE
// everywhere, and all readers have departed.
func (t *Table) Release(id int, more bool) (waited bool, err error) {
	t.more, t.waited = more, false
	err = t.eachBatch(id, t.open) // L6:28
	return t.waited, err
}

// openSym opens a new phase at counters at which WRITE is set: reset_counter (L6:9). ARRIVE
// is replaced, WRITE and all, where the listing subtracts from it (L6:18 L6:19).
func (t *Table) openSym(cs []counter) error {
	w := t.tree.W
	var a, d [batch]rma.Result
	for i, c := range cs {
		a[i] = w.Get(c.host, c.disp+arrive) // L6:11
		d[i] = w.Get(c.host, c.disp+depart)
	}
	if err := w.FlushAll(); err != nil { // L6:12
		return err
	}
	for i, c := range cs { // the phase and DEPART are as read; a reader that arrives meanwhile waits
		a[i] = w.FetchAndOp(arriveAfter(w.Value(a[i])), c.host, c.disp+arrive, rma.Replace) // L6:22
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	for i, c := range cs {
		was := w.Value(a[i])
		t.waited = t.waited || countOf(was) > departed(w.Value(d[i]))
		w.Accumulate(phaseEndDelta(was), c.host, c.disp+depart, rma.Sum) // L6:14 L6:23
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	for _, c := range cs {
		w.Accumulate(1, c.host, c.disp+opened, rma.Sum)
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	for i, c := range cs { // the reader that waits to open a phase, where it was full
		if departed(w.Value(d[i])) >= t.tr {
			w.Accumulate(1, c.host, c.disp+openerSignal, rma.Sum)
		}
	}
	return w.FlushAll()
}

// Withdrawn tells readers that saw this rank in the root's queue that it is gone.
func (t *Table) Withdrawn(id int) error {
	if t.asym {
		return nil // none looks there
	}
	return t.eachBatch(id, t.signal)
}

// signalOpeners has readers that wait to open a phase look again.
func (t *Table) signalOpeners(cs []counter) error {
	w := t.tree.W
	for _, c := range cs {
		w.Accumulate(1, c.host, c.disp+openerSignal, rma.Sum)
	}
	return w.FlushAll()
}

// TryAcquire takes lock id from the readers if none of them has or wants it. The caller is
// alone in the root's queue.
func (t *Table) TryAcquire(id int) (bool, error) {
	if t.asym {
		return t.tryCloseAsym(id)
	}
	for k := range t.counters.Len() {
		if got, err := t.tryCloseSym(t.counter(k, id)); err != nil {
			return false, err
		} else if got {
			continue
		}
		for i := range k { // readers that arrived there since wait for a phase
			cs := [1]counter{t.counter(i, id)}
			if err := t.open(cs[:]); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	return true, nil
}

// tryCloseSym sets WRITE at a counter if no reader is in and none waits. Otherwise
// blockedAt and blockedBy say which word was in the way, and its value.
func (t *Table) tryCloseSym(c counter) (bool, error) {
	w := t.tree.W
	for {
		a, err := w.GetFlush(c.host, c.disp+arrive)
		if err != nil {
			return false, err
		}
		g, err := w.GetFlush(c.host, c.disp+opened)
		if err != nil {
			return false, err
		}
		d, err := w.GetFlush(c.host, c.disp+depart) // after OPENED: before, it may be too large
		if err != nil {
			return false, err
		}
		switch {
		case phasesAhead(a, g) < 0: // a phase was opened since ARRIVE was read
			continue
		case a&write != 0 || phasesAhead(a, g) > 0 || countOf(a) > t.tr: // one is about to be
			t.blockedAt, t.blockedBy = counter{c.host, c.disp + opened}, g
			return false, nil
		case departed(d) < countOf(a): // readers are in
			if !inPhase(d, a) { // or were: a phase is being opened, or was
				continue
			}
			t.blockedAt, t.blockedBy = counter{c.host, c.disp + depart}, d
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
	return t.tree.W.Backoff(t.blockedAt.host, t.blockedAt.disp, t.blockedBy, try)
}
