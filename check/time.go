package check

import (
	"fmt"

	"github.com/rmalock/rmalock/rma/sim"
)

// RunTime checks a plan in virtual time, on a network on which everything takes
// another time at every seed from the plan's on. Faults are none of its business. A
// failure comes up again in the first execution with its seed, and has no schedule.
func RunTime(p Plan, executions int64) (Result, error) {
	if err := p.validate(); err != nil {
		return Result{}, err
	}
	var r Result
	h := p.newMonitor()
	for n := range executions {
		e, err := sim.Timed{Node: p.nodes(), MemoryNodes: p.MemoryNodes, Model: sim.Uneven(p.Seed)}.Run(p.body(h))
		r.Stats.Executions++
		r.Stats.Steps += e.Events
		r.Stats.Longest = max(r.Stats.Longest, int(e.Events))
		r.Most = h.most
		if err != nil {
			r.Failure = &sim.Failure{Err: fmt.Errorf("seed %d: %w", p.Seed, err), Steps: int(e.Events), Execution: n + 1}
			return r, nil
		}
		p.Seed++
	}
	return r, nil
}
