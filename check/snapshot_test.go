package check_test

import (
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/topo"
)

// TestOpenedOnce: a lock that is opened once for all executions is searched as one that
// is opened anew for each.
func TestOpenedOnce(t *testing.T) {
	machine, err := topo.Parse("node:2 core:2")
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range lock.All() {
		for what, k := range map[string]struct {
			plan  check.Plan
			sched func() sim.Scheduler
		}{
			"all":         {check.Plan{Ranks: 2, Acquires: 2, Writers: 1}, func() sim.Scheduler { return sim.Exhaustive(sim.Unbounded) }},
			"all, tries":  {check.Plan{Ranks: 2, Acquires: 2, Writers: 2, Tries: true}, func() sim.Scheduler { return sim.Exhaustive(sim.Unbounded) }},
			"bounded":     {check.Plan{Ranks: 3, Acquires: 1, Writers: 2, Guard: true}, func() sim.Scheduler { return sim.Exhaustive(1) }},
			"random":      {check.Plan{Ranks: 4, Acquires: 3, Writers: check.Mixed, Guard: true, Topology: machine}, func() sim.Scheduler { return sim.Random(1, 0, 100) }},
			"pct":         {check.Plan{Ranks: 4, Acquires: 3, Writers: check.Mixed, Tries: true, Topology: machine}, func() sim.Scheduler { return sim.PCT(1, 3, 0, 100) }},
			"with faults": {check.Plan{Ranks: 3, Acquires: 2, Writers: check.Mixed, Faults: []sim.Fault{{Rank: 1, Step: 5, For: 20}}}, func() sim.Scheduler { return sim.Random(1, 0, 100) }},
		} {
			t.Run(in.Name+"/"+what, func(t *testing.T) {
				k.plan.Info = in
				once, anew, err := check.OpenedOnce(k.plan, k.sched)
				if err != nil {
					t.Fatal(err)
				}
				same(t, once, anew)
			})
		}
	}
}

func same(t *testing.T, once, anew check.Result) {
	t.Helper()
	if once.Stats != anew.Stats || once.States != anew.States || once.Most != anew.Most {
		t.Errorf("opened once: %+v, %d states, %d entries; anew: %+v, %d states, %d entries", once.Stats, once.States, once.Most, anew.Stats, anew.States, anew.Most)
	}
	if (once.Failure == nil) != (anew.Failure == nil) || once.Failure != nil && once.Failure.Schedule != anew.Failure.Schedule {
		t.Errorf("opened once: %v; anew: %v", once.Failure, anew.Failure)
	}
}

// TestMutantsOpenedOnce is the same for locks with mistakes.
func TestMutantsOpenedOnce(t *testing.T) {
	for _, name := range []string{"dmcs", "fompi-rw-local", "rmamcs"} {
		t.Run(name, func(t *testing.T) {
			mutants, err := check.Mutants(false, lookup(t, name))
			if err != nil {
				t.Fatal(err)
			}
			for i, m := range mutants {
				if i%3 > 0 {
					continue
				}
				once, anew, err := check.MutantOpenedOnce(m, lookup(t, name), func() sim.Scheduler {
					x := sim.Exhaustive(sim.Unbounded)
					x.Limit = 40
					return x
				})
				if err != nil {
					t.Fatal(err)
				}
				for k := range once {
					same(t, once[k], anew[k])
				}
			}
		})
	}
}
