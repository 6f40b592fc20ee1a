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
	var f freeze
	for failures := 0; ; failures++ {
		now := t.c.Now()
		prev, err := t.w.FetchAndOpFlush(slots<<t.layout.max[kind].Shift, k.home, k.disp, rma.Sum) // A1:3 A1:17
		switch {
		case err != nil:
			t.unclaim(k)
			return err
		case t.layout.frozen(prev): // A1:4 A1:18
			err = t.bounce(k, prev, now, &f)
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
			err = t.backOff(k, failures, &f)
		}
		if err != nil {
			t.unclaim(k)
			return err
		}
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
	if k.ownDied {
		return fmt.Errorf("dslr: lock %d: %w", k.id, lock.ErrOwnerDied)
	}
	return nil
}

// wait is HandleConflict, Algorithm 2 (A2:1). It reports whether the ticket was served; if
// not, it was passed over, by another rank or by this one.
func (t *Table) wait(k *ticket) (served bool, err error) {
	v, still := k.word, t.watch(k.word)
	for {
		t.sees(&still, v)
		switch {
		case k.served(v): // A2:6 A2:9
			k.word, k.ownDied = v, t.layout.died.Get(v) != 0
			return true, nil
		case t.passedOver(k, v): // A2:3
			k.word = v
			return false, nil
		}
		now, next, err := t.look(k, v, still.mask, still.since)
		if err != nil {
			return false, err
		}
		if next&still.mask == still.word && now-still.since >= t.patience(k, next) { // A2:11
			if next, err = t.passOver(k, next); err != nil || next == passed {
				return false, err // A2:19
			}
		}
		if !k.served(next) {
			k.since = now
		}
		v = next
	}
}

// A stillness is since when a rank has seen the counters of released tickets stand still.
type stillness struct{ word, mask, since int64 }

func (t *Table) watch(v int64) stillness {
	mask := t.layout.released()
	return stillness{v & mask, mask, t.c.Now()}
}

// sees notes a word that the rank has just read.
func (t *Table) sees(s *stillness, v int64) {
	if v&s.mask != s.word {
		*s = stillness{v & s.mask, s.mask, t.c.Now()}
	}
}

// look pauses and reads the word. The pause ends early if a bit of mask is not as in v. now is
// a moment before the read.
func (t *Table) look(k *ticket, v, mask, moved int64) (now, next int64, err error) {
	if t.cfg.Omega > 0 {
		t.c.Sleep(t.ahead(k, v) * t.cfg.Omega) // A2:20
	} else {
		// The lease must begin close to the moment at which the ticket is served.
		until := min(moved+t.patience(k, v), t.c.Now()+t.cfg.Lease/4)
		now = t.c.Now()
		next, held, err := t.w.AwaitUntil(k.home, k.disp, rma.NotEqual(v&mask).In(mask), until)
		if held || err != nil {
			return now, next, err
		}
	}
	now = t.c.Now()
	next, err = t.w.GetFlush(k.home, k.disp) // A2:2
	return now, next, err
}

// patience is how long the counters may stand still before a waiting rank takes the holders
// for dead: two leases, and with leases of several slots two for each ticket ahead.
func (t *Table) patience(k *ticket, v int64) int64 {
	if t.cfg.MaxSlots == 1 {
		return 2 * t.cfg.Lease
	}
	return 2 * t.cfg.Lease * max(1, t.ahead(k, v))
}

// passed is what passOver returns when it has succeeded. A word that is 0 has been reset, so
// that the ticket will not be served either.
const passed = 0

// passOver takes all tickets before this one, and this one, for released (A2:12 to A2:16).
// It returns passed, or the word as another rank has changed it meanwhile.
func (t *Table) passOver(k *ticket, v int64) (now int64, err error) {
	l, next := t.layout, v
	for _, b := range before[k.kind] {
		if b != shared && l.n[b].Get(v) < l.max[b].Get(k.prev) {
			next = l.died.With(next, 1)
		}
		next = l.n[b].With(next, l.max[b].Get(k.prev))
	}
	// Of shared tickets, siblings release theirs themselves: only this one is given up.
	n := l.n[k.kind]
	next = n.With(next, n.Get(next)+k.slots)
	found, err := t.w.CompareAndSwapFlush(next, v, k.home, k.disp)
	if err != nil || found != v {
		return found, err
	}
	if k.resets { // A2:17 A2:18
		return passed, t.reset(k, next)
	}
	return passed, nil
}
