package check

import (
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma/sim"
)

// OpenedOnce searches a plan with the lock opened once, and opened anew for each execution.
func OpenedOnce(p Plan, s func() sim.Scheduler) (once, anew Result, err error) {
	if once, err = Run(p, s()); err != nil {
		return
	}
	p.reopen = true
	anew, err = Run(p, s())
	return
}

// MutantOpenedOnce is the same for a mutant, in some plans.
func MutantOpenedOnce(m Mutant, info lock.Info, s func() sim.Scheduler) (once, anew []Result, err error) {
	for k := range uint64(4) {
		p := (&Effort{}).candidate(info, 2, k)
		p.Disturb = inject(&Verdict{Mutant: m, effort: &Effort{}}, nil)
		a, b, err := OpenedOnce(p, s)
		if err != nil {
			return nil, nil, err
		}
		once, anew = append(once, a), append(anew, b)
	}
	return once, anew, nil
}
