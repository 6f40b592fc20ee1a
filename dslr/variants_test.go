package dslr_test

import (
	"strings"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/topo"
)

// variants are the ways of using the lock, with resets all the time.
func variants() []lock.Info {
	return []lock.Info{
		variant("by add", dslr.Config{CountMax: 3}, nil),
		variant("by CAS", dslr.Config{CountMax: 2, Release: dslr.ReleaseByCAS}, nil),
		variant("exact", dslr.Config{CountMax: 2, Reset: dslr.ResetExact}, nil),
		variant("upgrades", dslr.Config{CountMax: 4, Updates: true}, upgrades),
		variant("slots", dslr.Config{CountMax: 4, MaxSlots: 2}, slots),
	}
}

// TestVariants: each way of using the lock under random schedules with time, deaths and tries.
func TestVariants(t *testing.T) {
	executions := int64(3000)
	if locktest.Quick() {
		executions = 200
	}
	for _, info := range variants() {
		for name, p := range map[string]check.Plan{
			"time":   {Ranks: 3, Acquires: 3, Ticks: 20},
			"deaths": {Ranks: 4, Acquires: 3, Ticks: 60, Crashes: 2},
			"tries":  {Ranks: 3, Acquires: 4, Ticks: 20, Crashes: 1, Tries: true},
		} {
			p.Info, p.Writers, p.MaxDelay, p.MemoryNodes, p.Guard = info, check.Mixed, 1, 1, true
			for _, explore := range []struct {
				name string
				s    sim.Scheduler
			}{{"random", sim.Random(1, 0, executions)}, {"pct", sim.PCT(1, 3, 0, executions)}} {
				t.Run(info.Name+"/"+name+"/"+explore.name, func(t *testing.T) {
					t.Parallel()
					passes(t, p, explore.s)
				})
			}
		}
	}
}

// TestForcedResetLoses: the designated rank takes another one for dead at the moment at which that
// one releases, and has to reset the word all the same.
func TestForcedResetLoses(t *testing.T) {
	nodes, err := topo.Parse("node:3")
	if err != nil {
		t.Fatal(err)
	}
	p := check.Plan{
		Info:  variant("exact, by CAS", dslr.Config{CountMax: 2, Reset: dslr.ResetExact, Release: dslr.ReleaseByCAS}, nil),
		Ranks: 3, Acquires: 2, Writers: check.Mixed, Seed: 21, Tries: true, Ticks: 12, MaxDelay: 1, MemoryNodes: 1, Topology: nodes,
	}
	_, f, err := check.Replay(p, "18a4a4aa1a3")
	if err != nil || f != nil {
		t.Errorf("%v, %v", f, err)
	}
}

// passes checks that a plan has no failure, and else reports it.
func passes(t *testing.T, p check.Plan, s sim.Scheduler) check.Result {
	t.Helper()
	r, err := check.Run(p, s)
	if err != nil {
		t.Fatal(err)
	}
	if r.Failure != nil {
		var b strings.Builder
		if _, err := check.Report(&b, p, r.Failure); err != nil {
			t.Error(err)
		}
		t.Fatal(b.String())
	}
	return r
}
