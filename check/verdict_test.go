package check_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// altered is a lock with something else in the place of one of its methods.
type altered struct {
	lock.Checked
	lock    func(t lock.Checked, ctx context.Context, mode lock.Mode) error
	try     func(t lock.Checked, mode lock.Mode) (bool, error)
	unlock  func(t lock.Checked, mode lock.Mode) error
	promise *lock.Promise
	idle    error
}

func (a *altered) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if a.lock != nil {
		return a.lock(a.Checked, ctx, mode)
	}
	return a.Checked.Lock(ctx, id, mode)
}

func (a *altered) TryLock(id int, mode lock.Mode) (bool, error) {
	if a.try != nil {
		return a.try(a.Checked, mode)
	}
	return a.Checked.TryLock(id, mode)
}

func (a *altered) Unlock(id int, mode lock.Mode) error {
	if a.unlock != nil {
		return a.unlock(a.Checked, mode)
	}
	return a.Checked.Unlock(id, mode)
}

func (a *altered) Promise(mode lock.Mode) lock.Promise {
	if a.promise != nil {
		return *a.promise
	}
	return a.Checked.Promise(mode)
}

func (a *altered) Idle() error { return errors.Join(a.idle, a.Checked.Idle()) }

func (a altered) of(t *testing.T, name string) lock.Info {
	info := lookup(t, name)
	open := info.Open
	info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		table, err := open(c, n, home)
		if err != nil {
			return nil, err
		}
		b := a
		b.Checked = table.(lock.Checked)
		return &b, nil
	}
	return info
}

// is reports whether there is a failure that wraps an error.
func is(f *sim.Failure, err error) bool { return f != nil && errors.Is(f, err) }

// TestEachErrorIsFound: each thing that a check looks for is found where it is.
func TestEachErrorIsFound(t *testing.T) {
	drops := func(lock.Checked, lock.Mode) error { return nil }
	careless := func(t lock.Checked, mode lock.Mode) error {
		defer func() { _ = recover() }() // unlock of unlocked lock
		return t.Unlock(0, mode)
	}
	refuses := func(lock.Checked, lock.Mode) (bool, error) { return false, nil }
	keeps := func(t lock.Checked, ctx context.Context, mode lock.Mode) error {
		if err := t.Lock(context.Background(), 0, mode); err != nil || ctx.Done() == nil {
			return err
		}
		return lock.ErrDeadline
	}
	careful := func(t lock.Checked, mode lock.Mode) (bool, error) { return true, t.Lock(context.Background(), 0, mode) }
	anyway := func(t lock.Checked, mode lock.Mode) (bool, error) { return true, nil }
	broken := errors.New("nothing works")
	for _, c := range []struct {
		name string
		lock string
		a    altered
		plan check.Plan
		want error
	}{
		{"nothing", "dmcs", altered{}, check.Plan{Tries: true}, nil},
		{"nothing with readers", "fompi-rw-local", altered{}, check.Plan{Tries: true, Writers: check.Mixed}, nil},
		{"Unlock does nothing", "dmcs", altered{unlock: drops}, check.Plan{Acquires: 1}, sim.ErrDeadlock},
		{"a try that never succeeds", "dmcs", altered{try: refuses}, check.Plan{Tries: true, Acquires: 4}, check.ErrTry},
		{"a try that always succeeds", "dmcs", altered{try: anyway, unlock: careless}, check.Plan{Tries: true, Acquires: 4}, check.ErrExclusion},
		{"a deadline that leaves the lock taken", "fompi-rw-local", altered{lock: keeps, try: careful}, check.Plan{Tries: true, Acquires: 1, Seed: 1}, check.ErrIdle},
		{"one bypass too many", "dmcs", altered{promise: &lock.Promise{Bypass: 0, Acquire: 9, Release: 9}}, check.Plan{}, check.ErrStarved},
		{"an acquire that costs", "dmcs", altered{promise: &lock.Promise{Bypass: 9, Acquire: 1, Release: 9}}, check.Plan{}, check.ErrCost},
		{"a release that costs", "dmcs", altered{promise: &lock.Promise{Bypass: 9, Acquire: 9, Release: 1}}, check.Plan{}, check.ErrCost},
		{"not idle", "dmcs", altered{idle: broken}, check.Plan{}, check.ErrIdle},
		{"an error of Unlock", "dmcs", altered{unlock: func(lock.Checked, lock.Mode) error { return broken }}, check.Plan{}, broken},
		{"a rank stops for ever", "dmcs", altered{}, check.Plan{Faults: []sim.Fault{{Rank: 0, Step: 2}}}, sim.ErrDeadlock},
		{"a rank stops for a while", "dmcs", altered{}, check.Plan{Faults: []sim.Fault{{Rank: 0, Step: 2, For: 5}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.plan
			p.Info, p.Ranks, p.Acquires = c.a.of(t, c.lock), 2, max(2, p.Acquires)
			if c.plan.Acquires == 1 {
				p.Acquires = 1
			}
			for _, s := range []sim.Scheduler{sim.Exhaustive(sim.Unbounded), sim.Random(1, 0, 500), sim.PCT(1, 3, 0, 500)} {
				r, err := check.Run(p, s)
				switch {
				case err != nil:
					t.Fatal(err)
				case c.want == nil && r.Failure != nil:
					t.Errorf("%T: %v", s, r.Failure)
				case c.want != nil && !is(r.Failure, c.want):
					t.Errorf("%T finds %v, want %v", s, r.Failure, c.want)
				}
			}
		})
	}
}

// TestUnflushedWritesAreFound: holders do not see what another one has not flushed.
func TestUnflushedWritesAreFound(t *testing.T) {
	// A lock that is released as soon as it is acquired excludes no rank. If the check takes
	// the holders for readers, the words that they change show it.
	info := altered{
		lock: func(t lock.Checked, ctx context.Context, _ lock.Mode) error {
			if err := t.Lock(ctx, 0, lock.Exclusive); err != nil {
				return err
			}
			return t.Unlock(0, lock.Exclusive)
		},
		unlock: func(lock.Checked, lock.Mode) error { return nil },
	}.of(t, "dmcs")
	r, err := check.Run(check.Plan{Info: info, Ranks: 2, Acquires: 1}, sim.Exhaustive(sim.Unbounded))
	if err != nil || !is(r.Failure, check.ErrExclusion) {
		t.Errorf("finds %v (%v), want %v", r.Failure, err, check.ErrExclusion)
	}
	info.Shared = true
	r, err = check.Run(check.Plan{Info: info, Ranks: 2, Acquires: 2, Writers: 1, Guard: true}, sim.Exhaustive(sim.Unbounded))
	if err != nil || r.Failure == nil {
		t.Errorf("finds nothing (%v)", err)
	}
}

// TestRunParallelFindsTheFirst: what fails first is the same on any number of cores.
func TestRunParallelFindsTheFirst(t *testing.T) {
	info := altered{promise: &lock.Promise{Bypass: 2, Acquire: 9, Release: 9}}.of(t, "dmcs") // of 3
	p := check.Plan{Info: info, Ranks: 4, Acquires: 2}
	var told []string
	for _, cores := range []int{1, 4} {
		was := runtime.GOMAXPROCS(cores)
		r, err := check.RunParallel(p, 3000, func(first, n int64) sim.Scheduler { return sim.PCT(5, 3, first, n) })
		runtime.GOMAXPROCS(was)
		if err != nil || r.Failure == nil {
			t.Fatalf("finds nothing (%v)", err)
		}
		told = append(told, fmt.Sprint(r.Failure, r.Failure.Execution, r.Failure.Schedule))
	}
	if told[0] != told[1] {
		t.Errorf("one core: %s\nfour: %s", told[0], told[1])
	}
}

// TestReportReplays: a failure is told with ranks, words and values, and replays.
func TestReportReplays(t *testing.T) {
	info := altered{unlock: func(lock.Checked, lock.Mode) error { return nil }}.of(t, "fompi-rw")
	p := check.Plan{Info: info, Ranks: 3, Acquires: 2, Writers: 1, Seed: 9, Guard: true}
	r, err := check.Run(p, sim.Random(1, 0, 100))
	if err != nil || r.Failure == nil {
		t.Fatalf("finds nothing (%v)", err)
	}
	var b strings.Builder
	f, err := check.Report(&b, p, r.Failure)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{f.Error(), "rank 1 ", "fompi-rw.L@0: 0 -> ", "enters, ", "seed      9", "schedule  " + f.Schedule, "--writers 1 --seed 9 --guard --replay '" + f.Schedule + "'"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, b.String())
		}
	}
	if f.Steps > r.Failure.Steps {
		t.Errorf("a failure of %d steps was shortened to %d", r.Failure.Steps, f.Steps)
	}
}

func TestBadPlans(t *testing.T) {
	good := check.Plan{Info: lookup(t, "dmcs"), Ranks: 2, Acquires: 1}
	for name, spoil := range map[string]func(p *check.Plan){
		"no lock":   func(p *check.Plan) { p.Info.Open = nil },
		"0 ranks":   func(p *check.Plan) { p.Ranks = 0 },
		"0 acquire": func(p *check.Plan) { p.Acquires = 0 },
		"3 writers": func(p *check.Plan) { p.Writers = 3 },
		"-2 writer": func(p *check.Plan) { p.Writers = -2 },
		"rank 2":    func(p *check.Plan) { p.Faults = []sim.Fault{{Rank: 2}} },
		"-1 steps":  func(p *check.Plan) { p.Faults = []sim.Fault{{Step: -1}} },
	} {
		p := good
		spoil(&p)
		if _, err := check.Run(p, sim.Random(1, 0, 1)); !errors.Is(err, lock.ErrConfig) {
			t.Errorf("%s: Run: %v", name, err)
		}
		if _, err := check.RunParallel(p, 1, nil); !errors.Is(err, lock.ErrConfig) {
			t.Errorf("%s: Spread: %v", name, err)
		}
		if _, _, err := check.Replay(p, "-"); !errors.Is(err, lock.ErrConfig) {
			t.Errorf("%s: Replay: %v", name, err)
		}
	}
}
