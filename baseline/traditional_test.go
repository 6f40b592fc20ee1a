package baseline_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/sim"
)

// TestTraditionalSearch: two clients and a server on all schedules, three up to 2 preemptions,
// and more at random, with queues that time out.
func TestTraditionalSearch(t *testing.T) {
	t.Run("queue", func(t *testing.T) { locktest.RunVariant(t, with(t, "traditional", nil)) })
	t.Run("readers pass", func(t *testing.T) {
		for _, s := range []sim.Scheduler{sim.Random(1, 0, locktest.Draws(1000)), sim.PCT(1, 3, 0, locktest.Draws(1000))} {
			locktest.RunPlan(t, check.Plan{Info: with(t, "traditional-ro", params{"PASSES": "2"}), Ranks: 6, Acquires: 4, Writers: 1, Guard: true, Tries: true}, s)
			locktest.RunPlan(t, check.Plan{Info: with(t, "traditional", params{"SERVERS": "2"}), Ranks: 6, Acquires: 3, Writers: check.Mixed, Guard: true}, s)
		}
	})
}

// TestTraditionalMutants: ranks that take locks with a mistake do not pass. What a server does is
// outside of their visits, and not mistaken.
func TestTraditionalMutants(t *testing.T) {
	const once = "the word changes once while the rank waits, to what it waits for"
	equivalent := []check.Equivalent{{
		Phase: check.Acquiring, Step: "Flush of Get", Mutation: check.NoFlush,
		Why: "0 is no answer, so that the rank looks again, or asks whether it has the lock",
	}}
	for _, phase := range []check.Phase{check.Acquiring, check.Trying, check.Releasing} {
		equivalent = append(equivalent, check.Equivalent{Phase: phase, Step: "Await", Mutation: check.AnyChange, Why: once})
	}
	locktest.RunMutantsOf(t, check.Effort{}, equivalent, with(t, "traditional", nil))
}

// TestTraditional: clients count right under locks of two servers, with tries, deadlines, and
// several locks held.
func TestTraditional(t *testing.T) {
	for _, name := range []string{"traditional", "traditional-ro"} {
		info := with(t, name, params{"SERVERS": "2", "TIMEOUT": "20ms"})
		t.Run(name, func(t *testing.T) {
			for _, job := range []inproc.Job{{Nodes: 1, PerNode: 3}, {Nodes: 2, PerNode: 3}} {
				if err := job.Run(func(c rma.Comm) error { return served(c, info) }); err != nil {
					t.Errorf("%+v: %v", job, err)
				}
			}
		})
	}
}

func served(c rma.Comm, info lock.Info) error {
	const locks, rounds = 5, 100
	tab, err := info.Open(c, locks, 0)
	if err != nil {
		return err
	}
	data, err := c.Allocate(rma.DataSpec("data", 2*locks))
	if err != nil {
		return err
	}
	wrote := make([]int64, locks)
	one := func(i, id int, mode lock.Mode) error {
		a, err1 := data.GetFlush(0, 2*id)
		b, err2 := data.GetFlush(0, 2*id+1)
		if err := errors.Join(err1, err2); err != nil || a != b {
			return fmt.Errorf("round %d: %d and %d, %w", i, a, b, err)
		}
		if mode == lock.Exclusive {
			wrote[id]++
			return errors.Join(data.PutFlush(a+1, 0, 2*id), data.PutFlush(b+1, 0, 2*id+1))
		}
		return nil
	}
	for i := range rounds {
		if lock.Serves(tab) {
			break
		}
		id, mode := i%locks, lock.Mode((i+c.Rank())%2)
		var err error
		got := true
		switch i % 4 {
		case 0:
			got, err = tab.TryLock(id, mode)
		case 1:
			ctx, cancel := context.WithTimeout(background, time.Duration(i)*20*time.Microsecond)
			err = tab.Lock(ctx, id, mode)
			cancel()
			if errors.Is(err, lock.ErrDeadline) {
				got, err = false, nil
			}
		case 2: // two at once, in any order
			err = tab.Lock(background, id, mode)
			if err == nil {
				other := (id + 1 + c.Rank()) % locks
				if other == id {
					other = (id + 1) % locks
				}
				if err = tab.Lock(background, other, lock.Exclusive); err == nil {
					err = errors.Join(one(i, other, lock.Exclusive), tab.Unlock(other, lock.Exclusive))
				} else if errors.Is(err, lock.ErrGiveWay) {
					err = nil
				}
			}
		default:
			err = tab.Lock(background, id, mode)
		}
		if err != nil {
			return err
		}
		if got {
			if err := errors.Join(one(i, id, mode), tab.Unlock(id, mode)); err != nil {
				return err
			}
		}
	}
	if err := lock.Leave(tab); err != nil {
		return err
	}
	all, err := c.Allgather(wrote)
	if err != nil {
		return err
	}
	for id := range locks {
		want := int64(0)
		for r := range c.Size() {
			want += all[r*locks+id]
		}
		if v, err := data.GetFlush(0, 2*id); err != nil || v != want {
			return fmt.Errorf("lock %d: counted to %d, want %d, %w", id, v, want, err)
		}
	}
	if err := errors.Join(tab.(lock.Checked).Idle(), c.Barrier()); err != nil {
		return err
	}
	// And once more after a collective call.
	if !lock.Serves(tab) {
		err = errors.Join(tab.Lock(background, 0, lock.Shared), tab.Unlock(0, lock.Shared))
	}
	return errors.Join(err, lock.Leave(tab), c.Barrier(), tab.Free())
}

// TestTraditionalCosts: a request is two Puts, one for the server to see and one for it to wake
// up; a grant after a wait costs its client nothing.
func TestTraditionalCosts(t *testing.T) {
	var waited atomic.Int64
	err := inproc.RunNodes(3, 1, func(c rma.Comm) error {
		var n hook.Tally
		tab, err := with(t, "traditional", nil).Open(hook.Count(c, &n), 1, 0)
		if err != nil {
			return err
		}
		count := func(what string, puts int64, err error) error {
			if p, b := n.Ops(rma.KindPut, hook.Far), n.Ops(rma.KindPutBulk, hook.Far); err != nil || p != puts || b != puts || n.Remote() != p+b {
				return fmt.Errorf("%s: %w; want %d Puts and as many bulk ones; counted are\n%v", what, err, puts, &n)
			}
			n.Reset()
			return nil
		}
		switch n.Reset(); c.Rank() {
		case 0:
			if err := count("X", 1, tab.Lock(background, 0, lock.Exclusive)); err != nil {
				return err
			}
			for waited.Load() == 0 {
				c.Sleep(10_000)
			}
			c.Sleep(500_000)
			if err := count("unX", 1, tab.Unlock(0, lock.Exclusive)); err != nil {
				return err
			}
		case 1:
			got := true
			for got { // until rank 0 has it
				if got, err = tab.TryLock(0, lock.Exclusive); got {
					err = errors.Join(err, tab.Unlock(0, lock.Exclusive))
				}
				if err != nil {
					return err
				}
			}
			n.Reset()
			waited.Store(1)
			if err := count("S after a wait", 1, tab.Lock(background, 0, lock.Shared)); err != nil {
				return err
			}
			if err := count("unS", 1, tab.Unlock(0, lock.Shared)); err != nil {
				return err
			}
		}
		return errors.Join(lock.Leave(tab), c.Barrier(), tab.Free())
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNoServers: a job in which no rank could serve, or none could take locks, is refused, and a
// rank that serves takes no lock.
func TestNoServers(t *testing.T) {
	for _, cfg := range []baseline.TraditionalConfig{{}, {Servers: 2}, {Servers: -1}, {Locks: -1}, {TimeoutNs: -1}, {Passes: -1}} {
		err := inproc.Run(1, func(c rma.Comm) error { _, err := baseline.NewTraditional(c, cfg); return err })
		if !errors.Is(err, lock.ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", cfg, err)
		}
	}
	err := inproc.Run(2, func(c rma.Comm) error {
		tab, err := baseline.NewTraditional(c, baseline.TraditionalConfig{})
		if err != nil {
			return err
		}
		if tab.Serves() {
			func() {
				defer func() {
					if recover() == nil {
						err = errors.New("a rank that serves took a lock")
					}
				}()
				_ = tab.Lock(background, 0, lock.Exclusive)
			}()
		}
		return errors.Join(err, lock.Leave(tab), c.Barrier(), tab.Free())
	})
	if err != nil {
		t.Error(err)
	}
}
