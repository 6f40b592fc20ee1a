package dslr

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
)

// updates refuses update locks in a table without their counters.
func (t *Table) updates() error {
	if !t.cfg.Updates {
		return fmt.Errorf("dslr: the table has no update locks; open it with Config.Updates: %w", lock.ErrConfig)
	}
	return nil
}

// upgrade waits until the shared tickets before an update ticket are released: Figure 7, (d).
// Meanwhile it needs no operation but reads, as all later tickets wait for this one.
func (t *Table) upgrade(id int) error {
	k := t.find(id)
	if k == nil || k.kind != update {
		panic("dslr: upgrade of a lock that is not held for update")
	}
	l := t.layout
	readers := l.max[shared].Get(k.prev)
	v, still := k.word, t.watch(k.word)
	for l.n[shared].Get(v) != readers {
		t.sees(&still, v)
		now, next, err := t.look(k, v, still.since)
		switch {
		case err != nil:
			return err
		case !k.served(next):
			t.unclaim(k)
			return lost(id)
		case next&still.mask == still.word && now-still.since >= t.patience(k, next):
			if next, err = t.giveUp(k, next); err != nil || next == passed {
				t.unclaim(k)
				return errors.Join(err, fmt.Errorf("dslr: lock %d: readers before the update lock stay for too long: %w", id, lock.ErrGiveWay))
			}
		}
		v = next
	}
	k.word = v
	return nil
}

// giveUp releases an update ticket, and takes the readers before it for released: one that is
// only slow sees that an update ticket behind it is. It returns passed, or the word as
// another rank has changed it meanwhile.
func (t *Table) giveUp(k *ticket, v int64) (int64, error) {
	l := t.layout
	next := l.n[shared].With(v, l.max[shared].Get(k.prev))
	next = l.n[update].With(next, l.n[update].Get(v)+k.slots)
	found, err := t.w.CompareAndSwapFlush(next, v, k.home, k.disp)
	if err != nil || found != v {
		return found, err
	}
	if k.resets {
		return passed, t.reset(k, next)
	}
	return passed, nil
}
