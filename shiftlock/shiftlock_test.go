package shiftlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/shiftlock"
)

var background = context.Background()

// patient is a lock with a lease that no rank of a busy machine exceeds.
const patient = "60s"

// TestLock: the suite of all locks, on ranks' memory and on memory nodes.
func TestLock(t *testing.T) {
	jobs := []inproc.Job{
		{Nodes: 1, PerNode: 1}, {Nodes: 1, PerNode: 3}, {Nodes: 1, PerNode: 8}, {Nodes: 3, PerNode: 2},
		{Nodes: 1, PerNode: 4, MemoryNodes: 1}, {Nodes: 2, PerNode: 2, MemoryNodes: 5},
	}
	if locktest.Quick() {
		jobs = jobs[2:5]
	}
	for _, job := range jobs {
		t.Run(fmt.Sprintf("%dx%d+%d", job.Nodes, job.PerNode, job.MemoryNodes), func(t *testing.T) {
			locktest.RunOf(t, set(params{"LEASE": patient}), job.Run)
		})
	}
}

// TestLockWith: the suite, for other ways to set up the lock.
func TestLockWith(t *testing.T) {
	for name, p := range map[string]params{
		"by CAS":    {"LEASE": patient, "RELEASE": "cas", "K": "1"},
		"no leases": {"LEASE": "off", "TRIES": "0", "K": "2"},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.RunOf(t, set(p), inproc.Job{Nodes: 2, PerNode: 3}.Run)
		})
	}
}

// counted is a table on which operations on LOCK and on mailboxes of other ranks are counted.
func counted(c rma.Comm, n *hook.Tally, cfg shiftlock.Config) (*shiftlock.Table, error) {
	cfg.Lease = 60e9
	return shiftlock.New(hook.Count(c, n), cfg)
}

// ops compares the operations that were counted since the last call with those expected.
func ops(n *hook.Tally, what string, want map[rma.Kind]int64) error {
	defer n.Reset()
	for k := range rma.Kinds {
		if got := n.Ops(k, hook.Far); got != want[k] {
			return fmt.Errorf("%s: %d times %v, want %d; counted are\n%v", what, got, k, want[k], n)
		}
	}
	return nil
}

// TestUncontendedCost: a writer has a MaskedSwap to acquire, and one CompareAndSwap to release; a
// reader one FetchAndOp for each.
func TestUncontendedCost(t *testing.T) {
	const get, cas, fao, masked = rma.KindGet, rma.KindCompareAndSwap, rma.KindFetchAndOp, rma.KindMaskedSwap
	type counts = map[rma.Kind]int64
	var n hook.Tally
	err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		l, err := counted(c, &n, shiftlock.Config{})
		if err != nil {
			return err
		}
		for range 3 {
			err := errors.Join(
				l.Lock(background, 0, lock.Exclusive), ops(&n, "a writer's Lock", counts{masked: 1}),
				l.Unlock(0, lock.Exclusive), ops(&n, "its Unlock", counts{cas: 1}),
				l.Lock(background, 0, lock.Shared), ops(&n, "a reader's Lock", counts{fao: 1}),
				l.Unlock(0, lock.Shared), ops(&n, "its Unlock", counts{fao: 1}))
			if err != nil {
				return err
			}
		}
		for mode, want := range map[lock.Mode]counts{lock.Exclusive: {masked: 1}, lock.Shared: {get: 1, cas: 1}} {
			got, err := l.TryLock(0, mode)
			if err := errors.Join(err, ops(&n, "TryLock", want), l.Unlock(0, mode)); err != nil || !got {
				return fmt.Errorf("TryLock: %v, %w", got, err)
			}
			n.Reset()
		}
		return l.Free()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestHandOverCost: a writer that another one waits for hands the lock over by one message, and
// without an operation on the memory node.
func TestHandOverCost(t *testing.T) {
	if rmatest.RaceEnabled {
		t.Skip("it looks at the others' counts while they count")
	}
	var n [3]hook.Tally
	err := inproc.Job{Nodes: 3, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		me := c.Rank()
		l, err := counted(c, &n[me], shiftlock.Config{Tries: -1})
		if err != nil {
			return err
		}
		if me == 0 {
			err = l.Lock(background, 0, lock.Exclusive)
		}
		n[me].Reset()
		if err := errors.Join(err, c.Barrier()); err != nil {
			return err
		}
		if me == 0 {
			for n[1].Ops(rma.KindPut, hook.Far)+n[2].Ops(rma.KindPut, hook.Far) < 2 { // both are in the queue
				c.Sleep(1_000_000)
			}
			c.Sleep(20_000_000)
			return errors.Join(l.Unlock(0, lock.Exclusive), ops(&n[0], "a hand-over", map[rma.Kind]int64{rma.KindPut: 1}))
		}
		if err := l.Lock(background, 0, lock.Exclusive); err != nil {
			return err
		}
		if got := n[me].Ops(rma.KindPut, hook.Far); got != 1 {
			return fmt.Errorf("a writer that waits sends %d messages, want 1", got)
		}
		if got := n[me].Ops(rma.KindMaskedSwap, hook.Far); got != 1 {
			return fmt.Errorf("a writer that waits makes %d masked swaps, want 1", got)
		}
		return l.Unlock(0, lock.Exclusive)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNoAllocations: no acquire allocates.
func TestNoAllocations(t *testing.T) {
	locktest.NoAllocations(t, func(c rma.Comm, locks int) (lock.Table, error) {
		return shiftlock.New(c, shiftlock.Config{Locks: locks})
	})
}

// TestManyHeld: a rank holds as many locks as it has slots, and not one more.
func TestManyHeld(t *testing.T) {
	err := inproc.Run(2, func(c rma.Comm) error {
		l, err := shiftlock.New(c, shiftlock.Config{Locks: 2*shiftlock.MaxHeld + 1, Lease: 60e9})
		if err != nil {
			return err
		}
		first := c.Rank() * shiftlock.MaxHeld
		for id := range shiftlock.MaxHeld {
			err = errors.Join(err, l.Lock(background, first+id, lock.Mode(id%2)))
		}
		if more := l.Lock(background, 2*shiftlock.MaxHeld, lock.Shared); !errors.Is(more, lock.ErrTooManyHeld) {
			return fmt.Errorf("one lock too many: %w", more)
		}
		for id := range shiftlock.MaxHeld {
			err = errors.Join(err, l.Unlock(first+id, lock.Mode(id%2)))
		}
		return errors.Join(err, c.Barrier(), l.Idle())
	})
	if err != nil {
		t.Error(err)
	}
}

// TestBadConfig: each nonsense is refused with what is wrong.
func TestBadConfig(t *testing.T) {
	for _, bad := range []shiftlock.Config{
		{Locks: -1}, {Locks: 1<<24 + 1}, {Home: 1}, {Home: -1}, {K: -1}, {K: 17}, {Tries: 21}, {Release: 2},
	} {
		err := inproc.Run(1, func(c rma.Comm) error { _, err := shiftlock.New(c, bad); return err })
		if !errors.Is(err, lock.ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", bad, err)
		}
	}
	info, _ := lock.Lookup("shiftlock")
	open := func(p params) error {
		return inproc.Run(1, func(c rma.Comm) error {
			l, err := info.With(c, lock.Setting{Locks: 1, Params: p})
			if err != nil {
				return err
			}
			return errors.Join(l.Lock(background, 0, lock.Shared), l.Unlock(0, lock.Shared))
		})
	}
	for name, value := range map[string]string{"LEASE": "0s", "K": "0", "TRIES": "x", "RELEASE": "", "WHAT": "1"} {
		if err := open(params{name: value}); !errors.Is(err, lock.ErrConfig) {
			t.Errorf("%s=%s: %v, want ErrConfig", name, value, err)
		}
	}
	if err := open(params{"LEASE": "1ms", "K": "3", "TRIES": "0", "RELEASE": "cas"}); err != nil {
		t.Error(err)
	}
}
