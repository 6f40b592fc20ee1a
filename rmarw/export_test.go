package rmarw

// StartAt sets the phase of the counters that the rank hosts, before anybody uses them.
func (t *Table) StartAt(phase int64) error {
	w := t.tree.W
	for disp := t.tree.ExtraBase; disp < w.Words(); disp += t.words() {
		if t.asym { // and arrivals wrap
			if err := w.PutFlush(phase*nextPhase, w.Rank(), disp+admission); err != nil {
				return err
			}
			if err := w.PutFlush(phase*arrival, w.Rank(), disp+readers); err != nil {
				return err
			}
			continue
		}
		if err := w.PutFlush(phase&(1<<phaseBits-1)<<phaseShift, w.Rank(), disp+arrive); err != nil {
			return err
		}
		if err := w.PutFlush(phase<<phaseShift, w.Rank(), disp+depart); err != nil {
			return err
		}
		if err := w.PutFlush(phase, w.Rank(), disp+opened); err != nil {
			return err
		}
	}
	return nil
}

// SetBarging sets how often a reader tries before it waits in line, and after how many
// tenures without a reader writers keep the lock.
func (t *Table) SetBarging(tries, quietAfter int) { t.tries, t.quietAfter = tries, quietAfter }
