package rmarw

import "github.com/rmalock/rmalock/rma"

// The asymmetric counter of a lock with a barging root. All its ranks are on one node, so
// ADMISSION is near, and a writer closes and opens a counter with one CPU atomic each. A writer
// that has the root closes the counters at once: T_R and the limit are not used.

// quietTenures is how many tenures in a row a writer sees no reader before it keeps the lock
// from the readers when it passes it on.
const quietTenures = 8

// closeBarging is what closeAsym is, with a barging root.
func (t *Table) closeBarging(cs []counter) error {
	w := t.tree.W
	for _, c := range cs {
		if err := w.AccumulateFlush(shut, c.host, c.disp+admission, rma.Sum); err != nil {
			return err
		}
	}
	for _, c := range cs {
		s, err := w.GetFlush(c.host, c.disp+readers)
		if err != nil {
			return err
		}
		t.arrivals += int64(uint64(s) / arrival)
		if s&(arrival-1) == 0 {
			continue
		}
		d, err := w.GetFlush(c.host, c.disp+admission)
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
	for _, c := range cs {
		if err := t.tree.W.AccumulateFlush(nextPhase-shut, c.host, c.disp+admission, rma.Sum); err != nil {
			return err
		}
	}
	return nil
}

// bargingRoot reports whether the root is the barging leaf.
func (t *Table) bargingRoot() bool { return t.tree.Leaf == 0 && t.tree.Barging() }

// Keep reports that no reader has come for a while.
func (t *Table) Keep() bool { return t.quiet >= t.quietAfter }
