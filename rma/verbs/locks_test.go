//go:build cgo && verbs

package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/verbs"
	"github.com/stretchr/testify/require"

	_ "github.com/rmalock/rmalock/alock"
	_ "github.com/rmalock/rmalock/baseline"
	_ "github.com/rmalock/rmalock/declock"
	_ "github.com/rmalock/rmalock/dmcs"
	_ "github.com/rmalock/rmalock/rmamcs"
	_ "github.com/rmalock/rmalock/rmarw"
	_ "github.com/rmalock/rmalock/shiftlock"
)

// patient is a registered lock with leases that a guest keeps.
func patient(info lock.Info) lock.Info {
	for _, p := range info.Params {
		if p.Name != "LEASE" {
			continue
		}
		lease := "2s"
		if info.Name == "drtm" { // a writer waits for the leases of readers
			lease = "50ms"
		}
		with := info
		info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
			return with.With(c, lock.Setting{Locks: n, Home: home, Params: map[string]string{"LEASE": lease}})
		}
		return info
	}
	return info
}

// paper has the locks of rma-rw, whose whole suite runs also in short mode.
var paper = []string{"dmcs", "rmamcs", "rmarw"}

// TestLocks: every lock between nodes that reach each other, and a memory node, through the
// device.
func TestLocks(t *testing.T) {
	needDevice(t)
	for _, info := range lock.All() {
		t.Run(info.Name, func(t *testing.T) {
			cfg := verbs.Config{Nodes: 2}
			if !slices.Contains(paper, info.Name) {
				cfg.MemoryNodes = memoryNodes(t, 1, 1<<16)
			}
			launch := func(body func(rma.Comm) error) error { return cfg.Run(4, body) }
			if info.Serves {
				t.Skip("some of its ranks serve the others: jobs of scripts/test-guest run it")
			}
			info := patient(info)
			if !testing.Short() || slices.Contains(paper, info.Name) {
				locktest.RunOf(t, info, launch)
				return
			}
			for _, k := range locktest.Checks() {
				if !strings.Contains(k.Name, "/") {
					err := launch(func(c rma.Comm) error { return k.Run(c, info) })
					if errors.Is(err, errors.ErrUnsupported) {
						t.Skip(err)
					}
					require.NoError(t, err, k.Name)
				}
			}
		})
	}
}

// TestLockCosts: a rank alone does the same operations on each lock of another node, or of a
// memory node, as on goroutines; and each of its steps is one doorbell and one completion.
func TestLockCosts(t *testing.T) {
	needDevice(t)
	names := memoryNodes(t, 1, 1<<16)
	for _, info := range lock.All() {
		t.Run(info.Name, func(t *testing.T) {
			if info.Serves {
				t.Skip("its last ranks serve, and here the last one works")
			}
			info := patient(info)
			modes := []lock.Mode{lock.Exclusive}
			if info.Shared && info.Name != "drtm" { // whose writers wait until the leases of readers end
				modes = append(modes, lock.Shared)
			}
			// work is rank 1's on a lock of rank 0 or of the memory node.
			work := func(c, through rma.Comm, begin, end func()) error {
				l, err := info.Open(through, 1, 0)
				if err != nil {
					return err
				}
				for round := 0; c.Rank() == 1 && round < 6; round++ {
					if round == 1 { // the first one learns where everything is
						begin()
					}
					for _, m := range modes {
						if err := errors.Join(l.Lock(context.Background(), 0, m), l.Unlock(0, m)); err != nil {
							return err
						}
					}
				}
				if c.Rank() == 1 {
					end()
				}
				return errors.Join(c.Barrier(), l.Free())
			}
			var here, there, card [2]hook.Tally // by rank: as the lock sees it on goroutines and on the device; as a device without a swap sees it
			err := inproc.Job{Nodes: 2, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
				n, k := &here[c.Rank()], &card[c.Rank()]
				through := hook.Count(hook.LikeVerbs(hook.Count(c, k)), n)
				var atBegin, cardAtBegin hook.Tally
				return work(c, through, func() { atBegin, cardAtBegin = n.Snapshot(), k.Snapshot() }, func() { *n, *k = n.Sub(atBegin), k.Sub(cardAtBegin) })
			})
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			}
			require.NoError(t, err)
			var before, after verbs.Counts
			require.NoError(t, verbs.Config{Nodes: 2, MemoryNodes: names}.Run(2, func(c rma.Comm) error {
				n := &there[c.Rank()]
				var atBegin hook.Tally
				return work(c, hook.Count(c, n), func() { atBegin, before = n.Snapshot(), verbs.CountsOf(c, false) }, func() {
					after, *n = verbs.CountsOf(c, false), n.Sub(atBegin)
				})
			}))
			require.Equal(t, here[1].String(), there[1].String(), "what the lock does")
			far := int64(0)
			for k := range rma.Kinds {
				far += card[1].Ops(k, hook.Far)
			}
			operations, lists := after.Operations-before.Operations, after.Doorbells-before.Doorbells
			t.Logf("%d operations of the card in %d lists, %d steps on goroutines; of the lock\n%s", operations, lists, card[1].Flushes(hook.Far)+card[1].FlushAlls(), &there[1])
			require.EqualValues(t, far, operations, "operations of the card")
			require.EqualValues(t, card[1].Flushes(hook.Far)+card[1].FlushAlls(), lists, "doorbells")
			require.Equal(t, lists, after.Completions-before.Completions, "completions")
		})
	}
}

// TestExactSum: fetch-and-adds by ranks of several nodes lose nothing.
func TestExactSum(t *testing.T) {
	needDevice(t)
	per := 10_000
	if testing.Short() {
		per = 1_000
	}
	sum(t, verbs.Config{Nodes: 2, MemoryNodes: memoryNodes(t, 1, 1<<10)}, per)
}

// sum adds in a word of the first memory node, from 4 ranks.
func sum(t *testing.T, cfg verbs.Config, per int) {
	t.Helper()
	spec := rma.CounterSpec("count", 1)
	spec.Hosts = rma.MemoryNodes
	require.NoError(t, cfg.Run(4, func(c rma.Comm) error {
		w, err := c.Allocate(spec)
		if err != nil {
			return err
		}
		for range per {
			if err := w.AccumulateFlush(1, 0, 0, rma.Sum); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if v, err := w.GetFlush(0, 0); err != nil || v != int64(4*per) {
			return fmt.Errorf("the count is %d, want %d; %w", v, 4*per, err)
		}
		return w.Free()
	}))
}

// TestOneFetchAndAdd: an acquire of a free DSLR lock is one fetch-and-add, and so is its release; a
// lock has 8 bytes. In the memory of ranks and of memory nodes.
func TestOneFetchAndAdd(t *testing.T) {
	needDevice(t)
	for _, names := range [][]string{nil, memoryNodes(t, 2, 1<<12)} {
		require.NoError(t, verbs.Config{Nodes: 2, MemoryNodes: names}.Run(4, func(c rma.Comm) error {
			return locktest.OneFetchAndAdd(c, func(c rma.Comm, locks int) (lock.Table, error) {
				return dslr.New(c, dslr.Config{Locks: locks, Lease: int64(time.Minute)})
			})
		}))
	}
}

// TestLockClientsAreKilled: clients of a memory node, processes of their own, are killed while one
// holds a lock and one waits for it. The next client has it within two leases, or soon after: a
// guest is slow.
func TestLockClientsAreKilled(t *testing.T) {
	needDevice(t)
	const lease = 2 * time.Second
	names := memoryNodes(t, 1, 1<<12)
	client := func(t *testing.T) (*verbs.Process, *verbs.Client, *dslr.Table) {
		t.Helper()
		p, err := verbs.Config{MemoryNodes: names}.Dial()
		require.NoError(t, err)
		c, err := p.Join()
		require.NoError(t, err)
		l, err := dslr.New(c, dslr.Config{Lease: int64(lease)})
		require.NoError(t, err)
		return p, c, l
	}
	p, c, l := client(t)
	var children []*exec.Cmd
	for range 2 {
		child := exec.Command(os.Args[0], "-test.run=^TestChildHolder$")
		child.Env = append(os.Environ(), "RMALOCK_CHILD=holder", "RMALOCK_MN="+names[0], fmt.Sprint("RMALOCK_LEASE=", int64(lease)))
		out := new(lockedBuffer)
		child.Stdout = out
		require.NoError(t, child.Start())
		children = append(children, child)
		want := "holds"
		if len(children) == 2 {
			want = "waits"
		}
		require.Eventually(t, func() bool { return strings.Contains(out.String(), want) }, time.Minute, time.Millisecond, want)
	}
	for _, child := range children {
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
	}
	began := time.Now()
	err := l.Lock(context.Background(), 0, lock.Exclusive)
	took := time.Since(began)
	require.True(t, err == nil || errors.Is(err, lock.ErrOwnerDied), "%v", err)
	t.Logf("the lock after %v, %.2f leases: %v", took, took.Seconds()/lease.Seconds(), err)
	require.Less(t, took, time.Minute)
	require.NoError(t, l.Unlock(0, lock.Exclusive))
	require.NoError(t, errors.Join(l.Free(), c.Leave(), p.Close()))
}

// TestChildHolder is a client that TestLockClientsAreKilled kills.
func TestChildHolder(t *testing.T) {
	if os.Getenv("RMALOCK_CHILD") != "holder" {
		t.Skip("a part of TestLockClientsAreKilled")
	}
	cfg, err := verbs.FromEnvironment()
	require.NoError(t, err)
	lease, err := strconv.ParseInt(os.Getenv("RMALOCK_LEASE"), 10, 64)
	require.NoError(t, err)
	p, err := cfg.Dial()
	require.NoError(t, err)
	c, err := p.Join()
	require.NoError(t, err)
	l, err := dslr.New(c, dslr.Config{Lease: lease})
	require.NoError(t, err)
	got, err := l.TryLock(0, lock.Exclusive)
	require.NoError(t, err)
	if got {
		fmt.Println("holds")
		select {}
	}
	time.AfterFunc(time.Duration(lease/10), func() { fmt.Println("waits") }) // by then it has its ticket
	t.Error(l.Lock(context.Background(), 0, lock.Exclusive))
}

// TestALockBothCohorts: ranks to which a lock is local, and ranks to which it is remote, on one
// lock: each acquires it as often, and a counter that it guards is exact. The counter is two plain
// words: the local ranks load and store them, the card reads and writes them for the others.
func TestALockBothCohorts(t *testing.T) {
	needDevice(t)
	acquires := 10_000
	if testing.Short() {
		acquires = 300
	}
	for _, name := range []string{"alock", "alock-rw"} {
		t.Run(name, func(t *testing.T) {
			info, err := lock.Lookup(name)
			require.NoError(t, err)
			began := time.Now()
			require.NoError(t, verbs.Config{Nodes: 2}.Run(4, func(c rma.Comm) error {
				l, err := info.Open(c, 1, 0)
				if err != nil {
					return err
				}
				w, err := c.Allocate(rma.DataSpec("count", 2))
				if err != nil {
					return err
				}
				for i := range acquires {
					if err := l.Lock(context.Background(), 0, lock.Exclusive); err != nil {
						return err
					}
					a, b := w.Get(0, 0), w.Get(0, 1)
					if err := w.Flush(0); err != nil {
						return err
					}
					if w.Value(a) != w.Value(b) {
						return fmt.Errorf("acquire %d of rank %d: the words are %d and %d", i, c.Rank(), w.Value(a), w.Value(b))
					}
					w.Put(w.Value(a)+1, 0, 0)
					w.Put(w.Value(a)+1, 0, 1)
					if err := errors.Join(w.Flush(0), l.Unlock(0, lock.Exclusive)); err != nil {
						return err
					}
				}
				if err := c.Barrier(); err != nil {
					return err
				}
				if v, err := w.GetFlush(0, 0); err != nil || v != int64(4*acquires) {
					return fmt.Errorf("the count is %d, want %d; %w", v, 4*acquires, err)
				}
				return errors.Join(w.Free(), l.Free())
			}))
			t.Logf("%d acquires of 2 local and 2 remote ranks each in %v", acquires, time.Since(began))
		})
	}
}
