package dslr_test

import (
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/topo"
)

// TestSearch: all schedules of a few ranks, and random ones of many, in which the clock
// advances, ranks die, and counters are reset.
func TestSearch(t *testing.T) {
	type params = map[string]string
	small := func(more params) params {
		p := params{"LEASE": "1us", "BACKOFF": "0"}
		for k, v := range more {
			p[k] = v
		}
		return p
	}
	for _, k := range []struct {
		name   string
		plan   check.Plan
		params params
		long   bool // for test-all
	}{
		{"writers, time", check.Plan{Ranks: 2, Acquires: 2, Writers: 2, Ticks: 3, MaxDelay: 1}, nil, false},
		{"mixed, time", check.Plan{Ranks: 2, Acquires: 2, Writers: 1, Ticks: 3, MaxDelay: 1}, nil, false},
		{"by CAS, time, any delay", check.Plan{Ranks: 2, Acquires: 2, Writers: 1, Ticks: 3}, params{"RELEASE": "cas"}, false},
		{"a death", check.Plan{Ranks: 2, Acquires: 1, Writers: 2, Ticks: 4, Crashes: 1, MaxDelay: 1}, nil, false},
		{"a death, one ticket", check.Plan{Ranks: 2, Acquires: 1, Writers: 1, Ticks: 4, Crashes: 1, MaxDelay: 1}, params{"COUNTMAX": "1"}, false},
		{"resets, exact", check.Plan{Ranks: 2, Acquires: 2, Writers: 1, Ticks: 1, MaxDelay: 1}, params{"COUNTMAX": "1", "RESET": "exact"}, false},
		{"resets", check.Plan{Ranks: 2, Acquires: 2, Writers: 2, Ticks: 3, MaxDelay: 1}, params{"COUNTMAX": "2"}, true},
		{"three ranks", check.Plan{Ranks: 3, Acquires: 1, Writers: 2, Ticks: 2, MaxDelay: 1, Stands: true, Alike: true}, params{"COUNTMAX": "2"}, false},
		{"three ranks, two acquires", check.Plan{Ranks: 3, Acquires: 2, Writers: 2, Ticks: 1, MaxDelay: 1, Stands: true, Alike: true}, params{"COUNTMAX": "3"}, false},
		{"three ranks, a death", check.Plan{Ranks: 3, Acquires: 1, Writers: 2, Ticks: 2, Crashes: 1, MaxDelay: 1, Stands: true, Alike: true}, params{"COUNTMAX": "2"}, false},
		// Two ranks reset in place of the third: they do not stop each other, nor a holder of later.
		{"three ranks, one ticket", check.Plan{Ranks: 3, Acquires: 1, Writers: 3, Ticks: 2, MaxDelay: 1, Stands: true, Alike: true, MaxSteps: 500}, params{"COUNTMAX": "1"}, false},
		{"a death, two acquires", check.Plan{Ranks: 2, Acquires: 2, Writers: 2, Ticks: 4, Crashes: 1, MaxDelay: 1, Stands: true}, nil, true},
	} {
		t.Run(k.name, func(t *testing.T) {
			if k.long && locktest.Quick() {
				t.Skip("takes a minute; see test-all")
			}
			t.Parallel()
			info, err := lock.Lookup("dslr")
			if err != nil {
				t.Fatal(err)
			}
			k.plan.Info, k.plan.Params, k.plan.MemoryNodes = info, small(k.params), 1
			r, err := check.Run(k.plan, sim.Exhaustive(sim.Unbounded))
			if err != nil {
				t.Fatal(err)
			}
			if r.Failure != nil || !r.Whole {
				t.Fatalf("%v; rmalock check --replay %s", r.Failure, r.Failure.Schedule)
			}
			t.Logf("%d states", r.States)
		})
	}
}

// TestSearchRandom: random schedules of many ranks, with resets all the time and deaths.
func TestSearchRandom(t *testing.T) {
	eight, err := topo.Parse("node:8 core:8")
	if err != nil {
		t.Fatal(err)
	}
	executions := int64(3000)
	if locktest.Quick() {
		executions = 300
	}
	for name, plan := range map[string]check.Plan{
		"time":   {Ranks: 4, Acquires: 3, Writers: check.Mixed, Ticks: 60, MaxDelay: 1, Guard: true},
		"deaths": {Ranks: 6, Acquires: 3, Writers: check.Mixed, Ticks: 200, Crashes: 2, MaxDelay: 1, Guard: true},
		"fair":   {Ranks: 5, Acquires: 3, Writers: check.Mixed, Ticks: 1, TickNs: 1, Guard: true},
		"many":   {Ranks: 64, Acquires: 2, Writers: check.Mixed, Ticks: 400, MaxDelay: 1, Topology: eight},
		"tries":  {Ranks: 3, Acquires: 4, Writers: check.Mixed, Ticks: 60, MaxDelay: 1, Tries: true},
	} {
		n := executions
		if plan.Ranks == 64 {
			n /= 150
		}
		for _, explore := range []struct {
			name string
			s    sim.Scheduler
		}{{"random", sim.Random(1, 0, n)}, {"pct", sim.PCT(1, 3, 0, n)}} {
			t.Run(name+"/"+explore.name, func(t *testing.T) {
				t.Parallel()
				info, err := lock.Lookup("dslr")
				if err != nil {
					t.Fatal(err)
				}
				plan := plan
				plan.Info, plan.MemoryNodes = info, 1
				plan.Params = map[string]string{"LEASE": "1us", "BACKOFF": "0", "COUNTMAX": "4"}
				switch name {
				case "fair": // its promise bounds how often a rank is passed
					plan.Params = nil
				case "many":
					plan.Params["COUNTMAX"] = "8"
				}
				r, err := check.Run(plan, explore.s)
				if err != nil {
					t.Fatal(err)
				}
				if r.Failure != nil {
					t.Fatalf("%v; rmalock check --replay %s", r.Failure, r.Failure.Schedule)
				}
				t.Logf("%d executions, a rank that waited was passed by up to %d entries", r.Stats.Executions, r.Most)
			})
		}
	}
}
