package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/dmcs"
	_ "github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/store"
)

var background = context.Background()

// value is an object that tells its version and size.
func value(n int, seed uint64) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(seed, 7))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// TestStore: several clients set, get and delete objects of all sizes; each get is whole, and each
// object's version is the number of its changes.
func TestStore(t *testing.T) {
	for _, name := range []string{"dmcs", "fompi-rw", "dslr"} {
		for _, fixed := range []int{0, 100} {
			for _, job := range []inproc.Job{{Nodes: 1, PerNode: 3}, {Nodes: 2, PerNode: 2, MemoryNodes: 2}} {
				t.Run(fmt.Sprintf("%s/%d/%d", name, fixed, job.MemoryNodes), func(t *testing.T) {
					t.Parallel()
					if err := job.Run(func(c rma.Comm) error { return work(c, name, fixed) }); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

const objects = 6

func work(c rma.Comm, name string, fixed int) error {
	info, err := lock.Lookup(name)
	if err != nil {
		return err
	}
	setting := lock.Setting{Locks: objects}
	if name == "dslr" { // no lease runs out on a busy machine
		setting.Params = map[string]string{"LEASE": "20s"}
	}
	locks, err := info.With(c, setting)
	if err != nil {
		return err
	}
	s, err := store.New(hook.Relax(c, 1), store.Config{Objects: objects, Locks: locks, Fixed: fixed, Most: 100})
	if err != nil {
		return err
	}
	changes := make([]int64, objects)
	rng := rand.New(rand.NewPCG(3, uint64(c.Rank())))
	n := 150
	if testing.Short() {
		n = 40
	}
	seen := make([]int64, objects)
	for range n {
		id := rng.IntN(objects)
		switch rng.IntN(4) {
		case 0:
			if _, err := s.Delete(background, id); err != nil {
				return err
			}
			changes[id]++
		case 1:
			seed := rng.Uint64()
			b := value(9+int(seed%92), seed)
			copy(b, fmt.Sprintf("%08x", uint32(seed)))
			if _, err := s.Set(background, id, b); err != nil {
				return err
			}
			changes[id]++
		default:
			_, version, _, err := s.Get(background, id, nil)
			if err != nil {
				return err
			}
			if version < seen[id] {
				return fmt.Errorf("object %d: version %d after %d", id, version, seen[id])
			}
			seen[id] = version
		}
	}
	all, err := c.Allgather(changes)
	if err != nil {
		return err
	}
	for id := range objects {
		want := int64(0)
		for r := range c.Size() {
			want += all[r*objects+id]
		}
		if _, version, _, err := s.Get(background, id, nil); err != nil || version != want {
			return fmt.Errorf("object %d has version %d after %d changes: %w", id, version, want, err)
		}
	}
	return errors.Join(c.Barrier(), s.Free(), locks.Free())
}

// TestSizes: what was set is what a get finds, byte by byte.
func TestSizes(t *testing.T) {
	err := inproc.Run(1, func(c rma.Comm) error {
		locks, err := dmcs.New(c, dmcs.Config{})
		if err != nil {
			return err
		}
		for _, fixed := range []int{0, 9213} {
			s, err := store.New(c, store.Config{Objects: 2, Locks: locks, Fixed: fixed, Most: 9213})
			if err != nil {
				return err
			}
			for i, n := range []int{0, 1, 7, 8, 9, 414, 9213, 3} {
				want := value(n, uint64(n))
				if _, err := s.Set(background, 1, want); err != nil {
					return err
				}
				got, version, there, err := s.Get(background, 1, nil)
				if err != nil || !there || version != int64(i+1) || !bytes.Equal(got, want) {
					return fmt.Errorf("%d bytes: there %v, version %d, %w", n, there, version, err)
				}
			}
			there, err := s.Delete(background, 1)
			_, version, after, gerr := s.Get(background, 1, nil)
			if err := errors.Join(err, gerr); err != nil || !there || after || version != 9 {
				return fmt.Errorf("delete: there %v, then %v with version %d, %w", there, after, version, err)
			}
			if _, err := s.Set(background, 0, make([]byte, 9214)); !errors.Is(err, store.ErrConfig) {
				return fmt.Errorf("an object that is too large: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCost: an operation costs beside the lock what the package comment says.
func TestCost(t *testing.T) {
	for _, k := range []struct {
		cfg      store.Config
		get, set string
	}{
		{store.Config{Fixed: 414}, "GetBulk 1 ", "Get 1 PutBulk 1 "},
		{store.Config{Fixed: 414, Blind: true}, "GetBulk 1 ", "PutBulk 1 "},
		{store.Config{}, "Get 1 GetBulk 1 ", "Put 3 Get 3 PutBulk 1 "},
	} {
		err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
			locks, err := dmcs.New(c, dmcs.Config{})
			if err != nil {
				return err
			}
			var tally hook.Tally
			k.cfg.Objects, k.cfg.Locks = 1, locks
			s, err := store.New(hook.Count(c, &tally), k.cfg)
			if err != nil {
				return err
			}
			for range 2 {
				if _, err := s.Set(background, 0, value(414, 1)); err != nil {
					return err
				}
			}
			count := func(f func() error) (string, error) {
				tally.Reset()
				err := f()
				text := ""
				for _, kind := range []rma.Kind{rma.KindPut, rma.KindGet, rma.KindGetBulk, rma.KindPutBulk, rma.KindFetchAndOp, rma.KindCompareAndSwap} {
					n := int64(0)
					for d := range hook.Distances {
						n += tally.Ops(kind, d)
					}
					if n > 0 {
						text += fmt.Sprintf("%v %d ", kind, n)
					}
				}
				return text, err
			}
			got, err := count(func() error { _, _, _, err := s.Get(background, 0, nil); return err })
			if err != nil || got != k.get {
				return fmt.Errorf("a get costs %s, want %s; %w", got, k.get, err)
			}
			if got, err = count(func() error { _, err := s.Set(background, 0, value(414, 2)); return err }); err != nil || got != k.set {
				return fmt.Errorf("a set costs %s, want %s; %w", got, k.set, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("fixed %d, blind %v: %v", k.cfg.Fixed, k.cfg.Blind, err)
		}
	}
}

// TestConfig: what cannot be is refused, with the name of the field.
func TestConfig(t *testing.T) {
	for want, cfg := range map[string]store.Config{
		"Objects is 0":          {},
		"Locks has no lock":     {Objects: 1},
		"Blind goes with Fixed": {Objects: 1, Blind: true},
		"at most 1048575 bytes": {Objects: 1, Fixed: 1 << 20},
	} {
		err := inproc.Run(1, func(c rma.Comm) error {
			if want != "Locks has no lock" {
				locks, err := dmcs.New(c, dmcs.Config{})
				if err != nil {
					return err
				}
				cfg.Locks = locks
			}
			_, err := store.New(c, cfg)
			return err
		})
		if !errors.Is(err, store.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
