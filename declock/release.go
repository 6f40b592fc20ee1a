package declock

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// release lets the lock go: Figure 7, lines 6 to 19 (F7:6).
func (t *Table) release(k *member) error {
	h := &t.header
	change := h.leave(k.mode)
	if k.died && k.mode == lock.Exclusive {
		change -= h.died.One() // the caller has repaired what it found
		k.died = false
	}
	leave := t.leave
	if t.late(k) {
		leave = t.leaveLate
	}
	v, mine, err := leave(k, change)
	if mine && err == nil {
		err = t.pass(k, v)
	}
	clear(t.queue)
	if err == nil {
		err = t.set(k, out)
	}
	if err == nil && !mine {
		err = fmt.Errorf("declock: lock %d: %w", k.id, lock.ErrLeaseLost)
	}
	return err
}

// leave leaves the queue, and reads it in the same doorbell; the Fence keeps the order. It
// returns the header before, and whether the rank was in the queue still.
func (t *Table) leave(k *member, change int64) (v int64, mine bool, err error) {
	t.locks.Fence(k.home)                                    // what the caller has issued comes first: see Config.Window
	r := t.locks.FetchAndOp(change, k.home, k.disp, rma.Sum) // F7:6
	t.locks.Fence(k.home)
	t.locks.GetBulk(t.queue, k.home, t.entryAt(k, 0)) // F7:7
	if err := t.locks.Flush(k.home); err != nil {
		return 0, false, err
	}
	v = t.locks.Value(r)
	if t.header.epoch.Get(v) == k.epoch {
		return v, true, nil
	}
	// The operation took more than a lease to take effect.
	_, err = t.locks.FetchAndOpFlush(-change, k.home, k.disp, rma.Sum)
	return v, false, err
}

// leaveLate is leave for a rank that others may have taken for dead. The paper's rank ignores
// that the lock was reset.
func (t *Table) leaveLate(k *member, change int64) (v int64, mine bool, err error) {
	if err := t.beat(); err != nil {
		return 0, false, err
	}
	v, err = t.locks.GetFlush(k.home, k.disp)
	for err == nil && t.header.epoch.Get(v) == k.epoch {
		var found int64
		if found, err = t.locks.CompareAndSwapFlush(v+change, v, k.home, k.disp); found == v && err == nil {
			t.locks.GetBulk(t.queue, k.home, t.entryAt(k, 0))
			return v, true, t.locks.Flush(k.home)
		}
		v = found
	}
	return v, false, err
}

// pass tells those that are next. v is the header before the release; the queue was read after
// it.
func (t *Table) pass(k *member, v int64) error {
	h := &t.header
	next := h.qhead.Get(v) + 1
	end := h.qhead.Get(v) + h.qsize.Get(v)
	switch {
	case h.rst.Get(v) != 0: // section 4.4: the reset does the rest
		return nil
	case h.lap(next-1) >= h.laps: // version overflow
		return t.reset(k)
	case next == end: // F7:8, case 3: no rank is behind
		return nil
	}
	if mine, err := t.keeps(k); !mine || err != nil {
		return err
	}
	switch {
	case k.mode == lock.Exclusive:
		return t.passWriter(k, next, end)
	case h.wcnt.Get(v) == 0: // readers behind a reader hold the lock
		return nil
	}
	return t.passReader(k, next, end, h.wcnt.Get(v))
}

// passReader is the release of a reader with writers behind it (F7:11 to F7:13). The next
// entry is a reader's, which has the lock too, and may not have written its entry, or the
// first writer's. If the next entry is written, or all writers' are, it knows that without a look
// at the others. Behind the first writer all ranks write entries. So it looks at the entries
// from the last one on, until it has seen all writers: what it waits for comes. The paper
// reads the queue again and again until it has seen as many.
func (t *Table) passReader(k *member, next, end, writers int64) error {
	seen := int64(0)
	for i := next; i < end; i++ {
		e := t.queue[t.header.slot(i)]
		switch writer := entryMode.Get(e) == 0; {
		case t.header.age(e, i, k.epoch) != written:
		case i == next && writer:
			return t.tell(k, e, t.behind(k, next+1, end))
		case i == next:
			return nil
		case writer:
			seen++
		}
	}
	if seen == writers {
		return nil
	}
	for i := end - 1; i >= next; i-- {
		e, how, err := t.look(k, i)
		if err != nil || how != written {
			return err // lapped: the rank at i has been served, and so have those before it
		}
		if entryMode.Get(e) != 0 {
			continue
		}
		if writers--; writers == 0 {
			if i == next { // case 4
				return t.tell(k, e, t.behind(k, next+1, end))
			}
			return nil
		}
	}
	return nil
}

// passWriter is the release of a writer (F7:14 to F7:19): all behind it wait. The next one is
// a writer, or all readers up to the next writer enter. It knows them all before it tells the
// first: until then no writer behind them is served, so that a newer entry is over a reader's.
func (t *Table) passWriter(k *member, next, end int64) error {
	writer := next
	for ; writer < end; writer++ {
		e, how, err := t.row(k, writer)
		if err != nil || how == unwritten { // the lock is reset
			return err
		}
		if how == written && entryMode.Get(e) == 0 {
			break
		}
	}
	if writer == next { // case 4
		return t.tell(k, t.queue[t.header.slot(next)], t.behind(k, next+1, end))
	}
	behind := t.behind(k, writer, end)
	for i := next; i < writer; i++ { // case 5
		e, how, err := t.look(k, i)
		if how == lapped {
			e, _, err = t.search(k, i)
		}
		if err == nil {
			t.send(k, e, how == lapped, behind)
			if (i-next)%32 == 31 {
				err = t.sent()
			}
		}
		if err != nil {
			return err
		}
	}
	now := t.locks.Get(k.home, k.disp) // with the messages
	if err := t.locks.Flush(k.home); err != nil {
		return err
	}
	v := t.locks.Value(now)
	if err := t.sent(); err != nil {
		return err
	}
	return t.restore(k, next, v)
}

// row is look, and waits until the rank of an entry that is overwritten can be found.
func (t *Table) row(k *member, index int64) (e int64, how age, err error) {
	if e, how, err = t.look(k, index); how != lapped || err != nil {
		return e, how, err
	}
	if _, found, err := t.search(k, index); found == unwritten || err != nil {
		return 0, unwritten, err
	}
	return 0, lapped, nil
}

// look is the entry of an index, which the rank there has written or is about to write. It
// is unwritten only if the lock is reset.
func (t *Table) look(k *member, index int64) (e int64, how age, err error) {
	for gone := false; ; {
		e = t.queue[t.header.slot(index)]
		if how = t.header.age(e, index, k.epoch); how != unwritten || gone || err != nil {
			return e, how, err
		}
		gone, err = t.refetch(k, index)
	}
}

// refetch reads the entry of an index again until it has changed: section 4.3. It reports
// whether the lock is, or was, reset; then the rank has no part in it any more.
func (t *Table) refetch(k *member, index int64) (gone bool, err error) {
	t.count(func(s *Stats) *int64 { return &s.Refetches })
	h := &t.header
	slot, last := h.slot(index), int64(-1)
	changed := rma.Wait{Target: k.home, Disp: t.entryAt(k, index), Cond: rma.NotEqual(t.queue[slot])}
	stopped := rma.Wait{Target: k.home, Disp: k.disp, Cond: rma.NotEqual(h.epoch.With(0, k.epoch)).In(h.state)}
	for {
		which, v, err := t.locks.AwaitEither(changed, stopped, t.until())
		switch {
		case err != nil || which == 1:
			return true, err
		case which == 0:
			t.queue[slot] = v
			return false, nil
		}
		gone, v, err := t.stopped(k)
		if gone || err != nil {
			return true, err
		}
		if v == last {
			dead, err := t.missing(k)
			if dead && err == nil {
				dead, err = t.resetDead(k, v)
			}
			if dead || err != nil {
				return true, err
			}
		}
		last = v
	}
}

// tell gives the lock to the rank of an entry.
func (t *Table) tell(k *member, e int64, behind remote) error {
	t.send(k, e, false, behind)
	return t.sent()
}

// send issues a grant. sought: the entry is not in the queue. behind is the stamp of the rank
// that comes next.
func (t *Table) send(k *member, e int64, sought bool, behind remote) {
	t.count(func(s *Stats) *int64 { return &s.Messages })
	m := t.message(k, entryGeneration.Get(e))
	if k.died {
		m = msgDied.With(m, 1)
	}
	if sought {
		m = msgSought.With(m, 1)
	}
	if behind.known {
		m = msgStamp.With(msgStamped.With(m, 1), behind.stamp)
	}
	client := entryClient.Get(e)
	t.ranks.Put(m, int(client/maxHeld), t.grantAt(int(client%maxHeld)))
}

// sent completes grants. A rank that is gone needs none.
func (t *Table) sent() error { return reachable(t.ranks.FlushAll()) }
