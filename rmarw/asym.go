package rmarw

import (
	"fmt"

	"github.com/rmalock/rmalock/internal/queuetree"
	"github.com/rmalock/rmalock/rma"
)

// The asymmetric distributed counter. The readers of a physical counter are ranks of its
// host's node and change one word with CPU atomics. Writers, wherever they are, announce
// themselves in another word with a Put and look at the readers' with a Get: no word is
// changed by both sides (Table 1 of Baran et al., ALock).
//
//	READERS    near  the readers of the counter: those inside or about to look at
//	                 ADMISSION; those that wait for the end of an even phase, and of an
//	                 odd one; and how many have arrived
//	ADMISSION  flag  the phase; SHUT, a writer has or takes the lock; LIMITED, a writer
//	                 waits, and readers whose number has reached the limit wait for the
//	                 next phase; the limit. Only the writer that has the root of the tree
//	                 writes it
//
// A reader counts itself in READERS and then looks at ADMISSION. A writer writes ADMISSION
// and then looks at READERS. Each flushes in between, so one of the two sees the other
// (Dekker). A reader that is not let in moves itself, in one step, to those that wait for
// the end of the phase that it saw, and is inside as soon as ADMISSION shows a later one.
// A writer that shuts phase p has the lock when no reader is inside and none waits for the
// end of phase p-1, as that one would be inside. So phases follow each other only when all
// readers have seen the one before, and their parity tells those that wait apart.
const (
	readers = iota
	admission
	asymWords
)

// The fields of READERS. Arrivals are the top one and wrap.
const (
	readerBits = 13
	one        = 1                     // a reader inside
	evenOne    = 1 << readerBits       // one that waits for the end of an even phase
	oddOne     = 1 << (2 * readerBits) // of an odd one
	arrival    = 1 << (3 * readerBits)

	// maxReaders is the most ranks that share an asymmetric counter.
	maxReaders = 1<<readerBits - 1
)

// The fields of ADMISSION.
const (
	limitBits = 64 - 3*readerBits // as many as arrivals have
	limitMask = 1<<limitBits - 1
	limited   = 1 << limitBits
	shut      = limited << 1
	nextPhase = shut << 1
)

// waitingOne is what a reader adds that waits for the end of the phase of an ADMISSION.
func waitingOne(d int64) int64 {
	if d&nextPhase != 0 {
		return oddOne
	}
	return evenOne
}

func field(s, one int64) int64 { return int64(uint64(s)/uint64(one)) & maxReaders }

// readersInside is how many readers a writer waits for in the phase of an ADMISSION.
func readersInside(s, d int64) int64 { return field(s, one) + field(s, waitingOne(d^nextPhase)) }

// admits reports whether the reader that found s in READERS is let in by an ADMISSION.
func admits(d, s int64) bool {
	return d&(shut|limited) == 0 || d&shut == 0 && !limitReached(d, s)
}

// limitReached reports whether arrivals have come to the limit of an ADMISSION. They wrap,
// and are less than MaxTR before it or maxReaders after it.
func limitReached(d, s int64) bool { return int64(uint64(s)/arrival-uint64(d))<<(64-limitBits) >= 0 }

// limit is an ADMISSION of the same phase that lets in n more readers than have arrived.
func limit(d, s, n int64) int64 {
	return d&^limitMask | limited | int64(uint64(s)/arrival+uint64(n))&limitMask
}

// nextOpen is an open ADMISSION of the next phase.
func nextOpen(d int64) int64 { return (d + nextPhase) &^ (nextPhase - 1) }

// samePhase reports whether two ADMISSIONs are of one phase.
func samePhase(a, b int64) bool { return uint64(a^b) < nextPhase }

// bargingTries is how often a reader of a lock with a barging leaf tries before it waits in
// line. A writer must wait for a reader in line to run and leave; for one that tries, not.
const bargingTries = 16

// A reader that is not let in, and was not a few arrivals before, meets many writers. Then it
// yields several times before it tries again: each time it comes, the counter's cache line
// leaves the writer's core and returns. One yield takes 0.2 to 0.3 us with a core per rank.
const (
	fewArrivals  = 16
	yieldsIfBusy = 6
)

// enterAsym is what enterSym is, at an asymmetric counter. Table.shared has what the reader
// has added to READERS and takes back when it leaves.
func (t *Table) enterAsym() error {
	s, err := t.ownWords[readers].Add(one + arrival)
	if err != nil {
		return err
	}
	d, err := t.ownWords[admission].Get()
	if err != nil || admits(d, s-arrival) {
		return err
	}
	return t.enterLater(s, d)
}

// enterLater is enterAsym for a reader that has made READERS s, and is not let in by an ADMISSION.
func (t *Table) enterLater(s, d int64) (err error) {
	c, w := t.lastOwn, t.tree.W
	yields := 0
	if t.tries > 0 {
		yields = t.yieldsAt(int64(uint64(s) / arrival))
	}
	for range t.tries {
		if err := w.AccumulateFlush(-one, c.host, c.disp+readers, rma.Sum); err != nil {
			return err
		}
		for range yields {
			if err := w.Backoff(c.host, c.disp+admission, d, 0); err != nil {
				return err
			}
		}
		if err := t.awaitPhaseEnd(c, d); err != nil {
			return err
		}
		s, err := w.FetchAndOpFlush(one+arrival, c.host, c.disp+readers, rma.Sum)
		if err != nil {
			return err
		}
		if d, err = w.GetFlush(c.host, c.disp+admission); err != nil || admits(d, s) {
			return err
		}
	}
	t.shared[t.nshared-1].added, err = t.waitInLine(c, d)
	return err
}

// yieldsAt is how often a reader yields that is not let in, given the arrivals at its counter.
func (t *Table) yieldsAt(arrivals int64) int {
	since := (arrivals - t.refusedAt) & limitMask
	t.refusedAt = arrivals
	if since < fewArrivals {
		return yieldsIfBusy
	}
	return 1
}

// waitInLine has a reader that is not let in by an ADMISSION wait for the end of its phase. It
// is inside then.
func (t *Table) waitInLine(c counter, d int64) (added int64, err error) {
	added = waitingOne(d)
	if err := t.tree.W.AccumulateFlush(added-one, c.host, c.disp+readers, rma.Sum); err != nil {
		return 0, err
	}
	return added, t.awaitPhaseEnd(c, d)
}

// awaitPhaseEnd waits for the end of the phase of an ADMISSION.
func (t *Table) awaitPhaseEnd(c counter, d int64) (err error) {
	for now := d; samePhase(now, d); {
		if now, err = t.tree.W.Await(c.host, c.disp+admission, rma.NotEqual(now)); err != nil {
			return err
		}
	}
	return nil
}

// tryEnterAsym enters if no writer has or wants the lock. It does not count as an arrival.
func (t *Table) tryEnterAsym(c counter) (bool, error) {
	w := t.tree.W
	d, err := w.GetFlush(c.host, c.disp+admission)
	if err != nil {
		return false, err
	}
	if d&(shut|limited) == 0 {
		if err = w.AccumulateFlush(one, c.host, c.disp+readers, rma.Sum); err != nil {
			return false, err
		}
		if d, err = w.GetFlush(c.host, c.disp+admission); err != nil || d&(shut|limited) == 0 {
			return err == nil, err
		}
		if err = w.AccumulateFlush(-one, c.host, c.disp+readers, rma.Sum); err != nil {
			return false, err
		}
	}
	t.blockedAt, t.blockedBy = counter{c.host, c.disp + admission}, d
	return false, nil
}

// closeAsym takes counters from their readers, as closeSym does. It waits for the readers
// that are inside; T_R more may come before SHUT is set.
func (t *Table) closeAsym(cs []counter) error {
	w := t.tree.W
	var s, d words
	if err := t.readBoth(cs, &s, &d); err != nil {
		return err
	}
	for i, c := range cs {
		if readersInside(s[i], d[i]) != 0 && d[i]&limited == 0 {
			d[i] = limit(d[i], s[i], t.tr)
			w.Put(d[i], c.host, c.disp+admission)
		}
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	few, many := false, false
	for i, c := range cs {
		if readersInside(s[i], d[i]) != 0 {
			full, err := t.awaitDrained(c, d[i])
			if err != nil {
				return err
			}
			few, many = true, many || full
		}
	}
	if t.cfg.Adapt && few { // T_R is how many more are let in: fewer where they stop coming before
		t.tr = queuetree.NextThreshold(t.tr, t.cfg.Thresholds.TR, !many)
	}
	for i, c := range cs {
		d[i] |= shut
		w.Put(d[i], c.host, c.disp+admission)
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	if err := t.readWord(cs, readers, &s); err != nil {
		return err
	}
	for i, c := range cs {
		if readersInside(s[i], d[i]) != 0 {
			if _, err := t.awaitDrained(c, d[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitDrained waits until no reader is inside or, while SHUT is not set, the limit has been
// reached, and reports whether it has.
func (t *Table) awaitDrained(c counter, d int64) (full bool, err error) {
	w := t.tree.W
	for try := 0; ; try++ {
		s, err := w.GetFlush(c.host, c.disp+readers)
		if err != nil {
			return false, err
		}
		if full := d&shut == 0 && limitReached(d, s); full || readersInside(s, d) == 0 {
			return full, nil
		}
		if err := w.Backoff(c.host, c.disp+readers, s, try); err != nil {
			return false, err
		}
	}
}

// openAsym gives counters back to their readers, those that wait included, as openSym does.
// If a writer waits, T_R more may come.
func (t *Table) openAsym(cs []counter) error {
	var s, d words
	if err := t.readBoth(cs, &s, &d); err != nil {
		return err
	}
	w := t.tree.W
	for i, c := range cs {
		t.waited = t.waited || s[i]&(arrival-1) != 0
		if d[i] = nextOpen(d[i]); t.more {
			d[i] = limit(d[i], s[i], t.tr)
		}
		w.Put(d[i], c.host, c.disp+admission)
	}
	return w.FlushAll()
}

// readBoth reads both words of counters.
func (t *Table) readBoth(cs []counter, s, d *words) error {
	w := t.tree.W
	var rs, rd [batch]rma.Result
	for i, c := range cs {
		rs[i] = w.Get(c.host, c.disp+readers)
		rd[i] = w.Get(c.host, c.disp+admission)
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	for i := range cs {
		s[i], d[i] = w.Value(rs[i]), w.Value(rd[i])
	}
	return nil
}

// tryCloseAsym takes the lock from the readers if none of them has or wants it.
func (t *Table) tryCloseAsym(id int) (bool, error) {
	for k := 0; k < t.counters.Len(); k += batch {
		cs := t.countersFrom(k, id)
		took, err := t.tryCloseBatch(cs)
		if err != nil {
			return false, err
		}
		if took {
			continue
		}
		for k -= batch; k >= 0; k -= batch {
			if err := t.openAsym(t.countersFrom(k, id)); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	return true, nil
}

// tryCloseBatch is tryCloseAsym for a batch, which it leaves as it was or reopens.
func (t *Table) tryCloseBatch(cs []counter) (bool, error) {
	w := t.tree.W
	t.more = false
	var s, d words
	if err := t.readBoth(cs, &s, &d); err != nil || !t.noReaders(cs, &s) {
		return false, err
	}
	for i, c := range cs {
		w.Put(d[i]|shut, c.host, c.disp+admission)
	}
	if err := w.FlushAll(); err != nil {
		return false, err
	}
	if err := t.readWord(cs, readers, &s); err != nil {
		return false, err
	}
	if t.noReaders(cs, &s) {
		return true, nil
	}
	return false, t.openAsym(cs)
}

// noReaders reports whether counters have no readers, inside or waiting. If they have,
// blockedAt and blockedBy say where.
func (t *Table) noReaders(cs []counter, s *words) bool {
	for i, c := range cs {
		if s[i]&(arrival-1) != 0 {
			t.blockedAt, t.blockedBy = counter{c.host, c.disp + readers}, s[i]
			return false
		}
	}
	return true
}

// asymIdle is Idle for the words of one asymmetric counter.
func (t *Table) asymIdle(disp int) error {
	w := t.tree.W
	s, d := w.Peek(disp+readers), w.Peek(disp+admission)
	if s&(arrival-1) != 0 || d&(shut|limited) != 0 {
		return fmt.Errorf("rmarw: at rank %d READERS is %#x, ADMISSION %#x", w.Rank(), s, d)
	}
	return nil
}
