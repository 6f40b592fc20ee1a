package rmarw

// The asymmetric counter of a lock with a barging root. All its ranks are on one node, so
// ADMISSION is near, and a writer closes and opens a counter with one CPU atomic each. A writer
// that has the root closes the counters at once: T_R and the limit are not used.

// quietTenures is how many tenures in a row a writer sees no reader before it keeps the lock
// from the readers when it passes it on.
const quietTenures = 8

// closeBarging is what closeAsym is, with a barging root.
func (t *Table) closeBarging(cs []counter) error {
	for i := range cs {
		if _, err := t.batchWords[i][admission].Add(shut); err != nil {
			return err
		}
	}
	for i, c := range cs {
		s, err := t.batchWords[i][readers].Get()
		if err != nil {
			return err
		}
		t.arrivals += int64(uint64(s) / arrival)
		if s&(arrival-1) == 0 {
			continue
		}
		d, err := t.batchWords[i][admission].Get()
		if err != nil {
			return err
		}
		if _, err := t.awaitDrained(c, d); err != nil {
			return err
		}
	}
	return nil
}

// openBarging is what openAsym is, with a barging root.
func (t *Table) openBarging(cs []counter) error {
	for i := range cs {
		if _, err := t.batchWords[i][admission].Add(nextPhase - shut); err != nil {
			return err
		}
	}
	return nil
}

// bargingRoot reports whether the root is the barging leaf.
func (t *Table) bargingRoot() bool { return t.tree.Leaf == 0 && t.tree.Barging() }

// Keep reports that no reader has come for a while.
func (t *Table) Keep() bool { return t.quiet >= t.quietAfter }
