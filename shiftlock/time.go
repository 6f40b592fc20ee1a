package shiftlock

import "github.com/rmalock/rmalock/rma"

// patience is the number of leases that a waiter waits for a lock that no rank releases.
const patience = 3

// leases reports whether ranks are taken for dead.
func (t *Table) leases() bool { return t.cfg.Lease > 0 }

// now is the time; 0 in a table without leases.
func (t *Table) now() int64 {
	if !t.leases() {
		return 0
	}
	return t.c.Now()
}

// A stillness is since when a rank has seen a lock stand still.
type stillness struct{ moves, since int64 }

func (t *Table) watch(v int64) stillness { return stillness{v & moves, t.now()} }

// sees notes a word that the rank has just read, and reports whether the lock has stood still
// for too long.
func (t *Table) sees(s *stillness, v int64) bool {
	switch {
	case !t.leases():
		return false
	case v&moves != s.moves:
		*s = t.watch(v)
		return false
	}
	return t.c.Now()-s.since > patience*t.cfg.Lease
}

// look waits until the word differs from the one seen last in some bits, or a part of a lease
// has passed, and reads it. before is a moment before the read.
func (t *Table) look(p *place, mask int64) (before, v int64, err error) {
	differs := rma.NotEqual(p.word & mask).In(mask)
	if !t.leases() {
		v, err = t.w.Await(p.home, p.disp, differs)
		return 0, v, err
	}
	before = t.c.Now()
	v, held, err := t.w.AwaitUntil(p.home, p.disp, differs, before+t.cfg.Lease/4)
	if held || err != nil {
		return before, v, err
	}
	before = t.c.Now()
	v, err = t.w.GetFlush(p.home, p.disp)
	return before, v, err
}

// inTime reports whether the rank learns early enough that it holds the lock: then it has a
// lease from now on. Others wait for three after since: one may pass until the rank knows, one
// is the holder's, and within one its release takes effect.
func (t *Table) inTime(p *place) bool {
	return !t.leases() || t.c.Now()-p.since <= t.cfg.Lease
}

// late reports whether other ranks may have reset the lock, since its holder has had it for
// longer than a lease.
func (t *Table) late(p *place) bool {
	return t.leases() && t.c.Now()-p.since >= (patience-1)*t.cfg.Lease
}

// await waits until the lock's word satisfies a condition. It reports false if the lock was
// reset meanwhile, perhaps by this rank.
func (t *Table) await(p *place, want rma.Cond) (bool, error) {
	first, still := p.word, t.watch(p.word)
	for v := p.word; ; {
		switch {
		case !sameEra(v, first):
			return false, nil
		case want.Holds(v):
			p.word = v
			return true, nil
		}
		p.word = v
		before, next, err := t.look(p, moves|want.Mask)
		if err == nil && sameEra(next, first) && !want.Holds(next) {
			p.since = before
			if t.sees(&still, next) {
				next, err = t.reset(p, next)
			}
		}
		if err != nil {
			return false, err
		}
		v = next
	}
}

// reset takes the lock from all ranks that hold it or wait for it, if it still stands still. It
// returns the word after it: they see the next era in it.
func (t *Table) reset(p *place, v int64) (int64, error) {
	for still := v & moves; v&moves == still; {
		next := era.With(v&(rel.Mask()|died.Mask()), era.Get(v)+1)
		if tail.Get(v) != 0 {
			next = died.With(next, 1)
		}
		found, err := t.w.CompareAndSwapFlush(next, v, p.home, p.disp)
		if err != nil || found == v {
			return next, err
		}
		v = found
	}
	return v, nil
}

// renew makes other ranks wait for three leases from now on: rel moves. It reports false if
// the lock has been reset. The caller is the writer whose turn it is, and nobody else waits for
// a value of rel.
func (t *Table) renew(p *place) (bool, error) {
	now := t.now()
	v, err := t.w.GetFlush(p.home, p.disp)
	for {
		if err != nil || !sameEra(v, p.word) {
			return false, err
		}
		found, failed := t.w.CompareAndSwapFlush(v+rel.One(), v, p.home, p.disp)
		if found == v && failed == nil {
			p.word, p.since = v+rel.One(), now
			return true, nil
		}
		v, err = found, failed
	}
}
