package shiftlock

import "github.com/rmalock/rmalock/rma"

// queue takes the lock for writing (acquire_ex): first, for a little while, only if it is free;
// then at the end of the queue of writers.
func (t *Table) queue(p *place) (bool, error) {
	if err := t.empty(p); err != nil {
		return false, err
	}
	for i := range max(0, t.cfg.Tries) {
		if i > 0 {
			t.c.Sleep(tryWait << (i - 1))
		}
		if in, _, err := t.try(p); in || err != nil {
			return in, err
		}
	}
	p.since = t.now()
	v, err := t.append(p)
	if err != nil {
		return false, err
	}
	p.word, p.told = tail.With(v, int64(p.me)), died.Get(v) != 0
	in := true
	if before := name(tail.Get(v)); before != 0 {
		p.told = false // the writer before knows
		in, err = t.awaitTurn(p, before)
	} else if rdr.Get(v) > 0 {
		in, err = t.awaitReaders(p, drained.Get(v+rdr.Get(v)*rel.One()))
	}
	for in && err == nil && !t.inTime(p) {
		in, err = t.renew(p)
	}
	return in, err
}

// append makes this writer the last of the queue, and returns the word before. It is a swap of the
// tail, as in the paper, which leaves the other fields as they are and cannot fail.
func (t *Table) append(p *place) (int64, error) {
	return t.w.MaskedSwapFlush(tail.With(0, int64(p.me)), tail.Mask(), 0, 0, p.home, p.disp)
}

// awaitReaders waits until those readers have left that were there before the writer. While
// they leave, the sum of rel and rdr is the same, and later readers wait.
func (t *Table) awaitReaders(p *place, left int64) (bool, error) {
	return t.await(p, rma.Equal(drained.With(0, left)).In(drained.Mask()))
}

// awaitTurn names this writer to the one before it, and waits until that one hands the lock
// over.
func (t *Table) awaitTurn(p *place, before name) (bool, error) {
	if err := t.send(p, before, nextWord, int64(p.me)); err != nil {
		return false, err
	}
	still := t.watch(p.word)
	for {
		now := t.now()
		turn, came, err := t.receive(p, turnWord, t.until(now))
		if err != nil {
			return false, err
		}
		if came {
			return t.takeTurn(p, turn, now)
		}
		if in, err := t.standing(p, &still); !in {
			return false, err
		}
	}
}

// standing looks at the lock for a writer that waits for a message, and resets it if it has
// stood still for too long. It reports false if it was reset.
func (t *Table) standing(p *place, still *stillness) (bool, error) {
	v, err := t.w.GetFlush(p.home, p.disp)
	if err == nil && sameEra(v, p.word) && t.sees(still, v) {
		v, err = t.reset(p, v)
	}
	if err != nil || !sameEra(v, p.word) {
		return false, err
	}
	p.word = v
	return true, nil
}

// takeTurn takes the lock that the writer before hands over, or waits for the readers that it
// has let in. before is a moment before the message came.
func (t *Table) takeTurn(p *place, turn, before int64) (bool, error) {
	p.since, p.cons = before-t.elapsed(age.Get(turn)), cons.Get(turn)
	if drains.Get(turn) != 0 {
		v, err := t.w.GetFlush(p.home, p.disp)
		if err != nil || !sameEra(v, p.word) {
			return false, err
		}
		p.word = v
		if in, err := t.awaitReaders(p, target.Get(turn)); !in {
			return false, err
		}
	}
	if t.leases() && t.cfg.Release == ReleaseByCAS {
		return t.renew(p) // the message may have been on its way for long
	}
	return true, nil
}

// tryWait is the first pause between two tries, in nanoseconds.
const tryWait = 1000

// until is how long a writer waits for a message before it looks at the lock.
func (t *Table) until(now int64) int64 {
	if !t.leases() {
		return rma.Forever
	}
	return now + t.cfg.Lease/2
}

// oldest is an age that is too old for a holder to begin its lease.
const oldest = 1<<6 - 1

// aged is a time as an age in a message, rounded up.
func (t *Table) aged(ns int64) int64 {
	if !t.leases() {
		return 0
	}
	part := t.part()
	return max(0, min(oldest, (ns+part-1)/part))
}

// elapsed is the most time that an age says. For the oldest it is more than a lease.
func (t *Table) elapsed(a int64) int64 {
	if a == oldest {
		return 2 * t.cfg.Lease
	}
	return a * t.part()
}

// part is the unit of ages: a sixtieth of a lease, so that rounding adds a quarter of a lease
// in a chain of 16 writers.
func (t *Table) part() int64 { return (t.cfg.Lease + 59) / 60 }
