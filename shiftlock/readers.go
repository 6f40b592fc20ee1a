package shiftlock

import "github.com/rmalock/rmalock/rma"

// share takes the lock for reading (acquire_sh): it counts itself in, and waits while there is
// a writer until one flips the mode.
func (t *Table) share(p *place) (bool, error) {
	p.since = t.now()
	v, err := t.w.FetchAndOpFlush(rdr.One(), p.home, p.disp, rma.Sum)
	if err != nil {
		return false, err
	}
	p.word = v + rdr.One()
	if tail.Get(v) != 0 {
		// No reader sleeps through two flips: the writer after the first one waits until those
		// have left that it lets in.
		flip := rma.NotEqual(v & mode.Mask()).In(mode.Mask())
		if in, err := t.await(p, flip); !in {
			return false, err
		}
	}
	return t.admit(p)
}

// admit lets a reader in that is counted, if it is in time. Otherwise it leaves.
func (t *Table) admit(p *place) (bool, error) {
	if !t.inTime(p) {
		_, err := t.depart(p)
		return false, err
	}
	p.told = died.Get(p.word) != 0
	return true, nil
}

// leave ends a reader's sharing (release_sh).
func (t *Table) leave(p *place) error {
	in, err := t.depart(p)
	if err == nil && !in {
		err = lost(p.id)
	}
	return err
}

// depart counts a reader out, and reports whether it was still in. Within its time it does so by
// FetchAndOp: the lock is not reset before the operation has taken effect. After that the word may
// be of another era, in which the reader is not counted.
func (t *Table) depart(p *place) (bool, error) {
	v := p.word
	if t.cfg.Release == ReleaseByAdd && !t.late(p) {
		was, err := t.w.FetchAndOpFlush(leaves, p.home, p.disp, rma.Sum)
		if err != nil || sameEra(was, v) {
			return true, err
		}
		return false, t.takeBack(p, was+leaves) // it took effect later than it may
	}
	for sameEra(v, p.word) {
		found, err := t.w.CompareAndSwapFlush(v+leaves, v, p.home, p.disp)
		if err != nil || found == v {
			return true, err
		}
		v = found
	}
	return false, nil
}

// takeBack undoes a reader's departure in an era in which the reader is not counted.
func (t *Table) takeBack(p *place, v int64) error {
	for was := v; sameEra(v, was); {
		found, err := t.w.CompareAndSwapFlush(v-leaves, v, p.home, p.disp)
		if err != nil || found == v {
			return err
		}
		v = found
	}
	return nil
}
