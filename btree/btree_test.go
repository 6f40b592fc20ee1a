package btree_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/btree"
	_ "github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// open opens a tree under a lock of its own, or of a table.
func open(c rma.Comm, locks string, words int) (*btree.Tree, error) {
	cfg := btree.Config{Node: words, Nodes: 4000}
	if locks == btree.Vanilla || locks == btree.NH {
		cfg.Own = locks
		return btree.New(c, cfg)
	}
	info, err := lock.Lookup(locks)
	if err != nil {
		return nil, err
	}
	s := lock.Setting{Locks: 16}
	if info.Regions != nil { // in the tree's window
		s.Params = map[string]string{"LEASE": "20s"}
		if cfg.Regions, err = info.Regions(c, s); err != nil {
			return nil, err
		}
		cfg.Open = func(w *rma.Window, at int) (lock.Table, error) {
			s.Window, s.At = w, at
			return info.With(c, s)
		}
		return btree.New(c, cfg)
	}
	if locks == "dslr" { // no lease runs out on a busy machine
		s.Params = map[string]string{"LEASE": "20s"}
	}
	if cfg.Locks, err = info.With(c, s); err != nil {
		return nil, err
	}
	return btree.New(c, cfg)
}

// TestTree: several clients write, delete, read and scan at once, each its own keys among those
// of others; then the tree holds what they wrote last, and its invariants hold.
func TestTree(t *testing.T) {
	for _, locks := range []string{btree.Vanilla, btree.NH, "fompi-rw", "dslr", "declock"} {
		for _, job := range []inproc.Job{{Nodes: 1, PerNode: 3}, {Nodes: 2, PerNode: 2, MemoryNodes: 2}} {
			t.Run(fmt.Sprintf("%s/%d", locks, job.MemoryNodes), func(t *testing.T) {
				t.Parallel()
				if err := job.Run(func(c rma.Comm) error { return use(hook.Relax(c, 5), locks) }); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func use(c rma.Comm, locks string) error {
	tree, err := open(c, locks, 24) // six slots: many levels
	if err != nil {
		return err
	}
	n, clients := int64(1200), int64(c.Size())
	if testing.Short() {
		n = 250
	}
	rng := rand.New(rand.NewPCG(1, uint64(c.Rank())))
	mine := map[int64]int64{}
	key := func() int64 { return rng.Int64N(n)*clients + int64(c.Rank()) - n }
	for i := range n {
		k := key()
		switch rng.IntN(6) {
		case 0:
			there, err := tree.Delete(k)
			if _, want := mine[k]; err != nil || there != want {
				return fmt.Errorf("delete of %d: %v, want %v; %w", k, there, want, err)
			}
			delete(mine, k)
		case 1:
			v, there, err := tree.Get(k)
			if want, is := mine[k]; err != nil || there != is || v != want {
				return fmt.Errorf("key %d: %d, %v, want %d, %v; %w", k, v, there, want, is, err)
			}
		case 2:
			if i%20 == 0 {
				if err := scan(c, tree, k, mine); err != nil {
					return err
				}
			}
		default:
			mine[k] = rng.Int64()
			if err := tree.Set(k, mine[k]); err != nil {
				return err
			}
		}
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	found := map[int64]int64{}
	err = tree.Check(func(k, v int64) {
		if (k+n)%clients == int64(c.Rank()) {
			found[k] = v
		}
	})
	if err != nil {
		return err
	}
	if len(found) != len(mine) {
		return fmt.Errorf("the tree holds %d keys of rank %d, want %d", len(found), c.Rank(), len(mine))
	}
	for k, v := range mine {
		if found[k] != v {
			return fmt.Errorf("key %d has %d, want %d", k, found[k], v)
		}
	}
	return errors.Join(c.Barrier(), tree.Free())
}

// scan compares the client's own keys among the next hundred with what it wrote.
func scan(c rma.Comm, tree *btree.Tree, from int64, mine map[int64]int64) error {
	n, last := 0, from
	found := map[int64]int64{}
	err := tree.Scan(from, func(k, v int64) bool {
		found[k], last = v, k
		n++
		return n < 100
	})
	if err != nil {
		return err
	}
	for k, v := range mine {
		if k >= from && (k <= last || n < 100) && found[k] != v {
			return fmt.Errorf("a scan from %d finds %d at key %d, want %d", from, found[k], k, v)
		}
	}
	return nil
}

// TestCost: what the package comment says, for leaves of a tree whose inner nodes are cached.
func TestCost(t *testing.T) {
	for locks, want := range map[string]map[string]string{
		btree.NH: {"get": "GetBulk 1", "set": "CompareAndSwap 1 GetBulk 1 PutBulk 1 Accumulate 1, flushes 3", "delete": "CompareAndSwap 1 GetBulk 1 PutBulk 1 Accumulate 1, flushes 3", "scan": "GetBulk 2, flushes 1"},
		"dslr":   {"get": "GetBulk 1", "set": "FetchAndOp 2 GetBulk 1 PutBulk 1, flushes 4"},
		// Three of the flushes are of words of the client; the write and the release are one doorbell.
		"declock": {"get": "GetBulk 1", "set": "FetchAndOp 2 GetBulk 2 PutBulk 1, flushes 6"},
	} {
		err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
			var tally hook.Tally
			tree, err := open(hook.Count(c, &tally), locks, 0)
			if err != nil {
				return err
			}
			for k := range int64(60) {
				if err := tree.Set(k*7%61, k); err != nil {
					return err
				}
			}
			ops := map[string]func() error{
				"get":    func() error { _, _, err := tree.Get(4); return err },
				"set":    func() error { return tree.Set(4, 7) },
				"delete": func() error { _, err := tree.Delete(4); return err },
				"scan":   func() error { return tree.Scan(0, func(_, _ int64) bool { return true }) },
			}
			for _, name := range []string{"get", "set", "scan", "delete"} {
				if want[name] == "" {
					continue
				}
				if err := ops["get"](); err != nil { // the inner nodes are in the cache, then
					return err
				}
				tally.Reset()
				if err := ops[name](); err != nil {
					return err
				}
				got, flushes := "", tally.FlushAlls()
				for _, kind := range []rma.Kind{rma.KindCompareAndSwap, rma.KindFetchAndOp, rma.KindGet, rma.KindGetBulk, rma.KindPutBulk, rma.KindAccumulate} {
					n := int64(0)
					for d := range hook.Distances {
						n += tally.Ops(kind, d)
					}
					if n > 0 {
						got += fmt.Sprintf("%v %d ", kind, n)
					}
				}
				for d := range hook.Distances {
					flushes += tally.Flushes(d)
				}
				got = fmt.Sprintf("%s, flushes %d", strings.TrimSpace(got), flushes)
				if !strings.HasPrefix(got, want[name]) {
					return fmt.Errorf("a %s costs %s, want %s", name, got, want[name])
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", locks, err)
		}
	}
}

// TestConfig: what cannot be is refused, with the name of the field.
func TestConfig(t *testing.T) {
	for want, cfg := range map[string]btree.Config{
		"Own is \"mcs\"":      {Own: "mcs", Nodes: 10},
		"Node is 8 words":     {Node: 8, Nodes: 10},
		"NodeLocks is -1":     {NodeLocks: -1, Nodes: 10},
		"Nodes is 0, want ro": {},
	} {
		err := inproc.Run(1, func(c rma.Comm) error { _, err := btree.New(c, cfg); return err })
		if !errors.Is(err, btree.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// TestOpen: fewer locks in the tree's window than hosts are refused.
func TestOpen(t *testing.T) {
	info, err := lock.Lookup("declock")
	if err != nil {
		t.Fatal(err)
	}
	err = inproc.Run(2, func(c rma.Comm) error {
		s := lock.Setting{Locks: 1}
		cfg := btree.Config{Nodes: 10}
		words, err := info.Regions(c, s)
		if err != nil {
			return err
		}
		cfg.Regions = words
		cfg.Open = func(w *rma.Window, at int) (lock.Table, error) {
			s.Window, s.At = w, at
			return info.With(c, s)
		}
		_, err = btree.New(c, cfg)
		return err
	})
	if !errors.Is(err, btree.ErrConfig) || !strings.Contains(err.Error(), "1 locks") {
		t.Errorf("want an error with the number of locks, got %v", err)
	}
}

// TestLoad: a tree that was loaded holds what it should, and goes on.
func TestLoad(t *testing.T) {
	for _, n := range []int{0, 1, 4, 5, 1000} {
		err := inproc.Run(1, func(c rma.Comm) error {
			tree, err := open(c, btree.NH, 24)
			if err != nil {
				return err
			}
			if err := tree.Load(n, func(i int) (key, value int64) { return int64(2 * i), int64(i) }); err != nil {
				return err
			}
			for i := range int64(n) {
				if v, there, err := tree.Get(2 * i); err != nil || !there || v != i {
					return fmt.Errorf("key %d: %d, %v, %w", 2*i, v, there, err)
				}
				if err := tree.Set(2*i+1, -i); err != nil {
					return err
				}
			}
			found := 0
			if err := tree.Check(func(_, _ int64) { found++ }); err != nil || found != 2*n {
				return fmt.Errorf("%d pairs, want %d; %w", found, 2*n, err)
			}
			if err := tree.Load(1, nil); !errors.Is(err, btree.ErrConfig) {
				return fmt.Errorf("a second Load: %w", err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%d pairs: %v", n, err)
		}
	}
}
