package alock_test

import (
	"errors"
	"testing"

	"github.com/rmalock/rmalock/alock"
	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// The properties of alock, appendix A, in the setting of the paper's model: 3 processes and
// budgets of 1, here with 2 acquires each, or with 4 where a bound is to count. Each test
// shows a lock that violates the property.

// unit is a plan for 2 local ranks and a remote one, or for 1 and 2.
func unit(m mix, acquires int) check.Plan {
	return check.Plan{
		Info:  with(alock.Config{LocalBudget: 1, RemoteBudget: 1}, m.home),
		Ranks: 3, Acquires: acquires, Topology: nodes(3), CPUFar: true,
	}
}

// violates checks that a plan's lock fails with an error.
func violates(t *testing.T, p check.Plan, want error) {
	t.Helper()
	r, err := check.Run(p, sim.Exhaustive(sim.Unbounded))
	if err != nil || r.Failure == nil || !errors.Is(r.Failure, want) {
		t.Errorf("a lock with a mistake: %v (%v), want %v", r.Failure, err, want)
	}
}

var units = []mix{{2, 1, 0}, {1, 2, 2}}

// MutualExclusion: no two ranks are in the critical section.
func TestMutualExclusion(t *testing.T) {
	for _, m := range units {
		locktest.RunWhole(t, unit(m, 2), sim.Unbounded)
	}
	p := unit(units[0], 2)
	p.Info = printing{victimLate: true}.info(0, [2]int{1, 1})
	violates(t, p, check.ErrExclusion)
}

// DeadAndLivelockFree: wherever a rank wants the lock some rank can make a step, and no execution
// goes on for ever.
func TestDeadAndLivelockFree(t *testing.T) {
	for _, m := range units {
		locktest.RunWhole(t, unit(m, 2), sim.Unbounded)
	}
	p := unit(units[0], 2)
	p.Info = printing{resetLate: true}.info(0, [2]int{1, 1})
	violates(t, p, sim.ErrDeadlock)
}

// StarvationFree, and with it ExecsCriticalSectionInfinitelyOften: after its swap of TAIL a rank is
// in when others have entered a bounded number of times.
func TestStarvationFree(t *testing.T) {
	p := unit(units[0], 4)
	p.Info = printing{passesForever: true}.info(0, [2]int{1, 1})
	violates(t, p, check.ErrStarved)
	bounded(t, func(p *lock.Promise) { p.Bounds = nil })
}

// CohortFairness: ranks of one's own cohort pass at most as often as their number says.
func TestCohortFairness(t *testing.T) {
	bounded(t, func(p *lock.Promise) { p.Bypass, p.Bounds = lock.Unbounded, p.Bounds[:1] })
}

// GlobalFairness: ranks of the other cohort pass at most as often as the budgets say.
func TestGlobalFairness(t *testing.T) {
	bounded(t, func(p *lock.Promise) { p.Bypass, p.Bounds = lock.Unbounded, p.Bounds[1:] })
}

// bounded checks the bounds that keep leaves of the lock's promise, and that no lower ones hold: on
// one of the machines another rank passes as often as the promise says.
func bounded(t *testing.T, keep func(*lock.Promise)) {
	t.Helper()
	if locktest.Quick() {
		t.Skip("takes seconds; see test-all")
	}
	attained := false
	for _, m := range units {
		for _, less := range []int{0, 1} {
			p := unit(m, 4)
			open := p.Info.Open
			p.Info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
				l, err := open(c, n, home)
				if err != nil {
					return nil, err
				}
				return promising{l.(lock.Checked), keep, less}, nil
			}
			if less == 0 {
				locktest.RunWhole(t, p, sim.Unbounded)
				continue
			}
			r, err := check.Run(p, sim.Exhaustive(sim.Unbounded))
			if err != nil {
				t.Fatal(err)
			}
			attained = attained || r.Failure != nil && errors.Is(r.Failure, check.ErrStarved)
		}
	}
	if !attained {
		t.Error("a bound that is lower by one holds too")
	}
}

// promising is a table that promises a part of its lock's bounds, each lower by less.
type promising struct {
	lock.Checked
	keep func(*lock.Promise)
	less int
}

func (p promising) Promise(m lock.Mode) lock.Promise {
	out := p.Checked.Promise(m)
	p.keep(&out)
	if out.Bypass != lock.Unbounded {
		out.Bypass -= p.less
	}
	for i := range out.Bounds {
		out.Bounds[i].Most -= p.less
	}
	return out
}
