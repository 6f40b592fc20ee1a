package dslr

import "github.com/rmalock/rmalock/rma"

// reset is the designated rank's part of section 4.9, after its own ticket is released: when
// all tickets before are released too, the word becomes zero, of the next generation (A3:7).
// It takes ranks that do not release theirs for two leases for dead.
func (t *Table) reset(k *ticket) error {
	l := t.layout
	awaited := l.released()
	if t.cfg.Reset == ResetExact { // until no draw is there that its rank takes back
		awaited = -1
	}
	for t.watch(k); k.word&l.gen.Mask() == k.prev&l.gen.Mask(); t.sees(k) {
		if zero, ok := t.resetTo(k, k.word); ok {
			found, err := t.w.CompareAndSwapFlush(zero, k.word, k.home, k.disp)
			if err != nil || found == k.word {
				return err
			}
			k.word = found
			continue
		}
		now, err := t.look(k, awaited)
		if err != nil {
			return err
		}
		if t.standsStill(k, now) {
			was := k.word
			if k.word, err = t.force(k, was); err != nil || k.word == was {
				return err
			}
		}
	}
	return nil
}

// resetTo is what the word becomes if all tickets up to this one are released in v. What lies
// above them are draws that their ranks take back, unless they see the next generation.
// The paper's CompareAndSwap takes the one value that has no such draws, and fails while
// there are some.
func (t *Table) resetTo(k *ticket, v int64) (zero int64, ok bool) {
	l := t.layout
	for b := range kinds {
		last := l.max[b].Get(k.prev)
		if b == k.kind {
			last += k.slots
		}
		if l.n[b].Get(v) < last || t.cfg.Reset == ResetExact && l.max[b].Get(v) != last {
			return 0, false
		}
	}
	return l.zero(v), true
}

// force makes the word v zero though tickets are not released (A1:8, A1:22). It returns v, or the
// word as another rank has changed it.
func (t *Table) force(k *ticket, v int64) (found int64, err error) {
	l := t.layout
	return t.w.CompareAndSwapFlush(l.zero(l.died.With(v, 1)), v, k.home, k.disp)
}

// A freeze is what a rank remembers of a word that waits for its reset.
type freeze struct {
	word  int64 // its released counters when the rank first met it
	moved int64 // and the moment after that
	met   bool
}

// bounce takes a draw on a frozen word back (A1:5, A1:19), which was prev before it. now is a
// moment before the draw.
func (t *Table) bounce(k *ticket, prev, now int64) error {
	added := k.slots << t.layout.max[k.kind].Shift
	v, err := t.takeBack(k, prev+added, added)
	if err != nil {
		return err
	}
	k.word = v
	return t.thaw(k, now)
}

// thaw resets a frozen word in place of a dead rank, if the counters have stood still since
// the rank met it first (A1:7, A1:21): for two leases, with leases of several slots as many
// times as there are tickets. Draws of other ranks that are taken back do not stop it. If it drew
// again instead, two such ranks could stop each other, and the rank that is to reset, for ever.
func (t *Table) thaw(k *ticket, now int64) error {
	l, f := t.layout, &k.froze
	switch released := k.word & l.released(); {
	case !l.frozen(k.word): // tickets may still be drawn, whose leases begin later
		*f = freeze{}
		return nil
	case !f.met || f.word != released:
		*f = freeze{word: released, met: true}
		f.moved = t.c.Now()
		return nil
	}
	for l.frozen(k.word) && k.word&l.released() == f.word && now-f.moved >= t.frozenPatience(k.word) {
		was := k.word
		var err error
		if k.word, err = t.force(k, was); err != nil || k.word == was {
			return err
		}
	}
	return nil
}

// frozenPatience is how long a rank lets a frozen word v stand still.
func (t *Table) frozenPatience(v int64) int64 {
	if t.cfg.MaxSlots == 1 {
		return 2 * t.cfg.Lease
	}
	return 2 * t.cfg.Lease * max(1, t.layout.outstanding(v))
}

// takeBack subtracts what the rank has added to the word, which it left at v. A
// CompareAndSwap sees if a reset has taken it back already; a FetchAndOp of -1, as in the
// paper, then borrows from the counter beside it. It returns the word after it.
func (t *Table) takeBack(k *ticket, v, added int64) (int64, error) {
	gen := t.layout.gen.Mask()
	for was := v & gen; v&gen == was; {
		found, err := t.w.CompareAndSwapFlush(v-added, v, k.home, k.disp)
		if err != nil {
			return 0, err
		}
		if found == v {
			return v - added, nil
		}
		v = found
	}
	return v, nil
}

// backOff pauses after the rank has failed, by how often in a row: appendix A.3.
// Without random pauses it looks at a frozen word until a ticket is released, and draws again
// then, or when it is to reset the word itself.
func (t *Table) backOff(k *ticket) error {
	most := min(t.cfg.BackoffFirst<<min(k.failures, 20), t.cfg.BackoffLast)
	if most > 0 {
		k.failures++
		t.c.Sleep(t.draw(most))
	} else if t.layout.frozen(k.word) {
		released := t.layout.released()
		_, _, err := t.w.AwaitUntil(k.home, k.disp, rma.NotEqual(k.word&released).In(released), k.froze.moved+t.frozenPatience(k.word))
		return err
	}
	return nil
}

// draw is a random number from 0 to most, by xorshift64*.
func (t *Table) draw(most int64) int64 {
	x := t.random
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	t.random = x
	return int64((x * 0x2545F4914F6CDD1D >> 1) % uint64(most+1))
}
