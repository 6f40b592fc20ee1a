package declock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/declock"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/sim"
)

// want compares the remote operations since the last call with those that are named.
func want(n *hook.Tally, ops ...rma.Kind) error {
	left := map[rma.Kind]int64{}
	for k := range rma.Kinds {
		left[k] = n.Ops(k, hook.Far)
	}
	for _, k := range ops {
		left[k]--
	}
	for _, v := range left {
		if v != 0 {
			return fmt.Errorf("want %v; counted are\n%v", ops, n)
		}
	}
	n.Reset()
	return nil
}

// TestUncontendedCost: Figure 6, cases 1 and 3. One FetchAndOp to acquire; one and the queue in
// one doorbell to release. A TryLock has a Get and a CompareAndSwap.
func TestUncontendedCost(t *testing.T) {
	var n hook.Tally
	err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		l, err := declock.New(hook.Count(c, &n), declock.Config{Lease: 60e9})
		if err != nil {
			return err
		}
		n.Reset()
		for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
			if err := errors.Join(l.Lock(background, 0, mode), want(&n, rma.KindFetchAndOp)); err != nil {
				return err
			}
			if err := errors.Join(l.Unlock(0, mode), want(&n, rma.KindFetchAndOp, rma.KindGetBulk)); err != nil {
				return err
			}
			got, err := l.TryLock(0, mode)
			if err := errors.Join(err, want(&n, rma.KindGet, rma.KindCompareAndSwap), l.Unlock(0, mode), want(&n, rma.KindFetchAndOp, rma.KindGetBulk)); err != nil || !got {
				return fmt.Errorf("TryLock: %v, %w", got, err)
			}
		}
		return l.Free()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestHandOverCost: Figure 6, cases 2, 4 and 5. A rank that waits makes two operations on the
// memory node, and each hand-over one message.
func TestHandOverCost(t *testing.T) {
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		t.Run(mode.String(), func(t *testing.T) {
			err := inproc.Job{Nodes: 3, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
				var n hook.Tally
				l, err := declock.New(hook.Count(c, &n), declock.Config{Lease: 60e9})
				if err != nil {
					return err
				}
				if c.Rank() == 0 {
					err = l.Lock(background, 0, lock.Exclusive)
				}
				if err := errors.Join(err, c.Barrier()); err != nil {
					return err
				}
				n.Reset()
				if c.Rank() > 0 {
					return errors.Join(l.Lock(background, 0, mode), want(&n, rma.KindFetchAndOp, rma.KindPut), l.Unlock(0, mode), c.Barrier())
				}
				for waiting := 0; waiting < 2; c.Sleep(100_000) { // until both have written their entries
					waiting = 0
					for rank := 1; rank <= 2; rank++ {
						if l.Waits(rank, 0) {
							waiting++
						}
					}
				}
				n.Reset()
				ops := []rma.Kind{rma.KindFetchAndOp, rma.KindGetBulk, rma.KindPut}
				if mode == lock.Shared { // both are told; and a look whether their entries were overwritten
					ops = append(ops, rma.KindPut, rma.KindGet)
				}
				return errors.Join(l.Unlock(0, lock.Exclusive), want(&n, ops...), c.Barrier())
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLocalHandOver: inside a node a writer hands over to the first rank of the list without a remote
// operation, if that is a writer too; phase-fair also with a reader behind (F10:24, F10:25: readers
// come first only where the node takes the lock again).
func TestLocalHandOver(t *testing.T) {
	for _, policy := range []declock.Policy{declock.TaskFair, declock.PhaseFair, declock.LocalPrefer, declock.LocalBound} {
		err := inproc.Job{Nodes: 1, PerNode: 3, MemoryNodes: 1}.Run(func(c rma.Comm) error {
			var n hook.Tally
			l, err := declock.New(hook.Count(c, &n), declock.Config{Lease: 60e9, Policy: policy})
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				err = l.Lock(background, 0, lock.Exclusive)
			}
			err = errors.Join(err, c.Barrier())
			others := []int{2, 0, 1}[c.Rank()] // in the list before this rank goes on
			for listed := -1; listed < others && err == nil; c.Sleep(100_000) {
				listed, err = l.Listed(0)
			}
			n.Reset()
			switch c.Rank() {
			case 0:
				err = errors.Join(err, l.Unlock(0, lock.Exclusive), want(&n))
			case 1:
				err = errors.Join(err, l.Lock(background, 0, lock.Exclusive), l.Unlock(0, lock.Exclusive))
			case 2:
				err = errors.Join(err, l.Lock(background, 0, lock.Shared), l.Unlock(0, lock.Shared))
			}
			return errors.Join(err, c.Barrier())
		})
		if err != nil {
			t.Errorf("policy %d: %v", policy, err)
		}
	}
}

// TestResetCost: section 4.4. A reset reads the parts of all other ranks once, many of them in one
// flush, and again those of the ranks that had one. Each rank that waits is told once.
func TestResetCost(t *testing.T) {
	const ranks, waiting = 100, 60
	node := make([]int, ranks)
	for r := range node {
		node[r] = r
	}
	for _, queue := range []int{0, waiting} {
		var n hook.Tally
		_, err := sim.Timed{Node: node, MemoryNodes: 1, Model: cx4(t, node), Verbs: true}.Run(func(c rma.Comm) error {
			if c.Rank() == 0 {
				c = hook.Count(c, &n)
			}
			l, err := declock.New(c, declock.Config{Lease: -1, Held: 1})
			if err != nil {
				return err
			}
			switch {
			case c.Rank() == 0:
				c.Sleep(1_000_000) // until all wait
				n.Reset()
				err = l.Reset(0)
			case c.Rank() == 1 && queue > 0: // holds the lock until it is stopped
				err = l.Lock(background, 0, lock.Exclusive)
				for stopped := false; !stopped && err == nil; c.Sleep(1000) {
					stopped, err = l.Stopped(0)
				}
				err = errors.Join(err, l.Unlock(0, lock.Exclusive))
			case c.Rank() <= 1+queue && queue > 0:
				c.Sleep(100_000)
				err = errors.Join(l.Lock(background, 0, lock.Exclusive), l.Unlock(0, lock.Exclusive))
			}
			return errors.Join(err, c.Barrier(), l.Free())
		})
		reads, told, flushes := n.Ops(rma.KindGetBulk, hook.Far), n.Ops(rma.KindPut, hook.Far), n.FlushAlls()
		t.Logf("%d of %d ranks wait: %d reads of parts, %d messages, %d flushes of them", queue, ranks, reads, told, flushes)
		again, most := int64(0), int64(4)
		if queue > 0 {
			again, most = int64(queue)+1, 4+1+3
		}
		if err != nil || told != int64(queue) || reads < ranks-1+again || reads > ranks-1+again || flushes > most {
			t.Errorf("%d of %d ranks wait: %d reads of parts, %d messages, %d flushes of them; error %v", queue, ranks, reads, told, flushes, err)
		}
	}
}

// TestNoAllocations: no acquire and no release allocates.
func TestNoAllocations(t *testing.T) {
	for _, policy := range []declock.Policy{declock.None, declock.TaskFair} {
		locktest.NoAllocations(t, func(c rma.Comm, locks int) (lock.Table, error) {
			return declock.New(c, declock.Config{Locks: locks, Policy: policy})
		})
	}
}

// TestBadConfig: each nonsense is refused with what is wrong.
func TestBadConfig(t *testing.T) {
	for _, bad := range []declock.Config{
		{Locks: -1}, {Home: 1}, {Home: -1}, {Capacity: 3}, {Capacity: -1}, {VersionBits: 1}, {VersionBits: 17},
		{EpochBits: -1}, {EpochBits: 9}, {Held: 65}, {Held: -1}, {Capacity: 1 << 21},
	} {
		err := inproc.Run(1, func(c rma.Comm) error { _, err := declock.New(c, bad); return err })
		if !errors.Is(err, lock.ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", bad, err)
		}
	}
	info, _ := lock.Lookup("declock")
	for name, value := range map[string]string{"CAPACITY": "3", "VERSION": "x", "EPOCH": "0", "HELD": "many", "LEASE": "-1s", "WHAT": "1"} {
		err := inproc.Run(1, func(c rma.Comm) error {
			_, err := info.With(c, lock.Setting{Locks: 1, Params: map[string]string{name: value}})
			return err
		})
		if !errors.Is(err, lock.ErrConfig) {
			t.Errorf("%s=%s: %v, want ErrConfig", name, value, err)
		}
	}
	good := map[string]string{"CAPACITY": "4", "VERSION": "8", "EPOCH": "4", "HELD": "2", "LEASE": "1ms"}
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

// TestBadWindow: a window of the caller's that does not have the words of the locks is refused.
func TestBadWindow(t *testing.T) {
	err := inproc.Job{Nodes: 1, PerNode: 2, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		cfg := declock.Config{Locks: 2}
		words, err := declock.Regions(c, cfg)
		if err != nil {
			return err
		}
		at := rma.Spec{Name: "data", Hosts: rma.MemoryNodes, Regions: append([]rma.Region{{Count: 1, Words: []rma.Word{{Name: "DATA", Class: rma.Plain}}}}, words...)}
		ranks := at
		ranks.Hosts = rma.Ranks
		for _, k := range []struct {
			spec rma.Spec
			at   int
			want string
		}{{at, 1, ""}, {at, 0, "class"}, {at, 2, "has 8 words a host, of which the locks need 7"}, {at, -1, "At is -1"}, {ranks, 1, "2 hosts"}} {
			w, err := c.Allocate(k.spec)
			if err != nil {
				return err
			}
			cfg.Window, cfg.At = w, k.at
			l, err := declock.New(c, cfg)
			if k.want == "" {
				err = errors.Join(err, l.Lock(background, 1, lock.Exclusive), l.Unlock(1, lock.Exclusive), l.Idle())
			} else if errors.Is(err, lock.ErrConfig) && strings.Contains(err.Error(), k.want) {
				err = nil
			} else {
				err = fmt.Errorf("want an error with %q, got %v", k.want, err)
			}
			if err := errors.Join(err, c.Barrier(), w.Free()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	_, err = lock.Info{Name: "other"}.With(nil, lock.Setting{Locks: 1, Window: new(rma.Window)})
	if !errors.Is(err, lock.ErrConfig) {
		t.Errorf("a window for a lock that has its own: %v", err)
	}
}

// TestMemory: a lock takes 8 + 8 * capacity bytes at its home, and what a node has for 100,000
// locks is at most 20 MB: section 5.1.
func TestMemory(t *testing.T) {
	const locks = 100_000
	err := inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		l, err := declock.New(c, declock.Config{Locks: locks, Policy: declock.TaskFair, Lease: 60e9})
		if err != nil {
			return err
		}
		central, node := l.Bytes()
		if want := locks * (8 + 8*2); central != want+8 { // and the word of Synchronise
			return fmt.Errorf("the locks take %d bytes, want %d", central, want)
		}
		if node > 20_000_000 {
			return fmt.Errorf("a node takes %d bytes", node)
		}
		for range 2 {
			if err := l.Synchronise(); err != nil {
				return err
			}
		}
		return errors.Join(l.Lock(background, 7, lock.Exclusive), l.Unlock(7, lock.Exclusive))
	})
	if err != nil {
		t.Error(err)
	}
}
