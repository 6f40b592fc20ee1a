package dslr_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// upgrading is a table whose exclusive mode is an update lock and its upgrade: section 5.2.
type upgrading struct{ *dslr.Table }

func (t upgrading) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if mode == lock.Shared {
		return t.Table.Lock(ctx, id, mode)
	}
	m := t.Table.Mutex(id).(*dslr.Mutex)
	for {
		told := m.ULock(ctx)
		if told != nil && !errors.Is(told, lock.ErrOwnerDied) {
			return told
		}
		err := m.Upgrade()
		if err == nil {
			return told
		}
		if !errors.Is(err, lock.ErrGiveWay) && !errors.Is(err, lock.ErrLeaseLost) {
			return err
		}
	}
}

func (t upgrading) Unlock(id int, mode lock.Mode) error {
	if mode == lock.Shared {
		return t.Table.Unlock(id, mode)
	}
	return t.Table.Mutex(id).(*dslr.Mutex).UUnlock()
}

func (t upgrading) TryLock(id int, mode lock.Mode) (bool, error) {
	if mode == lock.Shared {
		return t.Table.TryLock(id, mode)
	}
	return false, errors.ErrUnsupported
}

// A third of the ranks takes the lock exclusively without an update lock.
type mixedUpgrades struct {
	upgrading
	plain bool
}

func (t mixedUpgrades) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if t.plain {
		return t.Table.Lock(ctx, id, mode)
	}
	return t.upgrading.Lock(ctx, id, mode)
}

func (t mixedUpgrades) Unlock(id int, mode lock.Mode) error {
	if t.plain {
		return t.Table.Unlock(id, mode)
	}
	return t.upgrading.Unlock(id, mode)
}

// several is a table in which every other rank takes leases of two slots: section 5.1.
type several struct {
	*dslr.Table
	slots int
}

func (t several) Lock(ctx context.Context, id int, mode lock.Mode) error {
	return t.LockFor(ctx, id, mode, t.slots)
}

// variant is a way of using the lock with leases of one tick and few tickets between resets.
func variant(name string, cfg dslr.Config, use func(c rma.Comm, t *dslr.Table) lock.Table) lock.Info {
	cfg.Lease, cfg.BackoffFirst, cfg.BackoffLast = sim.DefaultTickNs, -1, -1
	return lock.Info{Name: name, Shared: true, Recovers: true, Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		cfg.Locks, cfg.Home = n, home
		t, err := dslr.New(c, cfg)
		if err != nil {
			return nil, err
		}
		if use == nil {
			return t, nil
		}
		return use(c, t), nil
	}}
}

func upgrades(c rma.Comm, t *dslr.Table) lock.Table {
	return mixedUpgrades{upgrading{t}, c.Rank()%3 == 2}
}

func slots(c rma.Comm, t *dslr.Table) lock.Table { return several{t, 1 + c.Rank()%2} }

// TestMutants: DSLR with a mistake does not pass.
func TestMutants(t *testing.T) {
	locktest.RunMutantsOf(t, 1, []check.Equivalent{},
		variant("dslr", dslr.Config{CountMax: 3}, nil),
		variant("dslr, exact, by CAS", dslr.Config{CountMax: 2, Reset: dslr.ResetExact, Release: dslr.ReleaseByCAS}, nil),
		variant("dslr, upgrades", dslr.Config{CountMax: 4, Updates: true}, upgrades),
		variant("dslr, slots", dslr.Config{CountMax: 4, MaxSlots: 2}, slots))
}
