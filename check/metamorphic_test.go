package check_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/topo"
)

// script is a random script.
func script(seed uint64) check.Script {
	return check.Script{Seed: seed, Locks: 1 + int(seed%3), Words: 1 + int(seed%4), Visits: 4, Writers: []int{100, 50, 10, 0}[seed/2%4]}
}

// judge runs a script on a rank and judges its history.
func judge(c rma.Comm, s check.Script, info lock.Info) error {
	h, err := s.Run(c, info)
	if err != nil {
		return err
	}
	if len(h.Visits) != s.Visits*c.Size() {
		return fmt.Errorf("%d visits of %d ranks, want %d of each", len(h.Visits), c.Size(), s.Visits)
	}
	return h.Admissible()
}

// machines are what scripts run on.
var machines = []string{"node:1 core:1", "node:1 core:4", "node:2 core:2", "node:4 core:1", "rack:2 node:2 core:2", "node:3 core:3"}

// TestScriptsAnywhere: the same scripts on goroutines that run at once and under
// random schedules, on several machines: every history is admissible, for every lock.
func TestScriptsAnywhere(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 6
	}
	for _, info := range lock.All() {
		if info.Name == "mpi-win-lock" || info.Serves {
			continue // of MPI alone; ranks that run no script
		}
		t.Run(info.Name, func(t *testing.T) {
			t.Parallel()
			for _, text := range machines {
				machine, err := topo.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				level, _ := machine.Find("node")
				node := make([]int, machine.Size())
				for r := range node {
					node[r] = machine.Element(r, level)
				}
				nodes := node[len(node)-1] + 1
				for seed := range seeds {
					s := script(seed)
					s.Visits = 8
					run := rmatest.Watched(nodes, len(node)/nodes, time.Minute)
					err := run(func(c rma.Comm) error { return judge(c, s, info) })
					if errors.Is(err, lock.ErrLeaseLost) || errors.Is(err, lock.ErrOwnerDied) {
						continue // a rank stood still for a lease, on a busy machine
					}
					if err != nil {
						t.Fatalf("inproc, %s, %+v: %v", text, s, err)
					}
					s.Visits = 4
					for name, sched := range map[string]sim.Scheduler{"random": sim.Random(seed, 0, 40), "pct": sim.PCT(seed, 3, 0, 20)} {
						_, f := sim.Search{Node: node}.Run(sched, func(c rma.Comm) error {
							job, _ := sim.Of(c)
							if err := job.Begin(); err != nil {
								return err
							}
							if err := judge(c, s, info); err != nil {
								return err
							}
							return job.End()
						})
						if f != nil && errors.Is(f, sim.ErrClock) {
							continue // its own searches let time pass
						}
						if f != nil {
							t.Fatalf("sim, %s, %s, %+v: %v (%s)", name, text, s, f, f.Schedule)
						}
					}
				}
			}
		})
	}
}

// TestScriptsFindBadLocks: a lock that admits all ranks has inadmissible histories.
func TestScriptsFindBadLocks(t *testing.T) {
	info, err := lock.Lookup("fompi-rw-local")
	if err != nil {
		t.Fatal(err)
	}
	open := info.Open
	info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		inner, err := open(c, n, home)
		return broken{inner}, err
	}
	found := 0
	for seed := range uint64(8) {
		s := script(seed)
		_, f := sim.Search{Node: []int{0, 0, 1}}.Run(sim.Random(seed, 0, 200), func(c rma.Comm) error {
			job, _ := sim.Of(c)
			if err := job.Begin(); err != nil {
				return err
			}
			if err := judge(c, s, info); err != nil {
				return err
			}
			return job.End()
		})
		switch {
		case f == nil && s.Writers >= 50:
			t.Errorf("%+v: nothing found", s)
		case f != nil && !errors.Is(f, check.ErrInadmissible) && !errors.Is(f, sim.ErrFlag):
			t.Errorf("%+v: %v", s, f)
		case f != nil:
			found++
		}
	}
	if found < 4 {
		t.Errorf("found in %d scripts", found)
	}
}

// TestAdmissible: histories that no lock permits, one for each thing that can be wrong.
func TestAdmissible(t *testing.T) {
	const x, s = lock.Exclusive, lock.Shared
	visit := func(rank int, mode lock.Mode, enter, leave, read, wrote int64) check.Visit {
		return check.Visit{Rank: rank, Mode: mode, Enter: enter, Leave: leave, Read: []int64{read}, Wrote: []int64{wrote}}
	}
	for _, c := range []struct {
		visits []check.Visit
		final  int64
		want   string // "" for none
	}{
		{[]check.Visit{visit(0, x, 0, 1, 0, 5), visit(1, s, 2, 4, 5, 0), visit(2, s, 3, 5, 5, 0)}, 5, ""},
		{[]check.Visit{visit(0, x, 0, 1, 0, 5), visit(0, x, 4, 5, 7, 0), visit(1, x, 2, 3, 5, 7)}, 7, ""},
		{[]check.Visit{visit(0, x, 0, 2, 0, 5), visit(1, x, 1, 3, 0, 6)}, 6, "while rank 0 was in exclusively"},
		{[]check.Visit{visit(0, x, 0, 3, 0, 5), visit(1, s, 1, 2, 0, 0)}, 5, "while rank 0 was in exclusively"},
		{[]check.Visit{visit(0, s, 0, 5, 0, 0), visit(1, s, 1, 2, 0, 0), visit(2, x, 3, 4, 0, 5)}, 5, "entered exclusively"},
		{[]check.Visit{visit(0, x, 0, 1, 0, 5), visit(1, s, 2, 3, 0, 0)}, 5, "read [0]"},
		{[]check.Visit{visit(0, x, 0, 1, 0, 5)}, 0, "hold [0] at the end"},
		{[]check.Visit{visit(0, x, 0, 1, 0, 5), visit(1, x, 1, 2, 5, 6)}, 6, "drawn twice"},
		{[]check.Visit{visit(0, x, 0, 4, 0, 5)}, 5, "out of range"},
		{[]check.Visit{visit(0, x, 1, 0, 0, 5)}, 5, "before it entered"},
		{[]check.Visit{visit(0, x, 2, 3, 6, 5), visit(0, x, 0, 1, 0, 6)}, 5, "entered again"},
		{[]check.Visit{{Lock: 1}}, 0, "of no lock"},
	} {
		err := check.History{Visits: c.visits, Final: [][]int64{{c.final}}}.Admissible()
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, check.ErrInadmissible) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.visits, err, c.want)
		}
	}
}

// TestBadScripts: nonsense is refused.
func TestBadScripts(t *testing.T) {
	info, _ := lock.Lookup("dmcs")
	for _, s := range []check.Script{{}, {Locks: 1, Words: 1}, {Locks: 1, Words: 1, Visits: 1, Writers: 101}} {
		_, f := sim.Search{Node: []int{0}}.Run(sim.Random(1, 0, 1), func(c rma.Comm) error { _, err := s.Run(c, info); return err })
		if f == nil || !errors.Is(f, lock.ErrConfig) {
			t.Errorf("%+v: %v", s, f)
		}
	}
}
