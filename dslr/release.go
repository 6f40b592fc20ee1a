package dslr

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// release is ReleaseLock, Algorithm 3 (A3:1). Within its lease a rank releases by FetchAndOp:
// other ranks take it for dead after two leases, so that the operation has one lease to take
// effect. After its lease it releases by CompareAndSwap, on a word that still serves it. The
// paper's rank does nothing then, and the ranks behind it wait for two leases.
func (t *Table) release(k *ticket) error {
	added := k.slots << t.layout.n[k.kind].Shift // A3:3 A3:5
	if k.ownDied && k.kind != shared {
		added += t.layout.died.Mask() // 1 becomes 0: the caller has repaired what it found
	}
	if t.cfg.Release == ReleaseByAdd && t.c.Now()-k.since < k.slots*t.cfg.Lease { // A3:1
		was, err := t.w.FetchAndOpFlush(added, k.home, k.disp, rma.Sum)
		if err != nil {
			return err
		}
		if !k.served(was) { // passed over, within its lease: the operation was late
			if _, err := t.takeBack(k, was+added, added); err != nil {
				return err
			}
			return lost(k.id)
		}
		k.word = was
	} else if held, err := t.releaseServed(k, added); err != nil || !held {
		if err == nil {
			err = lost(k.id)
		}
		return err
	}
	if k.resets { // A3:6
		k.word += added
		return t.reset(k)
	}
	return nil
}

// releaseServed releases the ticket on a word that serves it, and reports whether there was
// one.
func (t *Table) releaseServed(k *ticket, added int64) (bool, error) {
	for k.served(k.word) {
		found, err := t.w.CompareAndSwapFlush(k.word+added, k.word, k.home, k.disp)
		if err != nil || found == k.word {
			return true, err
		}
		k.word = found
	}
	return false, nil
}

// lost is the error of a holder that others took for dead.
func lost(id int) error {
	return fmt.Errorf("dslr: lock %d: %w", id, lock.ErrLeaseLost)
}
