package alock_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/alock"
	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/check"
	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/topo"
)

// with is ALock with a Config, whose number of locks and home a table's opener gives if home is
// negative.
func with(cfg alock.Config, at int) lock.Info {
	name := "alock"
	if cfg.Shared {
		name = "alock-rw"
	}
	info, err := lock.Lookup(name)
	if err != nil {
		panic(err)
	}
	info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		cfg := cfg
		cfg.Locks, cfg.Home = n, home
		if at >= 0 {
			cfg.Home = at
		}
		return alock.New(c, cfg)
	}
	info.OpenWith, info.Params = nil, nil
	return info
}

// nodes is a machine of two nodes: of two ranks each, or of one if there are two ranks.
func nodes(ranks int) *topo.Topology {
	text := "node:2 core:2"
	if ranks == 2 {
		text = "node:2"
	}
	t, err := topo.Parse(text)
	if err != nil {
		panic(err)
	}
	return t
}

// A mix is a number of local and of remote ranks on two nodes, of a lock at home.
type mix struct{ local, remote, home int }

// TestSearch: all schedules of 2 local ranks and 1 remote one, and of 1 and 2, with 2 acquires
// each, for each way of using up budgets; CPU atomics and network atomics are not atomic with
// each other.
func TestSearch(t *testing.T) {
	for _, m := range []mix{{2, 1, 0}, {1, 2, 2}} {
		for _, b := range [][2]int{{1, 1}, {1, 2}, {2, 1}} {
			t.Run(fmt.Sprintf("%d+%d/budgets %d, %d", m.local, m.remote, b[0], b[1]), func(t *testing.T) {
				t.Parallel()
				locktest.RunWhole(t, check.Plan{
					Info:  with(alock.Config{LocalBudget: b[0], RemoteBudget: b[1]}, m.home),
					Ranks: 3, Acquires: 2, Topology: nodes(3), CPUFar: true,
				}, sim.Unbounded)
			})
		}
	}
}

// TestSearchMore: the same over a transport without a swap, as verbs are; with TryLock and
// deadlines; 2 local and 2 remote ranks; and random schedules of up to 64 ranks on 8 nodes.
func TestSearchMore(t *testing.T) {
	small := with(alock.Config{LocalBudget: 1, RemoteBudget: 2}, 0)
	verbs := func(c rma.Comm, _ func() check.Position) rma.Comm { return hook.LikeVerbs(c) }
	for _, k := range []struct {
		name  string
		plan  check.Plan
		bound int
		long  bool // for test-all
	}{
		{"verbs, 2+1", check.Plan{Info: small, Ranks: 3, Acquires: 2, Disturb: verbs}, sim.Unbounded, true},
		{"verbs, 1+2", check.Plan{Info: with(alock.Config{LocalBudget: 2, RemoteBudget: 1}, 2), Ranks: 3, Acquires: 1, Disturb: verbs}, sim.Unbounded, false},
		{"tries, 1+1", check.Plan{Info: small, Ranks: 2, Acquires: 3, Tries: true, Guard: true}, sim.Unbounded, false},
		{"tries, 2+1", check.Plan{Info: small, Ranks: 3, Acquires: 2, Tries: true}, sim.Unbounded, true},
		{"tries, 1+2", check.Plan{Info: with(alock.Config{LocalBudget: 2, RemoteBudget: 1}, 2), Ranks: 3, Acquires: 2, Tries: true}, sim.Unbounded, true},
		{"2+2", check.Plan{Info: small, Ranks: 4, Acquires: 2}, 3, true},
		{"2+2, 2 preemptions", check.Plan{Info: small, Ranks: 4, Acquires: 1}, 2, false},
	} {
		t.Run(k.name, func(t *testing.T) {
			if k.long && locktest.Quick() {
				t.Skip("takes seconds; see test-all")
			}
			t.Parallel()
			k.plan.CPUFar, k.plan.Topology = true, nodes(k.plan.Ranks)
			locktest.RunWhole(t, k.plan, k.bound)
		})
	}
	for _, size := range []struct {
		on    string
		ranks int
		draws int64
	}{{"node:2 core:2", 4, 5000}, {"node:4 core:4", 16, 600}, {"node:8 core:8", 64, 60}} {
		machine, err := topo.Parse(size.on)
		if err != nil {
			t.Fatal(err)
		}
		for _, tries := range []bool{false, true} {
			p := check.Plan{Info: small, Ranks: size.ranks, Acquires: 3, Topology: machine, CPUFar: true, Guard: true, Tries: tries, Seed: 1}
			for name, s := range map[string]sim.Scheduler{
				"random": sim.Random(1, 0, locktest.Draws(size.draws)), "pct": sim.PCT(1, 3, 0, locktest.Draws(size.draws)),
			} {
				t.Run(fmt.Sprintf("%s/%d/tries %v", name, size.ranks, tries), func(t *testing.T) {
					t.Parallel()
					r := locktest.RunPlan(t, p, s)
					t.Logf("%d executions, %d entries passed a rank that waited", r.Stats.Executions, r.Most)
				})
			}
		}
	}
}

// TestSearchShared: readers and writers, in the same way.
func TestSearchShared(t *testing.T) {
	for _, k := range []struct {
		name  string
		mix   mix
		plan  check.Plan
		bound int
		long  bool // for test-all
	}{
		{"1+1", mix{1, 1, 0}, check.Plan{Writers: 1, Acquires: 3, Guard: true}, sim.Unbounded, false},
		{"1+1, mixed", mix{1, 1, 0}, check.Plan{Writers: check.Mixed, Seed: 2, Acquires: 3}, sim.Unbounded, false},
		{"1+1, readers", mix{1, 1, 0}, check.Plan{Writers: 0, Acquires: 2}, sim.Unbounded, false},
		{"1+1, tries", mix{1, 1, 0}, check.Plan{Writers: check.Mixed, Seed: 1, Acquires: 3, Tries: true}, sim.Unbounded, false},
		{"2+1, local writer", mix{2, 1, 0}, check.Plan{Writers: 1, Acquires: 1}, sim.Unbounded, false},
		{"1+2, remote writer", mix{1, 2, 2}, check.Plan{Writers: 1, Acquires: 1}, sim.Unbounded, false},
		{"2+1, local writers", mix{2, 1, 0}, check.Plan{Writers: 2, Acquires: 2}, sim.Unbounded, true},
		{"1+2, remote writers", mix{1, 2, 2}, check.Plan{Writers: 2, Acquires: 2}, sim.Unbounded, true},
		{"2+1, local readers", mix{2, 1, 2}, check.Plan{Writers: 1, Acquires: 2}, sim.Unbounded, true},
		{"2+2", mix{2, 2, 0}, check.Plan{Writers: 2, Acquires: 1}, 2, true},
	} {
		t.Run(k.name, func(t *testing.T) {
			if k.long && locktest.Quick() {
				t.Skip("takes seconds; see test-all")
			}
			t.Parallel()
			p := k.plan
			p.Info, p.Ranks = with(alock.Config{Shared: true, LocalBudget: 1, RemoteBudget: 1}, k.mix.home), k.mix.local+k.mix.remote
			p.Topology, p.CPUFar = nodes(p.Ranks), true
			locktest.RunWhole(t, p, k.bound)
		})
	}
	machine, err := topo.Parse("node:4 core:4")
	if err != nil {
		t.Fatal(err)
	}
	for _, tries := range []bool{false, true} {
		for name, s := range map[string]sim.Scheduler{
			"random": sim.Random(1, 0, locktest.Draws(600)), "pct": sim.PCT(1, 3, 0, locktest.Draws(600)),
		} {
			t.Run(fmt.Sprintf("%s/16/tries %v", name, tries), func(t *testing.T) {
				t.Parallel()
				locktest.RunPlan(t, check.Plan{
					Info: with(alock.Config{Shared: true, LocalBudget: 1, RemoteBudget: 2}, 0), Ranks: 16, Acquires: 3, Writers: check.Mixed,
					Topology: machine, CPUFar: true, Guard: true, Tries: tries, Seed: 1,
				}, s)
			})
		}
	}
}

// TestNaive: a lock whose one word both the CPU and the network update fails in these searches.
func TestNaive(t *testing.T) {
	for _, name := range []string{"dmcs", "fompi-spin"} {
		info, err := lock.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		p := check.Plan{Info: info, Ranks: 3, Acquires: 1, Topology: nodes(3)}
		locktest.RunWhole(t, p, sim.Unbounded)
		p.CPUFar = true
		r, err := check.Run(p, sim.Exhaustive(sim.Unbounded))
		if err != nil || r.Failure == nil {
			t.Errorf("%s: no failure is found (%v)", name, err)
			continue
		}
		t.Log(name, r.Failure)
	}
}
