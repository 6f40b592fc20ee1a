package declock

import (
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// acquire takes the lock: Figure 7, lines 1 to 5 (F7:1). A reset sends all ranks in the queue
// back to the beginning.
func (t *Table) acquire(k *member) error {
	for {
		got, err := t.enter(k)
		if got || err != nil {
			return err
		}
		t.count(func(s *Stats) *int64 { return &s.Aborts })
		if err := t.settle(k); err != nil {
			return err
		}
	}
}

// enter takes a place in the queue, and waits there. It reports whether the rank has the lock;
// if not, the lock is, or was, reset, and the rank is not in the queue.
func (t *Table) enter(k *member) (bool, error) {
	h := &t.header
	k.remote = remote{}
	// A rank that stops the lock and then reads this part finds it, or this rank finds the
	// lock stopped.
	if err := t.begin(k); err != nil {
		return false, err
	}
	v, err := t.locks.FetchAndOpFlush(h.enter(k.mode), k.home, k.disp, rma.Sum) // F7:1
	if err != nil {
		return false, err
	}
	k.epoch, k.died = h.epoch.Get(v), h.died.Get(v) != 0
	switch {
	case h.rst.Get(v) != 0: // section 4.4: operations that meet a reset id abort
		return false, t.set(k, out)
	case h.open(v, k.mode): // F7:2, case 1 of Figure 6
		return t.keeps(k)
	case h.full(v): // queue overflow, or version overflow
		return false, t.reset(k)
	}
	if mine, err := t.queueUp(k, h.tail(v)); !mine || err != nil {
		return false, err
	}
	return t.wait(k, v+h.enter(k.mode))
}

// begin is what a rank does before it takes a lock.
func (t *Table) begin(k *member) error {
	if err := t.beat(); err != nil {
		return err
	}
	return t.set(k, in)
}

// queueUp writes the rank's entry at an index of the queue (F7:4, case 2). The part says so
// before: see overwrite.go.
func (t *Table) queueUp(k *member, index int64) (bool, error) {
	t.count(func(s *Stats) *int64 { return &s.Waits })
	if err := t.ranks.PutFlush(0, t.c.Rank(), t.grantAt(k.slot)); err != nil {
		return false, err
	}
	k.index = index
	if err := t.set(k, waiting); err != nil {
		return false, err
	}
	if mine, err := t.keeps(k); !mine || err != nil {
		return false, err
	}
	e := t.newEntry(int(t.client(k)), t.generation, k.epoch, k.mode, index)
	if t.timed() {
		e = entryStamp.With(entryStamped.With(e, 1), k.stamp)
	}
	return true, t.locks.PutFlush(e, k.home, t.entryAt(k, index))
}

// newEntry is the entry of a client at an index.
func (t *Table) newEntry(client int, generation, epoch int64, mode lock.Mode, index int64) int64 {
	e := entryGeneration.With(entryClient.With(0, int64(client)), generation)
	e = entryVersion.With(entryEpoch.With(e, epoch), ^t.header.lap(index))
	return entryMode.With(e, int64(mode))
}

// wait waits for a grant (F7:5). It reports whether there was one; if not, the lock is reset.
// last is the header as the rank has seen it.
func (t *Table) wait(k *member, last int64) (bool, error) {
	me, want := t.c.Rank(), t.message(k, t.generation)
	granted := rma.Wait{Target: me, Disp: t.grantAt(k.slot), Cond: rma.Equal(want).In(addressed)}
	stopped := rma.Wait{Target: me, Disp: t.resetAt(k.slot), Cond: rma.Equal(want).In(addressed)}
	for {
		which, v, err := t.ranks.AwaitEither(granted, stopped, t.until())
		if err != nil {
			return false, err
		}
		if which == 0 {
			k.died = msgDied.Get(v) != 0
			k.remote = remote{msgStamp.Get(v), msgStamped.Get(v) != 0}
			if err := t.set(k, in); err != nil {
				return false, err
			}
			if msgSought.Get(v) != 0 {
				now, err := t.locks.GetFlush(k.home, k.disp)
				if err == nil {
					err = t.restore(k, k.index, now)
				}
				if err != nil {
					return false, err
				}
			}
			return t.keeps(k)
		}
		if which == 1 { // it may be an old message
			if err := t.ranks.PutFlush(0, me, t.resetAt(k.slot)); err != nil {
				return false, err
			}
		}
		gone, v, err := t.stopped(k)
		if gone || err != nil {
			return false, err
		}
		if v == last && which < 0 {
			if reset, err := t.mend(k, v); reset || err != nil {
				return false, err
			}
		}
		last = v
	}
}
