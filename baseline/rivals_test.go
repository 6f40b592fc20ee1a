package baseline_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/sim"
)

var background = context.Background()

// with is a registered lock with parameters, named for a test.
func with(t *testing.T, name string, params map[string]string) lock.Info {
	t.Helper()
	info, err := lock.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	as := info
	as.Name = fmt.Sprint(name, params)
	as.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		return info.With(c, lock.Setting{Locks: n, Home: home, Params: params})
	}
	as.OpenWith = nil
	return as
}

type params = map[string]string

// TestCASLockSearch: CASLock and Retry-on-Fail under schedules that are searched.
func TestCASLockSearch(t *testing.T) {
	t.Run("keep", func(t *testing.T) { locktest.RunVariant(t, with(t, "caslock", nil)) })
	t.Run("undo", func(t *testing.T) { locktest.RunVariant(t, with(t, "retry-on-fail", params{"READERS": "undo"})) })
	for name, info := range map[string]lock.Info{
		"caslock": with(t, "caslock", params{"R": "2us", "L": "8us"}), "retry-on-fail": with(t, "retry-on-fail", params{"R": "2us", "L": "8us"}),
	} {
		t.Run(name+", paced", func(t *testing.T) {
			locktest.RunPlan(t, check.Plan{Info: info, Ranks: 4, Acquires: 3, Writers: check.Mixed, MemoryNodes: 1, Guard: true}, sim.Random(1, 0, locktest.Draws(1000)))
		})
	}
}

// TestCASLockMutants: a CASLock with a mistake does not pass.
func TestCASLockMutants(t *testing.T) {
	t.Run("keep", func(t *testing.T) { locktest.RunMutants(t, "caslock", nil) })
	t.Run("undo", func(t *testing.T) {
		locktest.RunMutantsOf(t, check.Effort{Every: 2}, nil, with(t, "retry-on-fail", params{"READERS": "undo"}))
	})
}

// TestDSLRPlusSearch: DSLR+ under schedules that are searched, with resets all the time, and
// with pauses.
func TestDSLRPlusSearch(t *testing.T) {
	t.Run("tickets", func(t *testing.T) { locktest.RunVariant(t, with(t, "dslr-plus", params{"BASE": "0"})) })
	for _, p := range []struct {
		countMax string
		plan     check.Plan
		bound    int
	}{
		{"1", check.Plan{Ranks: 2, Acquires: 2, Writers: 1}, sim.Unbounded},
		{"1", check.Plan{Ranks: 2, Acquires: 3, Writers: 1}, sim.Unbounded},
		{"2", check.Plan{Ranks: 2, Acquires: 4, Writers: 2}, sim.Unbounded},
		{"2", check.Plan{Ranks: 3, Acquires: 2, Writers: 1}, 2},
		{"2", check.Plan{Ranks: 3, Acquires: 2, Writers: 3}, 2},
	} {
		t.Run(fmt.Sprintf("%s tickets, %d x %d, %d writers", p.countMax, p.plan.Ranks, p.plan.Acquires, p.plan.Writers), func(t *testing.T) {
			if p.plan.Ranks*p.plan.Acquires > 4 && locktest.Quick() {
				t.Skip("seconds")
			}
			p.plan.Info, p.plan.MemoryNodes = with(t, "dslr-plus", params{"BASE": "0", "COUNTMAX": p.countMax}), 1
			locktest.RunWhole(t, p.plan, p.bound)
		})
	}
	for _, countMax := range []string{"3", "16384"} {
		t.Run("paced, "+countMax+" tickets", func(t *testing.T) {
			plan := check.Plan{Info: with(t, "dslr-plus", params{"COUNTMAX": countMax, "CAP": "1600ns"}), Ranks: 5, Acquires: 4, Writers: check.Mixed, MemoryNodes: 1, Guard: true, Ticks: 2000}
			locktest.RunPlan(t, plan, sim.Random(1, 0, locktest.Draws(1000)))
			plan.Info = with(t, "dslr-plus", params{"COUNTMAX": countMax, "BASE": "0"})
			plan.Ticks, plan.Tries = 0, true
			locktest.RunPlan(t, plan, sim.PCT(1, 3, 0, locktest.Draws(1000)))
		})
	}
}

// TestDSLRPlusMutants: a DSLR+ with a mistake does not pass.
func TestDSLRPlusMutants(t *testing.T) {
	infos := []lock.Info{with(t, "dslr-plus", params{"BASE": "0"})}
	if locktest.Deep() {
		infos = append(infos, with(t, "dslr-plus", params{"BASE": "0", "COUNTMAX": "2"}))
	}
	const why = "0 is taken for the word, and the CompareAndSwap finds what it is"
	locktest.RunMutantsOf(t, check.Effort{}, []check.Equivalent{
		{Phase: check.Acquiring, Step: "Flush of Get", Mutation: check.NoFlush, Why: why},
		{Phase: check.Trying, Step: "Flush of Get", Mutation: check.NoFlush, Why: why},
	}, infos...)
}

// TestReaderWriterStarvation is Figure 12 of dslr: readers that overlap come and go, and a
// writer that came before them finds at each try that one is in.
func TestReaderWriterStarvation(t *testing.T) {
	const rounds = 50
	for _, info := range []lock.Info{with(t, "caslock", nil), with(t, "retry-on-fail", nil), with(t, "retry-on-fail", params{"READERS": "undo"})} {
		t.Run(info.Name, func(t *testing.T) {
			r := starved(t, info, []lock.Mode{lock.Exclusive, lock.Shared, lock.Shared}, rounds)
			if r < rounds {
				t.Errorf("%d readers passed the writer, want %d", r, rounds)
			}
		})
	}
}

// TestFastSlowStarvation is Figure 13 of dslr: a writer that is fast has the lock whenever a
// slow one tries.
func TestFastSlowStarvation(t *testing.T) {
	const rounds = 50
	for _, info := range []lock.Info{with(t, "caslock", nil), with(t, "retry-on-fail", nil)} {
		t.Run(info.Name, func(t *testing.T) {
			if r := starved(t, info, []lock.Mode{lock.Exclusive, lock.Exclusive, lock.Exclusive}, rounds); r < rounds {
				t.Errorf("%d acquires passed the writer, want %d", r, rounds)
			}
		})
	}
}

// starved has the first rank want the lock as the other two take turns to hold it, one of
// which has it always. It returns their entries before the first rank's.
func starved(t *testing.T, info lock.Info, modes []lock.Mode, rounds int) int {
	t.Helper()
	passed := 0
	// One rank's goroutine does what three ranks do, each with its own handle, so that the
	// schedule is the figure's.
	tables := make([]lock.Table, len(modes))
	err := inproc.Job{Nodes: 1, PerNode: len(modes), MemoryNodes: 1}.Run(func(c rma.Comm) error {
		var err error
		if tables[c.Rank()], err = info.Open(c, 1, 0); err != nil {
			return err
		}
		if err := c.Barrier(); err != nil || c.Rank() > 0 {
			return errors.Join(err, c.Barrier())
		}
		share := modes[1] == lock.Shared
		err = tables[1].Lock(background, 0, modes[1])
		for i := range rounds {
			a, b := tables[1+i%2], tables[2-i%2] // a holds
			if share {                           // b comes before a goes
				err = errors.Join(err, b.Lock(background, 0, lock.Shared))
				passed++
			}
			got, err2 := tables[0].TryLock(0, lock.Exclusive)
			if err = errors.Join(err, err2); got || err != nil {
				return fmt.Errorf("round %d: the writer got in: %v, %w", i, got, err)
			}
			err = a.Unlock(0, modes[1])
			if !share {
				err = errors.Join(err, b.Lock(background, 0, lock.Exclusive))
				passed++
			}
		}
		return errors.Join(err, c.Barrier())
	})
	if err != nil {
		t.Error(err)
	}
	return passed
}

// TestGiveWay: a rank that holds a lock and waits for another one, whose holder waits for the
// first, gets lock.ErrGiveWay after its number of tries, and the lock is as it was.
func TestGiveWay(t *testing.T) {
	for _, name := range []string{"caslock", "retry-on-fail", "dslr-plus"} {
		for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
			p := params{"RETRIES": "5"}
			if name != "dslr-plus" {
				p["R"], p["L"] = "1us", "100us"
			}
			info := with(t, name, p)
			t.Run(fmt.Sprint(name, mode), func(t *testing.T) {
				err := inproc.Job{Nodes: 1, PerNode: 2, MemoryNodes: 2}.Run(func(c rma.Comm) error { return circle(c, info, mode) })
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// circle has two ranks take two locks in opposite orders, again and again: each lets go of
// what it holds when it is told to.
func circle(c rma.Comm, info lock.Info, second lock.Mode) error {
	tab, err := info.Open(c, 2, 0)
	if err != nil {
		return err
	}
	told := 0
	for i := range 20 {
		if i == 0 { // a circle for sure
			if err := errors.Join(tab.Lock(background, c.Rank(), lock.Exclusive), c.Barrier()); err != nil {
				return err
			}
		} else if err := tab.Lock(background, c.Rank(), lock.Exclusive); err != nil {
			return fmt.Errorf("a rank that holds nothing: %w", err)
		}
		for {
			err := tab.Lock(background, 1-c.Rank(), second)
			if err == nil {
				break
			}
			if !errors.Is(err, lock.ErrGiveWay) {
				return err
			}
			if err := tab.Unlock(c.Rank(), lock.Exclusive); err != nil {
				return err
			}
			c.Sleep(rand.Int64N(1000 << min(told, 12))) // or both are told again
			told++
			if err := tab.Lock(background, c.Rank(), lock.Exclusive); err != nil {
				return err
			}
		}
		if err := errors.Join(tab.Unlock(1-c.Rank(), second), tab.Unlock(c.Rank(), lock.Exclusive)); err != nil {
			return err
		}
	}
	all, err := c.Allgather([]int64{int64(told)})
	if err == nil && all[0]+all[1] == 0 {
		err = errors.New("no rank gave way in a circle")
	}
	return errors.Join(err, c.Barrier(), tab.(lock.Checked).Idle())
}

// A step is a call and the operations on memory nodes that it makes.
type step struct {
	what string
	do   func(lock.Table) error
	want map[rma.Kind]int64
}

func take(id int, mode lock.Mode) func(lock.Table) error {
	return func(t lock.Table) error { return t.Lock(background, id, mode) }
}

func give(id int, mode lock.Mode) func(lock.Table) error {
	return func(t lock.Table) error { return t.Unlock(id, mode) }
}

func try(id int, mode lock.Mode, want bool) func(lock.Table) error {
	return func(t lock.Table) error {
		got, err := t.TryLock(id, mode)
		if got != want {
			err = errors.Join(err, fmt.Errorf("TryLock: %v, want %v", got, want))
		}
		return err
	}
}

// TestRivalsCosts counts the remote operations that the pages of docs/locks state.
func TestRivalsCosts(t *testing.T) {
	const x, s = lock.Exclusive, lock.Shared
	fao, cas := map[rma.Kind]int64{rma.KindFetchAndOp: 1}, map[rma.Kind]int64{rma.KindCompareAndSwap: 1}
	looked := map[rma.Kind]int64{rma.KindGet: 1, rma.KindCompareAndSwap: 1}
	for name, steps := range map[string][]step{
		"caslock": {
			{"X", take(0, x), cas}, {"unX", give(0, x), cas}, {"S", take(0, s), fao}, {"unS", give(0, s), fao},
			{"try X", try(0, x, true), cas}, {"unX", give(0, x), cas}, {"try S", try(0, s, true), fao}, {"unS", give(0, s), fao},
		},
		"dslr-plus": {
			{"X", take(0, x), fao}, {"unX", give(0, x), fao}, {"S", take(0, s), fao}, {"unS", give(0, s), fao},
			{"try X", try(0, x, true), looked}, {"unX", give(0, x), fao}, {"try S", try(0, s, true), looked}, {"unS", give(0, s), fao},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
				var n hook.Tally
				tab, err := with(t, name, nil).Open(hook.Count(c, &n), 1, 0)
				if err != nil {
					return err
				}
				for _, step := range steps {
					n.Reset()
					if err := step.do(tab); err != nil {
						return err
					}
					for k := range rma.Kinds {
						if n.Ops(k, hook.Far) != step.want[k] {
							return fmt.Errorf("%s: want %v; counted are\n%v", step.what, step.want, &n)
						}
					}
				}
				return errors.Join(tab.(lock.Checked).Idle(), tab.Free())
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRivalsAllocateNothing: no acquire and no release allocates.
func TestRivalsAllocateNothing(t *testing.T) {
	for _, name := range []string{"caslock", "dslr-plus"} {
		locktest.NoAllocations(t, func(c rma.Comm, locks int) (lock.Table, error) { return with(t, name, nil).Open(c, locks, 0) })
	}
}

// TestDSLRPlusWaits: a rank that waits makes one draw, and looks.
func TestDSLRPlusWaits(t *testing.T) {
	err := inproc.Job{Nodes: 1, PerNode: 2, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		var n hook.Tally
		tab, err := with(t, "dslr-plus", nil).Open(hook.Count(c, &n), 1, 0)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			err = errors.Join(tab.Lock(background, 0, lock.Exclusive), c.Barrier())
			c.Sleep(2e6)
			return errors.Join(err, tab.Unlock(0, lock.Exclusive), c.Barrier())
		}
		if err := errors.Join(c.Barrier(), tab.Lock(background, 0, lock.Shared)); err != nil {
			return err
		}
		if n.Ops(rma.KindFetchAndOp, hook.Far) != 1 || n.Ops(rma.KindCompareAndSwap, hook.Far) != 0 || n.Awaits(hook.Far) != 0 || n.Backoffs(hook.Far) != 0 {
			err = fmt.Errorf("want one draw and looks; counted are\n%v", &n)
		}
		return errors.Join(err, tab.Unlock(0, lock.Shared), c.Barrier())
	})
	if err != nil {
		t.Error(err)
	}
}

// TestBadParams: nonsense is refused with what is wrong.
func TestBadParams(t *testing.T) {
	for name, all := range map[string][]params{
		"caslock":       {{"R": "x"}, {"R": "-1us"}, {"L": "1us"}, {"R": "2us", "L": "1us"}, {"RETRIES": "-1"}, {"RETRIES": "many"}, {"READERS": "undo"}},
		"retry-on-fail": {{"READERS": "sometimes"}, {"R": "1"}},
		"dslr-plus":     {{"BASE": "x"}, {"CAP": "10ns"}, {"COUNTMAX": "0x"}, {"COUNTMAX": "16385"}, {"COUNTMAX": "-1"}, {"RANDOM": "-1us"}, {"R": "1us"}},
	} {
		for _, p := range all {
			info := with(t, name, p)
			err := inproc.Run(1, func(c rma.Comm) error { _, err := info.Open(c, 1, 0); return err })
			if !errors.Is(err, lock.ErrConfig) {
				t.Errorf("%s: %v, want ErrConfig", info.Name, err)
			}
		}
	}
}
