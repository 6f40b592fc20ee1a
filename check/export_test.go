package check

import "github.com/rmalock/rmalock/rma/sim"

// OpenedOnce searches a plan with the lock opened once, and opened anew for each execution.
func OpenedOnce(p Plan, s func() sim.Scheduler) (once, anew Result, err error) {
	if once, err = Run(p, s()); err != nil {
		return
	}
	p.reopen = true
	anew, err = Run(p, s())
	return
}

// DHTOpenedOnce is the same for a hashtable.
func DHTOpenedOnce(p DHTPlan, s func() sim.Scheduler) (once, anew Result, err error) {
	if once, err = RunDHT(p, s()); err != nil {
		return
	}
	p.reopen = true
	anew, err = RunDHT(p, s())
	return
}
