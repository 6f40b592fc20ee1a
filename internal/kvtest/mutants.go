package kvtest

import (
	"errors"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma/sim"
)

// A Use is a Plan in which mutants are hunted.
type Use struct {
	Plan Plan
	Name string
	By   func(executions int64) sim.Scheduler
	Part int64 // of the budget, in hundredths; 0 means all
	// Prompt says that nobody waits for the clock: leases are longer than all ticks. An execution in
	// which a client does so has failed.
	Prompt bool
}

// ErrStill is what is wrong with a Use that is Prompt, where the clients wait for the clock.
var ErrStill = errors.New("the clients stand still")

// Bounded is all schedules with up to a number of preemptions, as a Use.By.
func Bounded(bound int) func(executions int64) sim.Scheduler {
	return func(executions int64) sim.Scheduler {
		x := sim.Exhaustive(bound)
		x.Limit = executions
		return x
	}
}

// Random and PCT are drawn schedules, as a Use.By.
func Random(executions int64) sim.Scheduler { return sim.Random(1, 0, executions) }

// PCT is Random with few preemptions.
func PCT(executions int64) sim.Scheduler { return sim.PCT(1, 3, 0, executions) }

// Mutants hunts the mutants of a Map by some Uses: one in Effort.Every, with RMALOCK_DEEP each of
// them. It fails if one survives that is not equivalent, or one is caught that is.
func Mutants(t *testing.T, name string, e check.Effort, equivalent []check.Equivalent, uses ...Use) {
	if locktest.Quick() && !locktest.Deep() {
		t.Skip("takes seconds")
	}
	var all []*check.Use
	for _, u := range uses {
		n := len(u.Plan.Search.Node)
		all = append(all, &check.Use{
			Name: u.Name, Ranks: n, By: u.By, Part: u.Part,
			Run: func(d check.Disturb, s sim.Scheduler) (sim.Stats, *sim.Failure) {
				p := u.Plan
				p.Disturb, p.Search.MaxSteps = d, 5000*n
				r := p.Run(s)
				if r.Failure == nil && u.Prompt && r.Stats.OutOfTicks > 0 {
					r.Failure = &sim.Failure{Err: ErrStill}
				}
				return r.Stats, r.Failure
			},
		})
	}
	locktest.Survey(t, e, func(e check.Effort) (*check.Survey, error) { return check.SurveyUses(e, equivalent, name, all...) })
}
