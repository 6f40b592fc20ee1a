package sim_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/rma/sim"
)

// conform runs the suite.
func conform(t *testing.T, launch rmatest.Launch) {
	for _, c := range rmatest.Checks() {
		t.Run(c.Name, func(t *testing.T) {
			if err := launch(c.Run); err != nil {
				t.Error(err)
			}
		})
	}
}

// launch runs the body of a suite once, as a job of a search whose schedule the
// scheduler decides from the first operation on.
func launch(s sim.Search, scheduler func() sim.Scheduler) rmatest.Launch {
	s.MaxSteps, s.Ticks, s.TickNs = 1<<30, 1<<30, 50_000
	return func(body func(rma.Comm) error) error {
		_, f := s.Run(scheduler(), func(c rma.Comm) error {
			job, _ := sim.Of(c)
			if err := job.Begin(); err != nil {
				return err
			}
			if err := body(c); err != nil {
				return err
			}
			return job.End()
		})
		if f != nil {
			return f.Err
		}
		return nil
	}
}

var shapes = [][2]int{{1, 1}, {1, 2}, {1, 4}, {2, 2}, {3, 1}, {3, 2}}

// TestConformance: the suite that every backend passes, under random schedules.
func TestConformance(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1
	}
	for _, shape := range shapes {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%dx%d/random%d", shape[0], shape[1], seed), func(t *testing.T) {
				conform(t, launch(sim.Search{Node: layout(shape[0], shape[1])}, func() sim.Scheduler { return sim.Random(seed, 0, 1) }))
			})
		}
		t.Run(fmt.Sprintf("%dx%d/pct", shape[0], shape[1]), func(t *testing.T) {
			conform(t, launch(sim.Search{Node: layout(shape[0], shape[1])}, func() sim.Scheduler { return sim.PCT(7, 20, 0, 1) }))
		})
	}
}

// TestConformanceOutside: the same outside Begin and End, where ranks take turns.
func TestConformanceOutside(t *testing.T) {
	for _, shape := range shapes {
		conform(t, func(body func(rma.Comm) error) error {
			_, f := sim.Search{Node: layout(shape[0], shape[1])}.Run(sim.Random(1, 0, 1), body)
			if f != nil {
				return f.Err
			}
			return nil
		})
	}
}
