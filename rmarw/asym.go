package rmarw

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/internal/queuetree"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// The asymmetric distributed counter. The readers of a physical counter are ranks of its
// host's node and change one word with CPU atomics; writers, wherever they are, announce
// themselves in another word with a Put and look at the readers' with a Get: no word is
// changed by both sides (Table 1 of papers/alock).
//
//	READERS  near  the readers of the counter: those inside or about to look at DOOR,
//	               those that wait for the end of an even phase, and of an odd one;
//	               and how many have arrived
//	DOOR     flag  the phase; SHUT, a writer has or takes the lock; LIMITED, a writer
//	               waits, and readers whose number has reached the limit wait for the
//	               next phase; the limit. Written by whoever has the root of the tree
//
// A reader counts itself in READERS and then looks at DOOR; a writer writes DOOR and then
// looks at READERS, each with a flush in between: one of the two sees the other (Dekker).
// A reader that is not let in moves itself, in one step, to those that wait for the end
// of the phase that it saw, and is inside as soon as DOOR shows a later one. A writer that
// shuts phase p has the lock when nobody is inside and nobody waits for the end of
// phase p-1, who would be inside. So phases follow each other only when all readers have
// seen the one before, and their parity tells those that wait apart.
const (
	readers = iota
	door
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

// The fields of DOOR.
const (
	limitBits = 64 - 3*readerBits // as many as arrivals have
	limitMask = 1<<limitBits - 1
	limited   = 1 << limitBits
	shut      = limited << 1
	nextPhase = shut << 1
)

// waitingOne is what a reader adds that waits for the end of the phase of a DOOR.
func waitingOne(d int64) int64 {
	if d&nextPhase != 0 {
		return oddOne
	}
	return evenOne
}

func field(s, one int64) int64 { return int64(uint64(s)/uint64(one)) & maxReaders }

// inside is how many readers a writer waits for in the phase of a DOOR.
func inside(s, d int64) int64 { return field(s, one) + field(s, waitingOne(d^nextPhase)) }

// lets reports whether the reader that found s in READERS is let in by a DOOR.
func lets(d, s int64) bool {
	return d&(shut|limited) == 0 || d&shut == 0 && !reached(d, s)
}

// reached reports whether arrivals have come to the limit of a DOOR. They wrap, and are
// less than MaxTR before it or maxReaders after it.
func reached(d, s int64) bool { return int64(uint64(s)/arrival-uint64(d))<<(64-limitBits) >= 0 }

// limit is a DOOR of the same phase that lets in n more readers than have arrived.
func limit(d, s, n int64) int64 {
	return d&^limitMask | limited | int64(uint64(s)/arrival+uint64(n))&limitMask
}

// after is an open DOOR of the next phase.
func after(d int64) int64 { return (d/nextPhase + 1) & (1<<(61-limitBits) - 1) * nextPhase }

// enter is Listing 9 at an asymmetric counter. It returns what the reader has added to
// READERS and takes back when it leaves.
func (t *Table) enter(c counter) (added int64, err error) {
	w := t.tree.W
	s, err := w.FetchAndOpFlush(one+arrival, c.host, c.disp+readers, rma.Sum)
	if err != nil {
		return 0, err
	}
	d, err := w.GetFlush(c.host, c.disp+door)
	if err != nil || lets(d, s) {
		return one, err
	}
	added = waitingOne(d)
	if err := w.AccumulateFlush(added-one, c.host, c.disp+readers, rma.Sum); err != nil {
		return 0, err
	}
	for now := d; now/nextPhase == d/nextPhase; {
		if now, err = w.Await(c.host, c.disp+door, rma.NotEqual(now)); err != nil {
			return 0, err
		}
	}
	return added, nil
}

// tryEnter enters if no writer has or wants the lock. It does not count as an arrival.
func (t *Table) tryEnter(c counter) (bool, error) {
	w := t.tree.W
	d, err := w.GetFlush(c.host, c.disp+door)
	if err != nil {
		return false, err
	}
	if d&(shut|limited) == 0 {
		if err = w.AccumulateFlush(one, c.host, c.disp+readers, rma.Sum); err != nil {
			return false, err
		}
		if d, err = w.GetFlush(c.host, c.disp+door); err != nil || d&(shut|limited) == 0 {
			return err == nil, err
		}
		if err = w.AccumulateFlush(-one, c.host, c.disp+readers, rma.Sum); err != nil {
			return false, err
		}
	}
	t.block, t.seen = counter{c.host, c.disp + door}, d
	return false, nil
}

// pollEnter enters without waiting in line, until ctx ends.
func (t *Table) pollEnter(ctx context.Context, c counter, id int) error {
	for try := 0; ; try++ {
		got, err := t.tryEnter(c)
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

// doShut takes counters from their readers: Listing 7, lines 14 to 22. Readers that are
// inside are waited for, and T_R more may come before the door is shut.
func (t *Table) doShut(cs []counter) error {
	w := t.tree.W
	var s, d words
	if err := t.look(cs, &s, &d); err != nil {
		return err
	}
	for i, c := range cs {
		if inside(s[i], d[i]) != 0 && d[i]&limited == 0 {
			d[i] = limit(d[i], s[i], t.tr)
			w.Put(d[i], c.host, c.disp+door)
		}
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	few, many := false, false
	for i, c := range cs {
		if inside(s[i], d[i]) != 0 {
			full, err := t.drain(c, d[i])
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
		w.Put(d[i], c.host, c.disp+door)
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	if err := t.read(cs, readers, &s); err != nil {
		return err
	}
	for i, c := range cs {
		if inside(s[i], d[i]) != 0 {
			if _, err := t.drain(c, d[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// drain waits until no reader is inside or, while the door is not shut, its limit has
// been reached, and reports whether it has.
func (t *Table) drain(c counter, d int64) (full bool, err error) {
	w := t.tree.W
	for try := 0; ; try++ {
		s, err := w.GetFlush(c.host, c.disp+readers)
		if err != nil {
			return false, err
		}
		if full := d&shut == 0 && reached(d, s); full || inside(s, d) == 0 {
			return full, nil
		}
		if err := w.Backoff(c.host, c.disp+readers, s, try); err != nil {
			return false, err
		}
	}
}

// doReopen gives counters back to their readers, those that wait included: Listing 6's
// reset_counters. If a writer waits, T_R more may come.
func (t *Table) doReopen(cs []counter) error {
	var s, d words
	if err := t.look(cs, &s, &d); err != nil {
		return err
	}
	w := t.tree.W
	for i, c := range cs {
		t.waited = t.waited || s[i]&(arrival-1) != 0
		if d[i] = after(d[i]); t.more {
			d[i] = limit(d[i], s[i], t.tr)
		}
		w.Put(d[i], c.host, c.disp+door)
	}
	return w.FlushAll()
}

// look reads both words of counters.
func (t *Table) look(cs []counter, s, d *words) error {
	w := t.tree.W
	var rs, rd [batch]rma.Result
	for i, c := range cs {
		rs[i] = w.Get(c.host, c.disp+readers)
		rd[i] = w.Get(c.host, c.disp+door)
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	for i := range cs {
		s[i], d[i] = w.Value(rs[i]), w.Value(rd[i])
	}
	return nil
}

// tryShut takes the lock from the readers if none of them has or wants it.
func (t *Table) tryShut(id int) (bool, error) {
	for k := 0; k < t.counters.Len(); k += batch {
		cs := t.some(k, id)
		took, err := t.tryShutSome(cs)
		if err != nil {
			return false, err
		}
		if took {
			continue
		}
		for k -= batch; k >= 0; k -= batch {
			if err := t.doReopen(t.some(k, id)); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	return true, nil
}

// tryShutSome is tryShut for a batch, which it leaves as it was or reopens.
func (t *Table) tryShutSome(cs []counter) (bool, error) {
	w := t.tree.W
	t.more = false
	var s, d words
	if err := t.look(cs, &s, &d); err != nil || !t.nobody(cs, &s) {
		return false, err
	}
	for i, c := range cs {
		w.Put(d[i]|shut, c.host, c.disp+door)
	}
	if err := w.FlushAll(); err != nil {
		return false, err
	}
	if err := t.read(cs, readers, &s); err != nil {
		return false, err
	}
	if t.nobody(cs, &s) {
		return true, nil
	}
	return false, t.doReopen(cs)
}

// nobody reports whether counters have no readers, inside or waiting. If they have,
// block and seen say where.
func (t *Table) nobody(cs []counter, s *words) bool {
	for i, c := range cs {
		if s[i]&(arrival-1) != 0 {
			t.block, t.seen = counter{c.host, c.disp + readers}, s[i]
			return false
		}
	}
	return true
}

// asymIdle is Idle for the words of one asymmetric counter.
func (t *Table) asymIdle(disp int) error {
	w := t.tree.W
	s, d := w.Peek(disp+readers), w.Peek(disp+door)
	if s&(arrival-1) != 0 || d&(shut|limited) != 0 {
		return fmt.Errorf("rmarw: at rank %d READERS is %#x, DOOR %#x", w.Rank(), s, d)
	}
	return nil
}
