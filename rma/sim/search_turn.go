package sim

import "github.com/rmalock/rmalock/rma"

// A rank that waits with a limit, looks around when the limit has passed, and waits again learns
// much that decides nothing: when it has looked, and what it has seen before. With Comm.Turn it
// says what it still knows, and with Search.Ages what it knows of the time.

// inLoop is a rank's part in it.
type inLoop struct {
	from        uint64 // history at TurnFirst; 0: not in a loop, or nothing can be forgotten
	fromIssued  uint64
	isWait      bool
	since, read int64 // moments that the rank knows, plus 1; 0 for none
	most        int64
}

func (e *search) turn(r *rank, t Turn) {
	if r.lagging {
		return
	}
	r.record(action{turn: &t})
	e.takeTurn(r, &t)
}

func (e *search) takeTurn(r *rank, t *Turn) {
	switch {
	case t.Kind == TurnFirst:
		r.inLoop = inLoop{isWait: t.Ends}
		if r.idle() {
			r.from, r.fromIssued = r.history|1, r.issued
		}
		return
	case t.Kind == TurnRead:
		r.read, r.most = e.clock+1, t.Most
		return
	case r.from != 0 && r.idle():
		r.forget(t.State)
	}
	r.since, r.read, r.most = 0, 0, t.Most
	if t.Since > 0 {
		r.since = t.Since + 1
	}
}

// idle reports whether a rank has no operation under way, whose result a number of its own has.
func (r *rank) idle() bool { return len(r.pending)+len(r.results) == 0 }

// forget makes a rank's history what it was when the loop began, and a number.
func (r *rank) forget(state uint64) {
	r.history, r.issued = learnt(1<<44^r.from, int64(state)), r.fromIssued+1
	r.before, r.beforeIssued, r.beforeOpen = r.history, r.issued, true
}

// endLoop forgets what a rank has learnt in a loop that ends as a condition holds. It reports false
// if the rank is in no such loop.
func (e *search) endLoop(r *rank) bool {
	if r.state != awaiting || r.from == 0 || !r.isWait || !r.idle() {
		return false
	}
	r.forget(uint64(e.observe(r)) + 1<<45)
	if r.missed { // which the end of the wait takes away again
		r.history += missedMark
	}
	r.inLoop = inLoop{}
	return true
}

// age is how long ago a moment was.
func (r *rank) age(now, moment int64) uint64 {
	if moment == 0 {
		return 0
	}
	return uint64(min(now-moment+1, r.most)) + 1
}

// hashMoments is the hash of what a rank knows of the time, with Search.Ages.
func (e *search) hashMoments(r *rank) (h uint64) {
	if until, ok := r.limit(); ok {
		h = learnt(1<<52, max(0, until-e.clock))
	}
	if r.since|r.read != 0 {
		h += learnt(learnt(1<<51, int64(r.age(e.clock, r.since))), int64(r.age(e.clock, r.read)))
	}
	return h
}

// limit is until when a rank waits.
func (r *rank) limit() (until int64, ok bool) {
	if r.state != sleeping && r.state != awaiting || r.wait.Until == rma.Forever {
		return 0, false
	}
	return r.wait.Until, true
}

// matters reports whether it makes a difference to a rank, with Search.Ages, that the clock advances.
func (e *search) matters() bool {
	for _, r := range e.w.ranks {
		if r.state == dead {
			continue
		}
		if until, ok := r.limit(); ok && until > e.clock || r.state == pausing {
			return true
		}
		for _, m := range [...]int64{r.since, r.read} {
			if m > 0 && e.clock-m+1 < r.most {
				return true
			}
		}
	}
	return false
}
