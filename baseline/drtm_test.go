package baseline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/sim"
)

// writers is a lock without its shared mode.
func writers(info lock.Info) lock.Info {
	out := info
	out.Shared = false
	out.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		t, err := info.Open(c, n, home)
		if err != nil {
			return nil, err
		}
		return exclusive{t.(lock.Checked)}, nil
	}
	return out
}

type exclusive struct{ lock.Checked }

func (t exclusive) Lock(ctx context.Context, id int, _ lock.Mode) error {
	return t.Checked.Lock(ctx, id, lock.Exclusive)
}
func (t exclusive) TryLock(id int, _ lock.Mode) (bool, error) {
	return t.Checked.TryLock(id, lock.Exclusive)
}
func (t exclusive) Unlock(id int, _ lock.Mode) error { return t.Checked.Unlock(id, lock.Exclusive) }
func (t exclusive) Mutex(id int) lock.Mutex          { return struct{ lock.Mutex }{t.Checked.Mutex(id)} }
func (t exclusive) Hosts() rma.Hosts                 { return lock.HostsOf(t.Checked) }

// skewed is a Comm whose clock is ahead.
type skewed struct {
	rma.Comm
	ahead int64
}

func (s skewed) Now() int64       { return s.Comm.Now() + s.ahead }
func (s skewed) Unwrap() rma.Comm { return s.Comm }

// ahead has the clock of each rank one tick ahead of that of the rank before.
func ahead(c rma.Comm, _ func() check.Position) rma.Comm {
	return skewed{c, int64(c.Rank()) * sim.DefaultTickNs}
}

// TestDrTMSearch: DrTM with a clock that ticks: a reader that a writer has passed learns of it
// from its Unlock, and no sooner than its lease may have ended. A tick is 1 us.
func TestDrTMSearch(t *testing.T) {
	exact, differ := params{"LEASE": "1us"}, params{"LEASE": "3us", "DELTA": "1us"}
	for _, k := range []struct {
		name   string
		params params
		plan   check.Plan
		long   bool
	}{
		{"a writer and a reader", exact, check.Plan{Ranks: 2, Acquires: 2, Writers: 1, Ticks: 4}, false},
		{"readers", exact, check.Plan{Ranks: 2, Acquires: 2, Writers: 0, Ticks: 4}, false},
		{"two writers and a reader", exact, check.Plan{Ranks: 3, Acquires: 1, Writers: 2, Ticks: 5}, true},
		{"two readers and a writer", exact, check.Plan{Ranks: 3, Acquires: 1, Writers: 1, Ticks: 4}, true},
		{"clocks that differ", differ, check.Plan{Ranks: 2, Acquires: 2, Writers: 1, Ticks: 7, Disturb: ahead}, true},
	} {
		t.Run(k.name, func(t *testing.T) {
			if k.long && locktest.Quick() {
				t.Skip("seconds")
			}
			k.plan.Info, k.plan.MemoryNodes = with(t, "drtm", k.params), 1
			locktest.RunWhole(t, k.plan, sim.Unbounded)
		})
	}
	for _, s := range []sim.Scheduler{sim.Random(1, 0, locktest.Draws(2000)), sim.PCT(1, 3, 0, locktest.Draws(2000))} {
		locktest.RunPlan(t, check.Plan{Info: with(t, "drtm", exact), MemoryNodes: 1, Ranks: 4, Acquires: 3, Writers: check.Mixed, Ticks: 60}, s)
	}
	t.Run("writers", func(t *testing.T) { locktest.RunVariant(t, writers(with(t, "drtm", nil))) })
}

// TestDrTMNeedsDelta: with clocks that differ, and leases that do not allow for it, a writer is
// in before a reader's lease has ended, and the reader is not told.
func TestDrTMNeedsDelta(t *testing.T) {
	plan := check.Plan{Info: with(t, "drtm", params{"LEASE": "3us"}), MemoryNodes: 1, Ranks: 3, Acquires: 1, Writers: 2, Ticks: 7, Disturb: ahead}
	plan.Disturb = func(c rma.Comm, _ func() check.Position) rma.Comm {
		return skewed{c, int64(2-c.Rank()) * 2 * sim.DefaultTickNs} // the writers' are ahead
	}
	r, err := check.Run(plan, sim.Exhaustive(sim.Unbounded))
	if err != nil {
		t.Fatal(err)
	}
	if r.Failure == nil || !errors.Is(r.Failure.Err, check.ErrUntold) {
		t.Errorf("%v, want %v", r.Failure, check.ErrUntold)
	}
}

// TestDrTMMutants: writers of a DrTM with a mistake do not pass.
func TestDrTMMutants(t *testing.T) {
	const why = "while the word has X, only its holder changes it"
	locktest.RunMutantsOf(t, check.Effort{}, []check.Equivalent{
		{Phase: check.Releasing, Step: "CompareAndSwap", Mutation: check.Torn, Why: why},
		{Phase: check.Releasing, Step: "CompareAndSwap", Mutation: check.Blind, Why: why},
		{Phase: check.Releasing, Step: "CompareAndSwap", Mutation: check.Trusting, Why: why},
	}, writers(with(t, "drtm", nil)))
}

// TestDrTMSuite is the suite of all locks, for writers: a reader of a busy machine may lose its
// lease.
func TestDrTMSuite(t *testing.T) {
	locktest.RunOf(t, writers(with(t, "drtm", nil)), inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: 2}.Run)
}

// TestDrTMLeases: readers that Unlock tells nothing have read what no writer was changing, and
// those that lost their lease are told.
func TestDrTMLeases(t *testing.T) {
	err := inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		tab, err := with(t, "drtm", params{"LEASE": "200us"}).Open(c, 1, 0)
		if err != nil {
			return err
		}
		data, err := c.Allocate(rma.CounterSpec("data", 2))
		if err != nil {
			return err
		}
		told := 0
		for i := range 60 {
			if i%4 == c.Rank() {
				err := tab.Lock(background, 0, lock.Exclusive)
				for word := range 2 {
					err = errors.Join(err, data.AccumulateFlush(1, 0, word, rma.Sum))
					c.Sleep(1000)
				}
				if err := errors.Join(err, tab.Unlock(0, lock.Exclusive)); err != nil {
					return err
				}
				continue
			}
			if err := tab.Lock(background, 0, lock.Shared); err != nil {
				return err
			}
			a, err1 := data.GetFlush(0, 0)
			if i%5 == 0 {
				c.Sleep(400_000)
			}
			b, err2 := data.GetFlush(0, 1)
			switch err := tab.Unlock(0, lock.Shared); {
			case errors.Is(err, lock.ErrLeaseLost):
				told++
			case err != nil || err1 != nil || err2 != nil:
				return errors.Join(err, err1, err2)
			case a != b:
				return fmt.Errorf("a reader with a valid lease saw %d and %d", a, b)
			case i%5 == 0:
				return errors.New("a reader that slept for two leases was not told")
			}
		}
		if told == 0 {
			return errors.New("no reader was told")
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if v, err := data.GetFlush(0, 0); err != nil || v != 60 {
			return fmt.Errorf("%d writes of 60, %w", v, err)
		}
		return tab.(lock.Checked).Idle()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestDrTMCosts: one CAS exclusively, and to release; one CAS shared, none to join and none to
// release; two to take a lock over whose lease has ended.
func TestDrTMCosts(t *testing.T) {
	err := inproc.Job{Nodes: 1, PerNode: 2, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		var n hook.Tally
		tab, err := with(t, "drtm", params{"LEASE": "20ms"}).Open(hook.Count(c, &n), 1, 0)
		if err != nil {
			return err
		}
		if err := c.Barrier(); err != nil || c.Rank() > 0 {
			return err
		}
		count := func(what string, want int64, err error) {
			if got := n.Ops(rma.KindCompareAndSwap, hook.Far); err != nil || got != want || n.Remote() != got {
				t.Errorf("%s: %v; want %d CompareAndSwaps; counted are\n%v", what, err, want, &n)
			}
			n.Reset()
		}
		n.Reset()
		count("X", 1, tab.Lock(background, 0, lock.Exclusive))
		count("unX", 1, tab.Unlock(0, lock.Exclusive))
		count("S", 1, tab.Lock(background, 0, lock.Shared))
		if err := tab.Unlock(0, lock.Shared); err != nil && !errors.Is(err, lock.ErrLeaseLost) {
			return err
		}
		count("unS", 0, nil)
		c.Sleep(25_000_000)
		count("X after a lease", 2, tab.Lock(background, 0, lock.Exclusive))
		return tab.Unlock(0, lock.Exclusive)
	})
	if err != nil {
		t.Error(err)
	}
}
