package dslr

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// acquire is AcquireLock, Algorithm 1 (A1:1), until it succeeds. The paper's transaction
// fails where its ticket is passed over: it lets all its locks go and begins again. Here a
// rank that holds no other lock of the table begins again by itself.
func (t *Table) acquire(ctx context.Context, id int, kind kind, slots int64) error {
	k, err := t.claim(id, kind, slots)
	if err != nil {
		return err
	}
	if ctx.Done() != nil {
		return t.poll(ctx, k)
	}
	for {
		now := t.c.Now()
		prev, err := t.w.FetchAndOpFlush(slots<<t.layout.max[kind].Shift, k.home, k.disp, rma.Sum) // A1:3 A1:17
		switch {
		case err != nil:
			t.unclaim(k)
			return err
		case t.layout.frozen(prev): // A1:4 A1:18
			err = t.bounce(k, prev, now)
		default:
			t.drawn(k, prev)
			k.since = now
			var served bool
			if served, err = t.wait(k); served {
				if served, err = t.inTime(k); served {
					return t.granted(k)
				}
			} else if err == nil && t.held > 1 {
				err = fmt.Errorf("dslr: lock %d: another rank waits too long: %w", id, lock.ErrGiveWay)
			}
		}
		if err == nil {
			err = t.backOff(k)
		}
		if err != nil {
			t.unclaim(k)
			return err
		}
		k.ends()
	}
}

// inTime reports whether the rank learns early enough that its ticket is served: within a lease
// of the last moment at which it knew that it was not. Then it has a lease from now on, as
// others take it for dead after two. If not, it releases its ticket.
func (t *Table) inTime(k *ticket) (bool, error) {
	if t.c.Now()-k.since <= k.slots*t.cfg.Lease {
		return true, nil
	}
	k.ownDied = false // the caller has not seen it
	if err := t.release(k); err != nil && !errors.Is(err, lock.ErrLeaseLost) {
		return false, err
	}
	return false, nil
}

// granted is the end of an acquire that succeeds (A1:13, A1:27).
func (t *Table) granted(k *ticket) error {
	k.failures = 0
	if k.ownDied {
		return fmt.Errorf("dslr: lock %d: %w", k.id, lock.ErrOwnerDied)
	}
	return nil
}

// wait is HandleConflict, Algorithm 2 (A2:1). It reports whether the ticket was served; if
// not, it was passed over, by another rank or by this one.
func (t *Table) wait(k *ticket) (served bool, err error) {
	for t.watch(k); ; t.sees(k) {
		switch {
		case k.served(k.word): // A2:6 A2:9
			k.ownDied = t.layout.died.Get(k.word) != 0
			k.still = stillness{}
			return true, nil
		case t.passedOver(k, k.word): // A2:3
			k.still = stillness{}
			return false, nil
		}
		now, err := t.look(k, k.still.mask)
		if err != nil {
			return false, err
		}
		if t.standsStill(k, now) { // A2:11
			if done, err := t.passOver(k); done || err != nil {
				return false, err // A2:19
			}
		}
		if !k.served(k.word) {
			k.since = now
		}
	}
}

// A stillness is since when a rank has seen the counters of released tickets stand still.
type stillness struct{ word, mask, since int64 }

// watch begins to note when the counters change.
func (t *Table) watch(k *ticket) {
	mask := t.layout.released()
	k.still = stillness{word: k.word & mask, mask: mask}
	k.still.since = t.c.Now()
}

// sees notes the word that the rank has just read.
func (t *Table) sees(k *ticket) {
	if k.word&k.still.mask != k.still.word {
		t.watch(k)
	}
}

// standsStill reports whether the counters have not changed for too long. now is a moment before
// the last look.
func (t *Table) standsStill(k *ticket, now int64) bool {
	return k.word&k.still.mask == k.still.word && now-k.still.since >= t.patience(k, k.word)
}

// look pauses and reads the word. The pause ends early if a bit of mask changes. now is a moment
// before the read.
func (t *Table) look(k *ticket, mask int64) (now int64, err error) {
	k.word &= mask // the rest is read anew
	if t.cfg.Omega > 0 {
		t.c.Sleep(t.ahead(k, k.word) * t.cfg.Omega) // A2:20
	} else {
		// The lease must begin close to the moment at which the ticket is served.
		now = t.c.Now()
		until := min(k.still.since+t.patience(k, k.word), now+t.cfg.Lease/4)
		next, held, err := t.w.AwaitUntil(k.home, k.disp, rma.NotEqual(k.word&mask).In(mask), until)
		if held || err != nil {
			k.word = next
			return now, err
		}
	}
	now = t.c.Now()
	k.word, err = t.w.GetFlush(k.home, k.disp) // A2:2
	return now, err
}

// patience is how long the counters may stand still before a waiting rank takes the holders
// for dead: two leases, and with leases of several slots two for each ticket ahead.
func (t *Table) patience(k *ticket, v int64) int64 {
	if t.cfg.MaxSlots == 1 {
		return 2 * t.cfg.Lease
	}
	return 2 * t.cfg.Lease * max(1, t.ahead(k, v))
}

// passOver takes all tickets before this one, and this one, for released (A2:12 to A2:16). It
// does nothing if another rank has changed the word meanwhile.
func (t *Table) passOver(k *ticket) (done bool, err error) {
	l, next := t.layout, k.word
	for _, b := range before[k.kind] {
		if b != shared && l.n[b].Get(k.word) < l.max[b].Get(k.prev) {
			next = l.died.With(next, 1)
		}
		next = l.n[b].With(next, l.max[b].Get(k.prev))
	}
	// Of shared tickets, siblings release theirs themselves: only this one is given up.
	n := l.n[k.kind]
	next = n.With(next, n.Get(next)+k.slots)
	found, err := t.w.CompareAndSwapFlush(next, k.word, k.home, k.disp)
	if done = err == nil && found == k.word; !done {
		k.word = found
		return false, err
	}
	k.word = next
	if k.resets { // A2:17 A2:18
		return true, t.reset(k)
	}
	return true, nil
}
