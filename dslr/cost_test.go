package dslr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// TestUncontendedCost: one FetchAndOp to acquire and one to release, in either mode, and no
// other operation; with leases of several slots too. A TryLock has a Get and a CompareAndSwap.
func TestUncontendedCost(t *testing.T) {
	var n hook.Tally
	count := func(ops ...rma.Kind) error {
		total := int64(0)
		for k := range rma.Kinds {
			total += n.Ops(k, hook.Far)
		}
		for _, k := range ops {
			total -= n.Ops(k, hook.Far)
			if n.Ops(k, hook.Far) != 1 {
				return fmt.Errorf("want one %v; counted are\n%v", k, &n)
			}
		}
		if total != 0 {
			return fmt.Errorf("want %v alone; counted are\n%v", ops, &n)
		}
		n.Reset()
		return nil
	}
	err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		l, err := dslr.New(hook.Count(c, &n), dslr.Config{Lease: 60e9, MaxSlots: 3})
		if err != nil {
			return err
		}
		for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
			for slots := 1; slots <= 3; slots++ {
				if err := errors.Join(l.LockFor(background, 0, mode, slots), count(rma.KindFetchAndOp)); err != nil {
					return err
				}
				if err := errors.Join(l.Unlock(0, mode), count(rma.KindFetchAndOp)); err != nil {
					return err
				}
			}
			got, err := l.TryLock(0, mode)
			if err := errors.Join(err, count(rma.KindGet, rma.KindCompareAndSwap), l.Unlock(0, mode), count(rma.KindFetchAndOp)); err != nil || !got {
				return fmt.Errorf("TryLock: %v, %w", got, err)
			}
		}
		return l.Free()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSlots: a holder of three slots keeps the lock for longer than two leases, against ranks
// that wait.
func TestSlots(t *testing.T) {
	t.Parallel() // it mostly waits
	err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
		l, err := dslr.New(c, dslr.Config{Lease: lease, MaxSlots: 3})
		if err != nil {
			return err
		}
		if err := l.LockFor(background, 0, lock.Exclusive, 4); !errors.Is(err, lock.ErrConfig) {
			return fmt.Errorf("4 slots of 3: %w", err)
		}
		if c.Rank() == 0 {
			err = l.LockFor(background, 0, lock.Exclusive, 3)
		}
		if err := errors.Join(err, c.Barrier()); err != nil {
			return err
		}
		if c.Rank() == 0 {
			c.Sleep(lease * 5 / 2)
			return l.Unlock(0, lock.Exclusive)
		}
		return errors.Join(l.Lock(background, 0, lock.Exclusive), l.Unlock(0, lock.Exclusive), l.Idle())
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTokens: each exclusive holder has a greater token than those before, across resets.
func TestTokens(t *testing.T) {
	err := inproc.Run(1, func(c rma.Comm) error {
		l, err := dslr.New(c, dslr.Config{CountMax: 5})
		last := int64(-1)
		for i := range 30 {
			mode := lock.Mode(i % 3 % 2)
			err = errors.Join(err, l.Lock(background, 0, mode))
			if now := l.Token(0); mode == lock.Exclusive {
				if now <= last {
					return fmt.Errorf("holder %d has token %d after %d", i, now, last)
				}
				last = now
			}
			err = errors.Join(err, l.Unlock(0, mode))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNoAllocations: no acquire allocates, that waits or not.
func TestNoAllocations(t *testing.T) {
	locktest.NoAllocations(t, func(c rma.Comm, locks int) (lock.Table, error) {
		return dslr.New(c, dslr.Config{Locks: locks})
	})
}

// TestBadConfig: each nonsense is refused with what is wrong.
func TestBadConfig(t *testing.T) {
	for _, bad := range []dslr.Config{
		{Locks: -1}, {Home: 1}, {Home: -1}, {Lease: -1}, {Omega: -1}, {MaxSlots: -1}, {CountMax: -1}, {CountMax: 1 << 15},
		{Updates: true, CountMax: 959}, {MaxSlots: 1 << 15}, {MaxSlots: 1<<15 - 1}, {Updates: true, MaxSlots: 704}, {Release: 2}, {Reset: 2},
	} {
		err := inproc.Run(1, func(c rma.Comm) error { _, err := dslr.New(c, bad); return err })
		if !errors.Is(err, lock.ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", bad, err)
		}
	}
	info, _ := lock.Lookup("dslr")
	for name, value := range map[string]string{"LEASE": "-1s", "OMEGA": "x", "COUNTMAX": "many", "RELEASE": "0", "RESET": "", "UPDATES": "yes", "WHAT": "1"} {
		err := inproc.Run(1, func(c rma.Comm) error {
			_, err := info.With(c, lock.Setting{Locks: 1, Params: map[string]string{name: value}})
			return err
		})
		if !errors.Is(err, lock.ErrConfig) {
			t.Errorf("%s=%s: %v, want ErrConfig", name, value, err)
		}
	}
	good := map[string]string{"LEASE": "1ms", "OMEGA": "5us", "COUNTMAX": "30", "RELEASE": "cas", "RESET": "exact", "UPDATES": "on", "BACKOFF": "0"}
	err := inproc.Run(1, func(c rma.Comm) error {
		l, err := info.With(c, lock.Setting{Locks: 1, Params: good})
		if err != nil {
			return err
		}
		return errors.Join(l.Lock(background, 0, lock.Shared), l.Unlock(0, lock.Shared))
	})
	if err != nil {
		t.Error(err)
	}
}
