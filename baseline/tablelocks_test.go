package baseline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/sim"
)

// rows is a table of one row: writers take it under IX, the first of the readers under IS, and
// the others read the whole table.
type rows struct {
	*baseline.CASLock
	tables *baseline.TableLocks
	whole  bool
}

func (r rows) Lock(ctx context.Context, id int, mode lock.Mode) error {
	in := baseline.IntentExclusive
	switch {
	case mode == lock.Shared && r.whole:
		return r.tables.Lock(ctx, id, baseline.WholeShared)
	case mode == lock.Shared:
		in = baseline.IntentShared
	}
	if err := r.tables.Lock(ctx, id, in); err != nil {
		return err
	}
	return r.CASLock.Lock(ctx, id, mode)
}

func (r rows) Unlock(id int, mode lock.Mode) error {
	if mode == lock.Exclusive || !r.whole {
		if err := r.CASLock.Unlock(id, mode); err != nil {
			return err
		}
	}
	return r.tables.Unlock(id)
}

func (r rows) Idle() error { return errors.Join(r.CASLock.Idle(), r.tables.Idle()) }

func (r rows) Promise(lock.Mode) lock.Promise {
	return lock.Promise{Bypass: lock.Unbounded, Acquire: lock.Unbounded, Release: lock.Unbounded}
}

// TestTableLocks: readers of the whole table see no row that a writer is changing, with no row
// lock of their own.
func TestTableLocks(t *testing.T) {
	info := lock.Info{Name: "rows under a table's lock", Shared: true, Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		r, err := baseline.NewCASLock(c, baseline.Config{Locks: n, Home: home}, baseline.Keep)
		if err != nil {
			return nil, err
		}
		tables, err := baseline.NewTableLocks(c, baseline.Config{Locks: n, Home: home})
		return rows{r, tables, c.Rank() != 1}, err
	}}
	plans := []check.Plan{{Ranks: 2, Acquires: 2, Writers: 1}, {Ranks: 3, Acquires: 1, Writers: 1}, {Ranks: 3, Acquires: 1, Writers: 2}}
	for _, p := range plans {
		t.Run(fmt.Sprintf("%d x %d, %d writers", p.Ranks, p.Acquires, p.Writers), func(t *testing.T) {
			p.Info, p.MemoryNodes = info, 1
			locktest.RunWhole(t, p, sim.Unbounded)
		})
	}
	for _, s := range []sim.Scheduler{sim.Random(1, 0, locktest.Draws(1000)), sim.PCT(1, 3, 0, locktest.Draws(1000))} {
		locktest.RunPlan(t, check.Plan{Info: info, MemoryNodes: 1, Ranks: 5, Acquires: 3, Writers: check.Mixed, Guard: true}, s)
	}
}

// TestTableLockModes: which modes go together, what they cost, and how a rank gives up.
func TestTableLockModes(t *testing.T) {
	modes := []baseline.Intent{baseline.IntentExclusive, baseline.IntentShared, baseline.WholeShared}
	err := inproc.Job{Nodes: 1, PerNode: 2, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		var n hook.Tally
		tab, err := baseline.NewTableLocks(hook.Count(c, &n), baseline.Config{Locks: 2, Retries: 3})
		if err != nil {
			return err
		}
		for _, held := range modes {
			if c.Rank() == 0 {
				n.Reset()
				if err := tab.Lock(background, 0, held); err != nil || n.Ops(rma.KindFetchAndOp, hook.Far) != 1 || n.Remote() != 1 {
					return fmt.Errorf("%v: %w, want one FetchAndOp; counted are\n%v", held, err, &n)
				}
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			for _, wanted := range modes {
				if c.Rank() == 0 {
					break
				}
				apart := held != wanted && held != baseline.IntentShared && wanted != baseline.IntentShared
				got, err := tab.TryLock(0, wanted)
				if err != nil || got == apart {
					return fmt.Errorf("%v beside %v: %v, %w", wanted, held, got, err)
				}
				if got {
					if err := tab.Unlock(0); err != nil {
						return err
					}
					continue
				}
				if err := tab.Lock(background, 1, wanted); err != nil {
					return err
				}
				if err := tab.Lock(background, 0, wanted); !errors.Is(err, lock.ErrGiveWay) {
					return fmt.Errorf("%v beside %v, with another lock held: %w, want ErrGiveWay", wanted, held, err)
				}
				if err := tab.Unlock(1); err != nil {
					return err
				}
				gone, cancel := context.WithCancel(background)
				cancel()
				if err := tab.Lock(gone, 0, wanted); !errors.Is(err, lock.ErrDeadline) {
					return fmt.Errorf("%v beside %v, with a context that has ended: %w", wanted, held, err)
				}
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			if c.Rank() == 0 {
				n.Reset()
				if err := tab.Unlock(0); err != nil || n.Ops(rma.KindFetchAndOp, hook.Far) != 1 || n.Remote() != 1 {
					return fmt.Errorf("unlock of %v: %w; counted are\n%v", held, err, &n)
				}
			}
			if err := errors.Join(c.Barrier(), tab.Idle(), c.Barrier()); err != nil {
				return err
			}
		}
		return tab.Free()
	})
	if err != nil {
		t.Error(err)
	}
}
