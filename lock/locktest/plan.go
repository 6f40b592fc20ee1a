package locktest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	search "github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/rma/sim"
)

// Quick reports whether tests are to take a second or two: with -short, and under the race
// detector.
func Quick() bool { return testing.Short() || rmatest.RaceEnabled }

// Deep reports whether tests may take many minutes: with RMALOCK_DEEP in the environment.
func Deep() bool { return os.Getenv("RMALOCK_DEEP") != "" }

// Draws is the number of schedules that a test draws: n, or a part of it if Quick.
func Draws(n int64) int64 {
	if Quick() {
		return max(2, n/30)
	}
	return n
}

// RunPlan checks a plan under schedules. It fails the test with a short schedule that
// breaks the lock, and what happens in it.
func RunPlan(t *testing.T, p search.Plan, s sim.Scheduler) search.Result {
	t.Helper()
	r, err := search.Run(p, s)
	if err != nil {
		t.Fatal(err)
	}
	if r.Failure != nil {
		fatal(t, p, r.Failure)
	}
	return r
}

// fatal fails the test with a report of a schedule that breaks a lock.
func fatal(t *testing.T, p search.Plan, f *sim.Failure) {
	t.Helper()
	var b strings.Builder
	if _, err := search.Report(&b, p, f); err != nil {
		fmt.Fprintln(&b, f, err)
	}
	t.Fatalf("execution %d: %s", f.Execution, b.String())
}

// RunWhole checks a plan under all schedules with up to so many preemptions.
func RunWhole(t *testing.T, p search.Plan, preemptions int) {
	t.Helper()
	r := RunPlan(t, p, sim.Exhaustive(preemptions))
	if !r.Whole {
		t.Error("the search did not come to its end")
	}
	t.Logf("%d states, %d executions", r.States, r.Stats.Executions+r.Stats.Cut)
}

// RunGreedy checks under n schedules that a lock keeps what it promises, and that one
// which passes more often, but promises the same, is caught.
func RunGreedy(t *testing.T, p search.Plan, greedy lock.Info, n int64) {
	t.Helper()
	honest := p.Info
	r := RunPlan(t, p, sim.PCT(1, 3, 0, n))
	t.Logf("%d entries passed a rank that waited", r.Most)
	p.Info = promising(greedy, honest)
	r, err := search.Run(p, sim.PCT(1, 3, 0, n))
	if err != nil || r.Failure == nil || !errors.Is(r.Failure, search.ErrStarved) {
		t.Errorf("a lock that ignores a threshold: %v (%v)", r.Failure, err)
		return
	}
	t.Logf("execution %d: %v", r.Failure.Execution, r.Failure)
}

// promising is a lock that promises what another one does.
func promising(real, promised lock.Info) lock.Info {
	out := real
	out.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		t, err := real.Open(c, n, home)
		if err != nil {
			return nil, err
		}
		as, err := promised.Open(c, n, home)
		if err != nil {
			return nil, err
		}
		return promisingTable{t.(lock.Checked), as.(lock.Checked)}, nil
	}
	return out
}

type promisingTable struct {
	lock.Checked
	as lock.Checked
}

func (p promisingTable) Promise(m lock.Mode) lock.Promise { return p.as.Promise(m) }
