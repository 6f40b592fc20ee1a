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
		locktest.RunMutantsOf(t, 2, nil, with(t, "retry-on-fail", params{"READERS": "undo"}))
	})
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
	for _, name := range []string{"caslock", "retry-on-fail"} {
		for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
			info := with(t, name, params{"RETRIES": "5", "R": "1us", "L": "100us"})
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

// TestBadParams: nonsense is refused with what is wrong.
func TestBadParams(t *testing.T) {
	for name, all := range map[string][]params{
		"caslock":       {{"R": "x"}, {"R": "-1us"}, {"L": "1us"}, {"R": "2us", "L": "1us"}, {"RETRIES": "-1"}, {"RETRIES": "many"}, {"READERS": "undo"}},
		"retry-on-fail": {{"READERS": "sometimes"}, {"R": "1"}},
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
