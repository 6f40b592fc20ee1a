package shiftlock_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

type params = map[string]string

// with is a plan for the lock with parameters, on a memory node. It has no leases and does not
// try before it queues, unless the parameters say so.
func with(plan check.Plan, more ...params) check.Plan {
	info, err := lock.Lookup("shiftlock")
	if err != nil {
		panic(err)
	}
	plan.Info, plan.MemoryNodes, plan.Params = info, 1, params{"LEASE": "off", "TRIES": "0"}
	for _, p := range more {
		maps.Copy(plan.Params, p)
	}
	return plan
}

// set is the lock with parameters.
func set(p params) lock.Info {
	info, err := lock.Lookup("shiftlock")
	if err != nil {
		panic(err)
	}
	info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		return info.OpenWith(c, lock.Setting{Locks: n, Home: home, Params: p})
	}
	out := info
	out.OpenWith, out.Params = nil, nil
	return out
}

// How long a search takes, from those of every test to those of check-deep.
const (
	short = iota
	long
	deep
)

func skip(t *testing.T, size int) {
	t.Helper()
	switch {
	case size >= long && locktest.Quick():
		t.Skip("takes seconds; see test-all")
	case size >= deep && !locktest.Deep():
		t.Skip("takes a minute; see check-deep")
	}
	t.Parallel()
}

// TestSearch: all schedules of a few ranks, without time: exclusion, the bound K on the writers
// that pass a reader, the order of writers, costs, and that no rank waits for ever.
func TestSearch(t *testing.T) {
	for _, k := range []struct {
		ranks, acquires, writers int
		k                        string
		preemptions              int
		size                     int
	}{
		{2, 2, 2, "1", sim.Unbounded, short},
		{2, 3, 1, "1", sim.Unbounded, short},
		{3, 1, 2, "1", sim.Unbounded, short},
		{3, 1, 1, "16", sim.Unbounded, short},
		{3, 2, 2, "1", 3, long},
		{3, 2, 2, "2", 3, long},
		{4, 1, 2, "1", sim.Unbounded, long},
		{4, 1, 2, "2", sim.Unbounded, long},
		{4, 2, 2, "1", 2, long},
		{4, 2, 2, "2", 2, long},
		{5, 1, 3, "1", 2, long},
		{5, 1, 3, "2", 2, long},
		{3, 2, 2, "1", sim.Unbounded, deep},
		{3, 2, 2, "16", sim.Unbounded, deep},
		{3, 2, 3, "2", sim.Unbounded, deep},
		{3, 2, 3, "16", sim.Unbounded, deep},
		{4, 2, 2, "1", 3, deep},
		{4, 2, 2, "16", 3, deep},
		{5, 2, 3, "2", 2, deep},
	} {
		t.Run(fmt.Sprintf("%d writers of %d x %d, K %s, %d preemptions", k.writers, k.ranks, k.acquires, k.k, k.preemptions), func(t *testing.T) {
			skip(t, k.size)
			plan := check.Plan{Ranks: k.ranks, Acquires: k.acquires, Writers: k.writers}
			locktest.RunWhole(t, with(plan, params{"K": k.k}), k.preemptions)
		})
	}
}

// TestSearchTries: all schedules, and drawn ones, of ranks that try, give up, or try before they
// queue.
func TestSearchTries(t *testing.T) {
	t.Run("give up", func(t *testing.T) {
		skip(t, short)
		locktest.RunWhole(t, with(check.Plan{Ranks: 2, Acquires: 3, Writers: check.Mixed, Tries: true, Guard: true}), sim.Unbounded)
	})
	t.Run("try first", func(t *testing.T) {
		skip(t, short)
		locktest.RunWhole(t, with(check.Plan{Ranks: 2, Acquires: 2, Writers: 1}, params{"TRIES": "2", "K": "1"}), sim.Unbounded)
	})
}

// leased is a lock whose lease is one tick.
var leased = params{"LEASE": "1us"}

// TestSearchTime: all schedules of two ranks in which the clock advances and one dies.
func TestSearchTime(t *testing.T) {
	cas := params{"RELEASE": "cas"}
	for _, k := range []struct {
		name     string
		acquires int
		writers  int
		ticks    int
		crashes  int
		more     params
		size     int
	}{
		{"writers", 1, 2, 4, 0, nil, short},
		{"mixed", 1, 1, 5, 0, nil, short},
		{"mixed, by CAS, any delay", 1, 1, 5, 0, cas, long},
		{"writers, by CAS, any delay", 1, 2, 5, 0, cas, long},
		{"mixed, a death", 1, 1, 5, 1, nil, long},
		{"writers, a death", 1, 2, 5, 1, nil, long},
		{"mixed, a death, 8 ticks", 1, 1, 8, 1, nil, deep},
		{"writers, a death, 8 ticks", 1, 2, 8, 1, nil, deep},
		{"mixed, 2 acquires", 2, 1, 5, 0, nil, deep},
		{"writers, 2 acquires", 2, 2, 5, 0, nil, deep},
	} {
		t.Run(k.name, func(t *testing.T) {
			skip(t, k.size)
			plan := check.Plan{Ranks: 2, Acquires: k.acquires, Writers: k.writers, Ticks: k.ticks, Crashes: k.crashes}
			if k.more == nil {
				plan.MaxDelay = 1
			}
			locktest.RunWhole(t, with(plan, leased, k.more), sim.Unbounded)
		})
	}
}

// TestSearchRandom: drawn schedules of up to 64 ranks, without time and with it, with deaths,
// successors of the dead, and ranks that try.
func TestSearchRandom(t *testing.T) {
	for _, k := range []struct {
		name string
		plan check.Plan
		more params
		n    int64
	}{
		{"K 1", check.Plan{Ranks: 5, Acquires: 3, Writers: check.Mixed, Guard: true}, params{"K": "1"}, 3000},
		{"K 2", check.Plan{Ranks: 16, Acquires: 3, Writers: check.Mixed, Guard: true}, params{"K": "2"}, 600},
		{"64 ranks", check.Plan{Ranks: 64, Acquires: 2, Writers: check.Mixed}, nil, 60},
		{"time", check.Plan{Ranks: 4, Acquires: 3, Writers: check.Mixed, Ticks: 60, MaxDelay: 1, Guard: true}, leased, 3000},
		{"time, by CAS", check.Plan{Ranks: 4, Acquires: 3, Writers: check.Mixed, Ticks: 60, Guard: true}, params{"LEASE": "1us", "RELEASE": "cas", "K": "2"}, 3000},
		{"deaths", check.Plan{Ranks: 6, Acquires: 3, Writers: check.Mixed, Ticks: 200, Crashes: 2, MaxDelay: 1, Guard: true}, params{"LEASE": "1us", "K": "2"}, 3000},
		{"successors", check.Plan{Ranks: 4, Acquires: 3, Writers: check.Mixed, Ticks: 200, Crashes: 3, Rejoins: 3, MaxDelay: 1, Guard: true}, params{"LEASE": "1us", "K": "1"}, 3000},
		{"tries", check.Plan{Ranks: 3, Acquires: 4, Writers: check.Mixed, Ticks: 60, MaxDelay: 1, Tries: true}, params{"LEASE": "1us", "TRIES": "2"}, 3000},
		{"slow tries", check.Plan{Ranks: 4, Acquires: 3, Writers: check.Mixed, Seed: 1, Ticks: 20, MaxDelay: 1, Tries: true}, params{"LEASE": "1us", "TRIES": "2"}, 1500},
	} {
		for _, explore := range []struct {
			name string
			s    sim.Scheduler
		}{{"random", sim.Random(1, 0, locktest.Draws(k.n))}, {"pct", sim.PCT(1, 3, 0, locktest.Draws(k.n))}} {
			t.Run(k.name+"/"+explore.name, func(t *testing.T) {
				t.Parallel()
				k.plan.MaxSteps = 1_000_000
				r := locktest.RunPlan(t, with(k.plan, k.more), explore.s)
				t.Logf("%d executions, %d out of ticks, %d entries passed a rank that waited", r.Stats.Executions, r.Stats.OutOfTicks, r.Most)
			})
		}
	}
}

// TestVariants: the battery of all locks, without leases, and that of locks that recover.
func TestVariants(t *testing.T) {
	t.Run("no leases", func(t *testing.T) {
		locktest.RunVariant(t, set(params{"LEASE": "off", "TRIES": "0", "K": "2"}))
	})
	t.Run("recovery", func(t *testing.T) {
		if err := locktest.CheckRecovery(set(params{"LEASE": "1us", "TRIES": "0", "K": "1", "RELEASE": "cas"}), check.Short, sim.DefaultTickNs); err != nil {
			t.Error(err)
		}
	})
}
