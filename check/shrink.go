package check

import "github.com/rmalock/rmalock/rma/sim"

// Shrink looks for a schedule that is shorter to tell, in which the same error comes
// up: one with fewer steps at which the rank does not simply go on.
func Shrink(p Plan, f *sim.Failure, tries int) (*sim.Failure, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	body := p.body(p.newMonitor())
	return p.search().Shrink(f, tries, body)
}
