package declock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/declock"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

var background = context.Background()

// patient is DecLock with a lease that no rank of a busy machine exceeds.
func patient(cfg declock.Config) lock.Info {
	info, err := lock.Lookup("declock")
	if err != nil {
		panic(err)
	}
	cfg.Lease = 60e9
	info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		cfg := cfg
		cfg.Locks, cfg.Home = n, home
		return declock.New(c, cfg)
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
			locktest.RunOf(t, patient(declock.Config{}), job.Run)
		})
	}
}

// TestHierarchy: the suite of all locks for each policy, also where ranks miss their local lock.
func TestHierarchy(t *testing.T) {
	cfgs := map[string]declock.Config{
		"ts-tf":  {Policy: declock.TaskFair},
		"ts-pf":  {Policy: declock.PhaseFair, LocalLocks: 1},
		"remote": {Policy: declock.RemotePrefer},
		"local":  {Policy: declock.LocalPrefer},
		"bound":  {Policy: declock.LocalBound, Bound: 2},
	}
	if locktest.Quick() {
		cfgs = map[string]declock.Config{"ts-tf": cfgs["ts-tf"], "ts-pf": cfgs["ts-pf"]}
	}
	for name, cfg := range cfgs {
		t.Run(name, func(t *testing.T) {
			locktest.RunOf(t, patient(cfg), inproc.Job{Nodes: 2, PerNode: 3, MemoryNodes: 1}.Run)
		})
	}
}

// TestNodeDies: with a hierarchy the ranks of a node die together, one with the lock and one that
// waits for it. Those of other nodes go on, and the first is told.
func TestNodeDies(t *testing.T) {
	t.Parallel() // it mostly waits
	told := make(chan bool, 100)
	err := inproc.Job{Nodes: 3, PerNode: 2, MemoryNodes: 1, MayDie: true}.Run(func(c rma.Comm) error {
		l, err := declock.New(c, declock.Config{Policy: declock.PhaseFair, Lease: 1e9})
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			err = l.Lock(background, 0, lock.Exclusive)
		}
		if err := errors.Join(err, c.Barrier()); err != nil {
			return err
		}
		if c.Node().Index == 0 {
			return rma.ErrDied
		}
		for i := range 5 {
			mode := lock.Mode(i % 2)
			err := l.Lock(background, 0, mode)
			if errors.Is(err, lock.ErrOwnerDied) {
				told <- true
			} else if err != nil {
				return err
			}
			if err := l.Unlock(0, mode); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if len(told) == 0 {
		t.Error("no rank is told that a holder died")
	}
}

// TestResets: ranks that write and read count right while the locks are reset all the time.
func TestResets(t *testing.T) {
	for name, cfg := range map[string]declock.Config{
		"capacity 1":                     {Capacity: 1},
		"capacity 2":                     {Capacity: 2},
		"versions of 2 bits":             {VersionBits: 2, EpochBits: 2},
		"capacity 2, versions of 2 bits": {Capacity: 2, VersionBits: 2, EpochBits: 1},
		"task-fair, versions of 2 bits":  {Policy: declock.TaskFair, VersionBits: 2, StampBits: 3},
		"phase-fair, capacity 1":         {Policy: declock.PhaseFair, Capacity: 1, StampBits: 3},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Lease = 60e9
			err := inproc.Job{Nodes: 2, PerNode: 3, MemoryNodes: 1}.Run(func(c rma.Comm) error { return count(c, cfg) })
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// count has every rank write and read words that lock 0 guards.
func count(c rma.Comm, cfg declock.Config) error {
	const rounds = 200
	locks, err := declock.New(c, cfg)
	if err != nil {
		return err
	}
	data, err := c.Allocate(rma.DataSpec("data", 2))
	if err != nil {
		return err
	}
	for i := range rounds {
		mode := lock.Mode(i % 2)
		if err := locks.Lock(background, 0, mode); err != nil {
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
