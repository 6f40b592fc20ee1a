package shiftlock

import (
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Promise says that a reader is passed by K writers at most after it has counted itself in. A
// writer in the queue is passed by each other rank once as a writer. It is passed by each rank as a
// reader once for each K of these writers, and twice more. Readers pass readers without a bound.
// With leases these bounds hold until the lock is reset: then all ranks that wait begin again. As a
// reset may follow from what was before a rank came, a Promise of such a table names no bound.
func (t *Table) Promise(m lock.Mode) lock.Promise {
	p := lock.Promise{Bypass: lock.Unbounded, Acquire: 1, Release: 1}
	if m == lock.Exclusive {
		p.Acquire, p.Release = lock.Unbounded, lock.Unbounded // CompareAndSwaps that readers disturb
	}
	if t.cfg.Release == ReleaseByCAS {
		p.Release = lock.Unbounded
	}
	if t.leases() {
		p.Acquire = lock.Unbounded // ranks begin again
		p.Lease, p.Recovery = t.cfg.Lease, 2*(patience+1)*t.cfg.Lease
		return p
	}
	most, others := t.cfg.K, t.c.Size()-1
	if m == lock.Exclusive {
		most = others
		p.Bypass = others * (3 + others/t.cfg.K)
	}
	writers := func(_ int, m lock.Mode) bool { return m == lock.Exclusive }
	p.Bounds = []lock.Bound{{After: 1, Of: writers, Most: most}}
	return p
}

// Idle checks that the rank has no place at a lock, and that its locks are free: those in its
// memory, or those of all memory nodes.
func (t *Table) Idle() error {
	if t.busy != 0 {
		return fmt.Errorf("shiftlock: rank %d has places %b", t.c.Rank(), t.busy)
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
			if tail.Get(v) != 0 || rdr.Get(v) != 0 {
				spec := t.w.Spec()
				word := spec.Word(disp)
				return fmt.Errorf("shiftlock: %s of host %d is %s, want no tail and no readers", spec.WordName(disp), host, word.Format(v))
			}
		}
	}
	return nil
}
