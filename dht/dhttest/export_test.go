package dhttest

import "github.com/rmalock/rmalock/rma/sim"

// OpenedOnce searches a plan with the table opened once, and opened for each execution.
func OpenedOnce(p Plan, s func() sim.Scheduler) (once, anew Result, err error) {
	if once, err = Run(p, s()); err != nil {
		return
	}
	p.reopen = true
	anew, err = Run(p, s())
	return
}
