package dslr_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

var background = context.Background()

// patient is DSLR with a lease that no rank of a busy machine exceeds.
func patient(cfg dslr.Config) lock.Info {
	info, err := lock.Lookup("dslr")
	if err != nil {
		panic(err)
	}
	cfg.Lease = 60e9
	info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		cfg := cfg
		cfg.Locks, cfg.Home = n, home
		return dslr.New(c, cfg)
	}
	return info
}

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
			locktest.RunOf(t, patient(dslr.Config{}), job.Run)
		})
	}
}

// TestLockWith: the suite, for each way that the lock can be set up.
func TestLockWith(t *testing.T) {
	for name, cfg := range map[string]dslr.Config{
		"release by CAS": {Release: dslr.ReleaseByCAS},
		"updates":        {Updates: true},
		"paces":          {Omega: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.RunOf(t, patient(cfg), inproc.Job{Nodes: 2, PerNode: 3}.Run)
		})
	}
}

// TestResets: ranks that write and read count right while the counters are reset, in either way.
func TestResets(t *testing.T) {
	for name, cfg := range map[string]dslr.Config{
		"1 ticket":         {CountMax: 1},
		"3 tickets":        {CountMax: 3},
		"exact, 3 tickets": {CountMax: 3, Reset: dslr.ResetExact, BackoffLast: 200_000},
		"by CAS":           {CountMax: 2, Release: dslr.ReleaseByCAS},
		"updates":          {CountMax: 4, Updates: true},
		"several slots":    {CountMax: 5, MaxSlots: 3},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Lease, cfg.BackoffFirst = 60e9, 1000
			err := inproc.Job{Nodes: 2, PerNode: 3, MemoryNodes: 1}.Run(func(c rma.Comm) error { return count(c, cfg) })
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// count has every rank write and read words that lock 0 guards.
func count(c rma.Comm, cfg dslr.Config) error {
	const rounds = 300
	locks, err := dslr.New(c, cfg)
	if err != nil {
		return err
	}
	data, err := c.Allocate(rma.DataSpec("data", 2))
	if err != nil {
		return err
	}
	for i := range rounds {
		mode := lock.Mode(i % 2)
		if err := locks.LockFor(background, 0, mode, 1+i%int(max(1, cfg.MaxSlots))); err != nil {
			return err
		}
		a, err := data.GetFlush(0, 0)
		if err == nil && mode == lock.Exclusive {
			err = errors.Join(data.PutFlush(a+1, 0, 0), data.PutFlush(a+1, 0, 1))
			a++
		}
		b, err2 := data.GetFlush(0, 1)
		if err := errors.Join(err, err2); err != nil || a != b {
			return fmt.Errorf("round %d: the words are %d and %d, %w", i, a, b, err)
		}
		if err := locks.Unlock(0, mode); err != nil {
			return err
		}
	}
	if err := errors.Join(c.Barrier(), locks.Idle()); err != nil {
		return err
	}
	if n, err := data.GetFlush(0, 0); err != nil || n != int64(c.Size()*rounds/2) {
		return fmt.Errorf("counted to %d, %w, want %d", n, err, c.Size()*rounds/2)
	}
	return errors.Join(c.Barrier(), data.Free(), locks.Free())
}
