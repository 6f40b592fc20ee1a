package declock_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma/sim"
)

// recovers is how many leases pass at most, where nothing else happens, for each rank that dies.
const recovers = 7

// Queues with room for all, and such that each third acquire or so resets the lock.
var (
	room  = params{"LEASE": "1us", "CAPACITY": "4"}
	tight = params{"LEASE": "1us", "CAPACITY": "2", "VERSION": "2", "EPOCH": "1"}
)

// TestSearchCalm: where no rank is silent for two leases, none is taken for dead, and no rank waits
// for a lease. Each death costs one reset at most, and a few leases, where nothing else resets the
// lock. With ticks at any time no rank waits for a lease either before one has died: a reset does
// not, nor does a rank that is in it.
func TestSearchCalm(t *testing.T) {
	executions := int64(250)
	switch {
	case locktest.Quick():
		executions = 60
	case locktest.Deep():
		executions = 5000
	}
	for _, k := range []struct {
		name    string
		pace    check.Pace
		crashes int
		p       params
	}{
		{"no ticks", check.Forced, 0, room},
		{"slow ticks", check.Timely, 0, room},
		{"ticks", check.AnyTime, 0, room},
		{"many ticks", check.Hasty, 0, room},
		{"a death", check.Forced, 1, room},
		{"two deaths", check.Forced, 2, room},
		{"overflow", check.Forced, 0, tight},
		{"overflow, slow ticks", check.Timely, 0, tight},
		{"overflow, many ticks", check.Hasty, 0, params{"LEASE": "1us", "CAPACITY": "2", "VERSION": "2", "EPOCH": "3"}},
		{"overflow, a death", check.Forced, 1, tight},
		{"overflow, two deaths", check.Forced, 2, tight},
	} {
		for ranks := 2; ranks <= 4; ranks++ {
			for _, tries := range []bool{false, true} {
				for _, explore := range []struct {
					name string
					s    sim.Scheduler
				}{{"random", sim.Random(1, 0, executions)}, {"pct", sim.PCT(1, 3, 0, executions)}} {
					t.Run(fmt.Sprintf("%s, %d ranks, tries %v/%s", k.name, ranks, tries, explore.name), func(t *testing.T) {
						plan := check.Plan{Ranks: ranks, Acquires: 4, Writers: check.Mixed, Seed: 3, Tries: tries, Ticks: 100, MaxDelay: 1,
							Crashes: k.crashes, Pace: k.pace, Prompt: true}
						if k.pace == check.Forced && k.p["VERSION"] == "" {
							plan.Recover, plan.PerDeath = recovers, "resets"
						}
						search(t, plan, k.p, explore.s)
					})
				}
			}
		}
	}
}

// TestSearchCalmDeath: all schedules of a death, up to a number of preemptions, of ranks that are
// never silent.
func TestSearchCalmDeath(t *testing.T) {
	for _, k := range []struct{ ranks, acquires, bound int }{{2, 2, 2}, {3, 1, 1}, {3, 2, 0}} {
		for writers := 0; writers <= k.ranks; writers++ {
			t.Run(fmt.Sprintf("%dx%d, %d writers, %d preemptions", k.ranks, k.acquires, writers, k.bound), func(t *testing.T) {
				if k.bound > 0 && !locktest.Deep() {
					t.Skip("takes seconds; see check-deep")
				}
				plan := check.Plan{Ranks: k.ranks, Acquires: k.acquires, Writers: writers, Ticks: 100, Crashes: 1, MaxDelay: 1,
					Pace: check.Forced, Prompt: true, Recover: recovers}
				r := search(t, plan, params{"LEASE": "1us", "CAPACITY": "4"}, sim.Exhaustive(k.bound))
				if !r.Whole || r.Stats.OutOfTicks > 0 {
					t.Errorf("whole: %v; in %d executions ranks wait for ever", r.Whole, r.Stats.OutOfTicks)
				}
				t.Logf("%d states", r.States)
			})
		}
	}
}
