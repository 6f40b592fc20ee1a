package dslr

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Promise says that a rank is passed, after its draw, by each other rank once as a writer,
// and, if it is a writer, once as a reader. Readers of one view pass each other without a
// bound. A draw on a frozen word does not count.
func (t *Table) Promise(mode lock.Mode) lock.Promise {
	p := lock.Promise{Bypass: lock.Unbounded, Acquire: 1, Release: 1, Lease: t.cfg.Lease}
	if t.cfg.Release == ReleaseByCAS {
		p.Release = lock.Unbounded
	}
	if t.cfg.CountMax < t.cfg.countMax() {
		p.Acquire, p.Release = lock.Unbounded, lock.Unbounded
		return p
	}
	others := t.c.Size() - 1
	if mode == lock.Exclusive {
		p.Bypass = others
	} else {
		writers := func(_ int, mode lock.Mode) bool { return mode == lock.Exclusive }
		p.Bounds = []lock.Bound{{After: 1, Of: writers, Most: others}}
	}
	return p
}

// Idle checks that the rank has no tickets and that all tickets of its locks are released:
// those in its memory, or those of all memory nodes.
func (t *Table) Idle() error {
	if t.busy != 0 {
		return fmt.Errorf("dslr: rank %d has tickets %b", t.c.Rank(), t.busy)
	}
	first, end := t.c.Rank(), t.c.Rank()+1
	if t.Hosts() == rma.MemoryNodes {
		first, end = 0, t.w.Size()
	}
	for host := first; host < end; host++ {
		for disp := range t.w.Words() {
			v, err := t.w.GetFlush(host, disp)
			if err != nil {
				return err
			}
			if t.layout.outstanding(v) != 0 {
				spec := t.w.Spec()
				word := spec.Word(disp)
				return fmt.Errorf("dslr: %s of host %d is %s, want all tickets released", spec.WordName(disp), host, word.Format(v))
			}
		}
	}
	return nil
}
