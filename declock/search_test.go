package declock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/topo"

	_ "github.com/rmalock/rmalock/declock"
)

type params = map[string]string

// search checks a plan of the flat lock, whose ranks have one slot each.
func search(t *testing.T, plan check.Plan, p params, s sim.Scheduler) check.Result {
	t.Helper()
	info, err := lock.Lookup("declock")
	if err != nil {
		t.Fatal(err)
	}
	plan.Info, plan.MemoryNodes, plan.Params = info, 1, params{"HELD": "1", "LEASE": "off"}
	for k, v := range p {
		plan.Params[k] = v
	}
	r, err := check.Run(plan, s)
	if err != nil {
		t.Fatal(err)
	}
	if r.Failure != nil {
		events, _, _ := check.Replay(plan, r.Failure.Schedule)
		var b strings.Builder
		_ = sim.WriteTrace(&b, events)
		t.Log(b.String())
		t.Fatalf("%v; schedule %s", r.Failure, r.Failure.Schedule)
	}
	return r
}

// TestSearchQueue: all schedules of the queue, with capacities from less than the ranks on, and
// each number of writers.
func TestSearchQueue(t *testing.T) {
	wraps := params{"CAPACITY": "2", "VERSION": "2", "EPOCH": "2"}
	for _, k := range []struct {
		ranks, acquires, bound int
		p                      params
		long, deep             bool // for test-all, for check-deep
	}{
		{2, 2, sim.Unbounded, params{"CAPACITY": "2"}, false, false},
		{2, 2, sim.Unbounded, params{"CAPACITY": "1", "VERSION": "2", "EPOCH": "2"}, false, false},
		{3, 1, sim.Unbounded, params{"CAPACITY": "2"}, true, false},
		{3, 2, 2, wraps, true, false},
		{3, 2, sim.Unbounded, params{"CAPACITY": "2"}, true, true},
		{3, 2, sim.Unbounded, wraps, true, true},
		{3, 2, sim.Unbounded, params{"CAPACITY": "4"}, true, true},
		{4, 2, 2, params{"CAPACITY": "4"}, true, true},
	} {
		for writers := 0; writers <= k.ranks; writers++ {
			t.Run(fmt.Sprintf("%dx%d %d writers %v", k.ranks, k.acquires, writers, k.p), func(t *testing.T) {
				if locktest.Quick() && k.long || k.deep && !locktest.Deep() {
					t.Skip("takes minutes; see test-all and check-deep")
				}
				x := sim.Exhaustive(k.bound)
				if k.deep { // one at a time: up to 10 million states
					x.Limit = 15_000_000
				} else {
					t.Parallel()
				}
				plan := check.Plan{Ranks: k.ranks, Acquires: k.acquires, Writers: writers}
				r := search(t, plan, k.p, x)
				if !r.Whole && k.bound == sim.Unbounded && !k.deep {
					t.Error("the search is not whole")
				}
				t.Logf("%d states, whole: %v", r.States, r.Whole)
			})
		}
	}
}

// TestSearchRandom: random schedules of many ranks.
func TestSearchRandom(t *testing.T) {
	executions := int64(3000)
	if locktest.Quick() {
		executions = 200
	}
	lease := params{"LEASE": "1us"}
	for _, k := range []struct {
		name string
		plan check.Plan
		p    params
	}{
		{"plain", check.Plan{Ranks: 4, Acquires: 3, Writers: check.Mixed, Guard: true}, params{"CAPACITY": "4"}},
		{"tries", check.Plan{Ranks: 4, Acquires: 4, Writers: check.Mixed, Tries: true}, params{"CAPACITY": "4"}},
		{"overflow", check.Plan{Ranks: 5, Acquires: 4, Writers: check.Mixed, Guard: true}, params{"CAPACITY": "2", "VERSION": "2", "EPOCH": "2"}},
		{"time", check.Plan{Ranks: 4, Acquires: 3, Writers: check.Mixed, Ticks: 60, MaxDelay: 1, Guard: true}, lease},
		{"deaths", check.Plan{Ranks: 5, Acquires: 3, Writers: check.Mixed, Ticks: 200, Crashes: 2, MaxDelay: 1, Guard: true}, lease},
		{"deaths, tries, overflow", check.Plan{Ranks: 4, Acquires: 4, Writers: check.Mixed, Ticks: 200, Crashes: 1, MaxDelay: 1, Tries: true},
			params{"LEASE": "1us", "CAPACITY": "2", "VERSION": "2", "EPOCH": "2"}},
	} {
		for _, explore := range []struct {
			name string
			s    sim.Scheduler
		}{{"random", sim.Random(1, 0, executions)}, {"pct", sim.PCT(1, 3, 0, executions)}} {
			t.Run(k.name+"/"+explore.name, func(t *testing.T) {
				r := search(t, k.plan, k.p, explore.s)
				t.Logf("%d executions, %d out of ticks", r.Stats.Executions, r.Stats.OutOfTicks)
			})
		}
	}
}

// TestSearchHierarchy: the local locks of two nodes, under each policy.
func TestSearchHierarchy(t *testing.T) {
	executions := int64(1500)
	if locktest.Quick() {
		executions = 100
	}
	timed := check.Plan{Ranks: 4, Acquires: 3, Writers: check.Mixed, Ticks: 80, Guard: true}
	leases := timed
	leases.MaxDelay = 1
	tries := timed
	tries.Tries, tries.Guard = true, false
	for _, k := range []struct {
		name string
		plan check.Plan
		p    params
	}{
		{"task-fair", timed, params{"POLICY": "ts-tf", "STAMP": "3"}},
		{"phase-fair", timed, params{"POLICY": "ts-pf", "STAMP": "3"}},
		{"phase-fair, tries", tries, params{"POLICY": "ts-pf", "STAMP": "3", "CAPACITY": "1", "VERSION": "2", "EPOCH": "2"}},
		{"task-fair, leases", leases, params{"POLICY": "ts-tf", "VERSION": "2", "EPOCH": "2", "LEASE": "1us"}},
		{"remote", timed, params{"POLICY": "remote"}},
		{"local", timed, params{"POLICY": "local"}},
		{"local, tries, no clock", check.Plan{Ranks: 4, Acquires: 3, Writers: check.Mixed, Tries: true}, params{"POLICY": "local"}},
		{"phase-fair, slow ranks", check.Plan{Ranks: 2, Acquires: 4, Writers: check.Mixed, Seed: 1, Ticks: 100, MaxDelay: 1},
			params{"POLICY": "ts-pf", "LEASE": "1us", "CAPACITY": "4"}},
		{"bound", timed, params{"POLICY": "bound", "BOUND": "1"}},
	} {
		k.plan.Topology = machine(t, "node:2 core:2")
		for _, explore := range []struct {
			name string
			s    sim.Scheduler
		}{{"random", sim.Random(1, 0, executions)}, {"pct", sim.PCT(1, 3, 0, executions)}} {
			t.Run(k.name+"/"+explore.name, func(t *testing.T) { search(t, k.plan, k.p, explore.s) })
		}
	}
	for _, k := range []struct {
		name  string
		plan  check.Plan
		on    string
		p     params
		bound int
	}{
		{"one node", check.Plan{Ranks: 2, Acquires: 2, Writers: 1}, "node:1 core:2", params{"POLICY": "local"}, sim.Unbounded},
		{"one node, tries", check.Plan{Ranks: 2, Acquires: 2, Writers: 1, Tries: true}, "node:1 core:2", params{"POLICY": "local"}, sim.Unbounded},
		{"one node, a mode each", check.Plan{Ranks: 3, Acquires: 1, Writers: 1}, "node:1 core:3", params{"POLICY": "bound"}, 2},
		{"two nodes", check.Plan{Ranks: 4, Acquires: 1, Writers: 2}, "node:2 core:2", params{"POLICY": "local"}, 1},
		{"2 and 1", check.Plan{Ranks: 3, Acquires: 1, Writers: 2}, "node:2 core:2", params{"POLICY": "local", "CAPACITY": "2"}, sim.Unbounded},
	} {
		t.Run(k.name, func(t *testing.T) {
			if locktest.Quick() {
				t.Skip("takes a while; see test-all")
			}
			k.plan.Topology = machine(t, k.on)
			r := search(t, k.plan, k.p, sim.Exhaustive(k.bound))
			t.Logf("%d states", r.States)
		})
	}
}

// machine is a topology from its text.
func machine(t *testing.T, text string) *topo.Topology {
	m, err := topo.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSearchMany: 64 ranks on 8 nodes, with and without local locks.
func TestSearchMany(t *testing.T) {
	if locktest.Quick() {
		t.Skip("takes a while; see test-all")
	}
	executions := int64(60)
	if locktest.Deep() {
		executions = 300
	}
	for _, policy := range []string{"none", "ts-tf", "ts-pf"} {
		for _, explore := range []struct {
			name string
			s    sim.Scheduler
		}{{"random", sim.Random(1, 0, executions)}, {"pct", sim.PCT(1, 3, 0, executions)}} {
			t.Run(policy+"/"+explore.name, func(t *testing.T) {
				t.Parallel()
				plan := check.Plan{Ranks: 64, Acquires: 3, Writers: check.Mixed, Seed: 1, Guard: true, Ticks: 2000, MaxSteps: 5_000_000}
				plan.Topology = machine(t, "node:8 core:8")
				search(t, plan, params{"POLICY": policy}, explore.s)
			})
		}
	}
}

// TestSearchLoneDeaths: a rank dies at any step, while the other of its node lives and wants the
// lock, and so does a rank of another node.
func TestSearchLoneDeaths(t *testing.T) {
	executions := int64(800)
	if locktest.Quick() {
		executions = 100
	}
	small := params{"LEASE": "1us", "CAPACITY": "4", "VERSION": "2", "EPOCH": "2", "STAMP": "3"}
	for _, policy := range []string{"ts-tf", "ts-pf", "local"} {
		p := params{"POLICY": policy}
		for name, value := range small {
			p[name] = value
		}
		for _, k := range []struct {
			name string
			plan check.Plan
		}{
			{"2+1", check.Plan{Ranks: 3, Acquires: 2, Writers: check.Mixed, Ticks: 100, Crashes: 1, Guard: true}},
			{"2+2, tries", check.Plan{Ranks: 4, Acquires: 3, Writers: check.Mixed, Ticks: 150, Crashes: 2, Tries: true}},
			{"2+2, successors", check.Plan{Ranks: 4, Acquires: 2, Writers: check.Mixed, Ticks: 250, Crashes: 2, Rejoins: 2, Guard: true}},
		} {
			k.plan.Topology, k.plan.MaxDelay = machine(t, "node:2 core:2"), 1
			for _, explore := range []struct {
				name string
				s    sim.Scheduler
			}{{"random", sim.Random(1, 0, executions)}, {"pct", sim.PCT(1, 3, 0, executions)}} {
				t.Run(policy+"/"+k.name+"/"+explore.name, func(t *testing.T) {
					t.Parallel()
					k.plan.MaxSteps = 1_000_000
					r := search(t, k.plan, p, explore.s)
					if r.Stats.OutOfTicks > 0 {
						t.Errorf("in %d executions ranks wait for ever", r.Stats.OutOfTicks)
					}
				})
			}
		}
	}
}

// TestSearchDeath: one rank dies at any step. The others go on until the lock has recovered, for as
// many leases as it takes: ticks that must come are free, early ones count as preemptions do. With
// two acquires a rank comes back to a lock that was reset.
func TestSearchDeath(t *testing.T) {
	full := params{"CAPACITY": "1", "VERSION": "2", "EPOCH": "2"}
	wraps := params{"CAPACITY": "2", "VERSION": "2", "EPOCH": "2"} // resets by overflow and death, of an epoch that wraps
	local, taskFair, phaseFair := params{"POLICY": "local"}, params{"POLICY": "ts-tf", "STAMP": "3"}, params{"POLICY": "ts-pf", "STAMP": "3"}
	const oneNode, ofOne, twoAndOne = "node:1 core:2", "node:2 core:1", "node:2 core:2"
	for _, k := range []struct {
		ranks, acquires int
		on              string
		p               params
		writers         []int
		bound           int
		long, deep      bool // for test-all, for check-deep
	}{
		{3, 1, "", nil, []int{3, 2, 1, 0}, 0, false, false},
		{3, 1, twoAndOne, local, []int{3, 2, 1, 0}, 0, true, false},
		{3, 1, twoAndOne, taskFair, []int{3, 2, 1, 0}, 0, true, false},
		{3, 1, twoAndOne, phaseFair, []int{2, 1}, 0, true, false},
		{3, 1, "", wraps, []int{3, 2, 1, 0}, 0, false, false},
		{3, 1, "", wraps, []int{3, 2, 1, 0}, 1, true, false},
		{3, 1, "", nil, []int{3, 2, 1, 0}, 1, false, true},
		{3, 1, "", nil, []int{3, 2, 1, 0}, 2, false, true},
		{3, 1, "", wraps, []int{3, 2, 1, 0}, 2, false, true},
		{3, 1, twoAndOne, local, []int{3, 2, 1, 0}, 1, false, true},
		{3, 1, twoAndOne, taskFair, []int{2}, 1, false, true},

		{2, 2, "", nil, []int{2, 1, 0}, 1, false, false},
		{3, 2, "", nil, []int{3, 2, 1, 0}, 0, false, false},
		{2, 2, oneNode, local, []int{2, 1, 0}, 0, false, false},
		{2, 2, "", nil, []int{2, 1, 0}, 2, true, false},
		{2, 2, "", full, []int{2, 1}, 3, true, false}, // an operation may take its whole lease: more than two pass before its rank is dead
		{2, 2, oneNode, taskFair, []int{2, 1, 0}, 0, true, false},
		{2, 2, oneNode, local, []int{2, 1}, 1, true, false},
		{2, 2, ofOne, phaseFair, []int{2, 1, 0}, 0, true, false},
		{3, 2, twoAndOne, local, []int{2}, 0, true, false},
		{3, 2, twoAndOne, taskFair, []int{2}, 0, true, false},
		{2, 2, "", nil, []int{2, 1, 0}, 3, false, true},
		{3, 2, "", wraps, []int{3, 2, 1, 0}, 1, true, false},
		{3, 2, "", nil, []int{3, 2, 1, 0}, 1, false, true},
		{3, 2, "", wraps, []int{2}, 2, false, true},
		{3, 2, twoAndOne, local, []int{3, 1, 0}, 0, false, true},
		{3, 2, twoAndOne, taskFair, []int{3, 1, 0}, 0, false, true},
	} {
		for _, writers := range k.writers {
			t.Run(fmt.Sprintf("%dx%d %s %v, %d writers, %d preemptions", k.ranks, k.acquires, k.on, k.p, writers, k.bound), func(t *testing.T) {
				if locktest.Quick() && k.long || k.deep && !locktest.Deep() {
					t.Skip("takes minutes; see test-all and check-deep")
				}
				plan := check.Plan{Ranks: k.ranks, Acquires: k.acquires, Writers: writers, Ticks: 100, Crashes: 1, MaxDelay: 1}
				if k.on != "" {
					plan.Topology = machine(t, k.on)
				}
				p := params{"LEASE": "1us", "CAPACITY": "4"}
				for name, value := range k.p {
					p[name] = value
				}
				x := sim.Exhaustive(k.bound)
				x.TicksCount = true
				r := search(t, plan, p, x)
				if !r.Whole || r.Stats.OutOfTicks > 0 {
					t.Errorf("whole: %v; in %d executions ranks wait for ever", r.Whole, r.Stats.OutOfTicks)
				}
				t.Logf("%d states", r.States)
			})
		}
	}
}
