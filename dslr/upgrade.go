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
// Meanwhile it needs no operation but reads, as all later tickets wait for this one. The lease
// begins anew with each look that finds a reader: others count from the moment it leaves.
func (t *Table) upgrade(id int) error {
	k := t.find(id)
	if k == nil || k.kind != update {
		panic("dslr: upgrade of a lock that is not held for update")
	}
	l := t.layout
	readers := l.max[shared].Get(k.prev)
	for t.watch(k); l.n[shared].Get(k.word) != readers; t.sees(k) {
		now, err := t.look(k, k.still.mask)
		if err == nil && t.standsStill(k, now) {
			var done bool
			if done, err = t.giveUp(k); done {
				t.unclaim(k)
				return fmt.Errorf("dslr: lock %d: readers before the update lock stay for too long: %w", id, lock.ErrGiveWay)
			}
		}
		switch {
		case err != nil:
			return err
		case !k.served(k.word):
			t.unclaim(k)
			return lost(id)
		case l.n[shared].Get(k.word) != readers:
			k.since = now
		}
	}
	if in, err := t.inTime(k); !in {
		t.unclaim(k)
		return errors.Join(err, fmt.Errorf("dslr: lock %d: the update lock's lease has ended: %w", id, lock.ErrGiveWay))
	}
	return nil
}

// giveUp resets the word, so that all tickets are drawn anew: a reader that is only slow has no
// other way to see that it is taken for dead. It does nothing if another rank has changed the word.
func (t *Table) giveUp(k *ticket) (done bool, err error) {
	found, err := t.w.CompareAndSwapFlush(t.layout.zero(k.word), k.word, k.home, k.disp)
	done = err == nil && found == k.word
	k.word = found
	return done, err
}
