package baseline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// onWindow are the locks that run on any backend, and whose words are 0 at rest.
var onWindow = []string{"fompi-spin", "fompi-rw", "fompi-rw-local", "ompi-rw", "caslock", "retry-on-fail", "retry-on-fail, undo"}

// open opens a table by its name.
func open(t *testing.T, c rma.Comm, name string, cfg Config) (lock.Table, error) {
	t.Helper()
	switch name {
	case "fompi-spin":
		return NewSpin(c, cfg)
	case "caslock":
		return NewCASLock(c, cfg, Keep)
	case "retry-on-fail":
		return NewRetryOnFail(c, cfg, Keep)
	case "retry-on-fail, undo":
		return NewRetryOnFail(c, cfg, UndoAndRetry)
	}
	for v, about := range variants {
		if about.name == name {
			return NewRW(c, cfg, Variant(v))
		}
	}
	return nil, fmt.Errorf("no table is called %s", name)
}

// runs are the machines that the tests use.
var runs = []struct {
	name string
	run  func(func(rma.Comm) error) error
}{
	{"1 rank", func(f func(rma.Comm) error) error { return inproc.Run(1, f) }},
	{"2 ranks", func(f func(rma.Comm) error) error { return inproc.Run(2, f) }},
	{"8 ranks", func(f func(rma.Comm) error) error { return inproc.Run(8, f) }},
	{"2 nodes of 2", func(f func(rma.Comm) error) error { return inproc.RunNodes(2, 2, f) }},
	{"4 ranks, 2 memory nodes", inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: 2}.Run},
}

// homes is the number of hosts that a lock's words may be at.
func homes(c rma.Comm, name string) int {
	if onRanks := name == "fompi-spin" || strings.Contains(name, "-rw"); onRanks || c.MemoryNodes() == 0 {
		return c.Size()
	}
	return c.MemoryNodes()
}

// forAll runs f on every machine with every lock.
func forAll(t *testing.T, f func(c rma.Comm, name string) error) {
	for _, name := range onWindow {
		for _, r := range runs {
			t.Run(name+" "+r.name, func(t *testing.T) {
				if err := r.run(func(c rma.Comm) error { return f(c, name) }); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// atRest reports words of the table that are not 0 when no rank holds or tries.
// Collective.
func atRest(c rma.Comm, tab lock.Table) error {
	if err := c.Barrier(); err != nil {
		return err
	}
	var err error
	w := window(tab)
	for r := range w.Size() {
		for d := range w.Words() {
			v, e := w.GetFlush(r, d)
			spec := w.Spec()
			if err = errors.Join(err, e); v != 0 {
				err = errors.Join(err, fmt.Errorf("at rest %s of rank %d is %#x", spec.WordName(d), r, v))
			}
		}
	}
	return errors.Join(err, c.Barrier())
}

func window(tab lock.Table) *rma.Window {
	switch t := tab.(type) {
	case *Spin:
		return t.w
	case *CASLock:
		return t.w
	}
	return tab.(*RW).w
}

// inside counts the ranks that are in the critical sections of a lock, across the ranks of a
// test.
type inside struct{ writers, readers atomic.Int32 }

func (in *inside) write() error {
	defer in.writers.Add(-1)
	if w, r := in.writers.Add(1), in.readers.Load(); w != 1 || r != 0 {
		return fmt.Errorf("a writer with %d others and %d readers", w-1, r)
	}
	return nil
}

func (in *inside) read() error {
	defer in.readers.Add(-1)
	in.readers.Add(1)
	if w := in.writers.Load(); w != 0 {
		return fmt.Errorf("a reader with %d writers", w)
	}
	return nil
}

// TestExclusion: writers are alone, and see each other's data.
func TestExclusion(t *testing.T) {
	const locks, rounds = 3, 200
	for _, backoff := range []Backoff{{}, {BaseNs: 1000, MaxNs: 8000}, {1000, 4000, Full}, {1000, 4000, Added}} {
		var in [locks]inside
		forAll(t, func(c rma.Comm, name string) error {
			tab, err := open(t, c, name, Config{Locks: locks, Home: homes(c, name) - 1, Backoff: backoff})
			if err != nil {
				return err
			}
			data, err := c.Allocate(rma.DataSpec("data", locks))
			if err != nil {
				return err
			}
			shared := name != "fompi-spin"
			rng := rand.New(rand.NewPCG(1, uint64(c.Rank())))
			var mine [locks]int64
			for range rounds {
				id := rng.IntN(locks)
				mode := lock.Mode(rng.IntN(2))
				if !shared {
					mode = lock.Exclusive
				}
				if err := tab.Lock(context.Background(), id, mode); err != nil {
					return err
				}
				if mode == lock.Shared {
					err = in[id].read()
				} else {
					err = in[id].write()
					v, e := data.GetFlush(0, id)
					err = errors.Join(err, e, data.PutFlush(v+1, 0, id))
					mine[id]++
				}
				if err := errors.Join(err, tab.Unlock(id, mode)); err != nil {
					return err
				}
			}
			if err := atRest(c, tab); err != nil {
				return err
			}
			all, err := c.Allgather(mine[:])
			if err != nil {
				return err
			}
			for id := range locks {
				want := int64(0)
				for r := range c.Size() {
					want += all[r*locks+id]
				}
				if got, err := data.GetFlush(0, id); err != nil || got != want {
					return fmt.Errorf("lock %d: %d of %d increments (%v)", id, got, want, err)
				}
			}
			return errors.Join(data.Free(), tab.Free())
		})
	}
}

// TestReadersShare: all ranks hold the lock in shared mode at once, and a writer
// cannot try past them.
func TestReadersShare(t *testing.T) {
	forAll(t, func(c rma.Comm, name string) error {
		tab, err := open(t, c, name, Config{})
		if err != nil {
			return err
		}
		m, ok := tab.Mutex(0).(lock.RWMutex)
		if ok != (name != "fompi-spin") {
			return fmt.Errorf("%s: is an RWMutex: %v", name, ok)
		}
		if !ok {
			return tab.Free()
		}
		if err := errors.Join(m.RLock(context.Background()), c.Barrier()); err != nil {
			return err
		}
		if c.Rank() != 0 {
			if err := m.RUnlock(); err != nil {
				return err
			}
			if got, err := m.TryLock(); got || err != nil {
				return fmt.Errorf("TryLock past a reader: %v, %v", got, err)
			}
			if got, err := m.TryRLock(); !got || err != nil {
				return fmt.Errorf("TryRLock beside a reader: %v, %v", got, err)
			}
		}
		if err := errors.Join(c.Barrier(), m.RUnlock()); err != nil {
			return err
		}
		return errors.Join(atRest(c, tab), tab.Free())
	})
}

// TestTryAndDeadline: what fails leaves the lock as it was.
func TestTryAndDeadline(t *testing.T) {
	forAll(t, func(c rma.Comm, name string) error {
		tab, err := open(t, c, name, Config{})
		if err != nil {
			return err
		}
		ctx := context.Background()
		if c.Rank() == 0 {
			if got, err := tab.TryLock(0, lock.Exclusive); !got || err != nil {
				return fmt.Errorf("TryLock of a free lock: %v, %v", got, err)
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 1 {
			before, err := words(tab)
			if err != nil {
				return err
			}
			for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
				if got, err := tab.TryLock(0, mode); got || err != nil {
					return fmt.Errorf("TryLock of a held lock, %v: %v, %v", mode, got, err)
				}
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				err := tab.Lock(short, 0, mode)
				cancel()
				if !errors.Is(err, lock.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("Lock with a deadline, %v: %v", mode, err)
				}
			}
			if rw, ok := tab.(*RW); ok && rw.variant != Local {
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				err := rw.LockAll(short)
				cancel()
				if !errors.Is(err, lock.ErrDeadline) {
					return fmt.Errorf("LockAll with a deadline: %v", err)
				}
			}
			after, err := words(tab)
			if err != nil || fmt.Sprint(before) != fmt.Sprint(after) {
				return fmt.Errorf("the words were %v and are %v (%v)", before, after, err)
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := tab.Unlock(0, lock.Exclusive); err != nil {
				return err
			}
			// A context that has ended does not keep one from a free lock.
			gone, cancel := context.WithCancel(ctx)
			cancel()
			if err := errors.Join(tab.Lock(gone, 0, lock.Exclusive), tab.Unlock(0, lock.Exclusive)); err != nil {
				return err
			}
		}
		return errors.Join(atRest(c, tab), tab.Free())
	})
}

// words are all words of a table.
func words(tab lock.Table) ([]int64, error) {
	w := window(tab)
	var all []int64
	for r := range w.Size() {
		for d := range w.Words() {
			v, err := w.GetFlush(r, d)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
	}
	return all, nil
}

// TestLockAll: LockAll shares with itself and with readers, and excludes writers.
func TestLockAll(t *testing.T) {
	const locks, rounds = 4, 200
	for _, v := range []Variant{FoMPI, Undo} {
		for _, r := range runs {
			t.Run(v.String()+" "+r.name, func(t *testing.T) {
				var in inside
				err := r.run(func(c rma.Comm) error {
					tab, err := NewRW(c, Config{Locks: locks}, v)
					if err != nil {
						return err
					}
					ctx := context.Background()
					if err := errors.Join(tab.LockAll(ctx), c.Barrier(), tab.UnlockAll()); err != nil {
						return err
					}
					rng := rand.New(rand.NewPCG(2, uint64(c.Rank())))
					for range rounds {
						if rng.IntN(3) == 0 {
							if err := errors.Join(tab.LockAll(ctx), in.read(), tab.UnlockAll()); err != nil {
								return err
							}
							continue
						}
						// Writers of different locks may be together; of one lock they are alone.
						id := rng.IntN(locks)
						if err := tab.Lock(ctx, id, lock.Exclusive); err != nil {
							return err
						}
						in.writers.Add(1)
						if n := in.readers.Load(); n != 0 {
							err = fmt.Errorf("a writer with %d holders of everything", n)
						}
						in.writers.Add(-1)
						if err := errors.Join(err, tab.Unlock(id, lock.Exclusive)); err != nil {
							return err
						}
					}
					return errors.Join(atRest(c, tab), tab.Free())
				})
				if err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// TestNoAllocation: the ways of Lock and Unlock do not allocate.
func TestNoAllocation(t *testing.T) {
	for _, name := range onWindow {
		err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
			tab, err := open(t, c, name, Config{})
			if err != nil {
				return err
			}
			if c.Rank() == 1 {
				for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
					m := tab.Mutex(0)
					n := testing.AllocsPerRun(100, func() {
						if err := errors.Join(tab.Lock(context.Background(), 0, mode), tab.Unlock(0, mode)); err != nil {
							panic(err)
						}
						if err := errors.Join(m.Lock(context.Background()), m.Unlock()); err != nil {
							panic(err)
						}
					})
					if n != 0 {
						return fmt.Errorf("%s, %v: %v allocations", name, mode, n)
					}
				}
			}
			return errors.Join(c.Barrier(), tab.Free())
		})
		if err != nil {
			t.Error(err)
		}
	}
}
