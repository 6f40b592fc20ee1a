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
		cfg := cfg
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

// TestMutants: DSLR with a mistake does not pass. It takes as many schedules as tell those that
// others make up for by a lease from those that do harm.
func TestMutants(t *testing.T) {
	locktest.RunMutantsOf(t, check.Effort{Budget: 300, Every: 8}, equivalent(), variant("dslr", dslr.Config{CountMax: 3}, nil),
		variant("dslr, exact, by CAS", dslr.Config{CountMax: 2, Reset: dslr.ResetExact, Release: dslr.ReleaseByCAS}, nil),
		variant("dslr, upgrades", dslr.Config{CountMax: 4, Updates: true}, upgrades),
		variant("dslr, slots", dslr.Config{CountMax: 4, MaxSlots: 2}, slots))
}

// equivalent are mistakes that are none, or only cost time, and some that are not caught.
func equivalent() []check.Equivalent {
	const (
		pace    = "a wait is a pause: the rank looks at the whole word and at the clock after it"
		guess   = "the CompareAndSwap that follows then fails, and finds the word"
		stays   = "the draw stays on the frozen word and goes with its reset; not caught: it takes as many as a counter has room for"
		late    = "the ticket, or the word, is then as a dead rank leaves it: others wait for two leases"
		drained = "all tickets are released there, and what is lost are draws that their ranks take back; not caught: it takes another rank that forces the same reset at that moment"
		rare    = "not caught: the rank learns too late that its ticket is served, and meanwhile another one passes it over; with 6,000 schedules three of four are"
		again   = "not caught: a try that loses its first CompareAndSwap"
		looks   = "not caught: the rank resets, has waited for two leases, and meanwhile another one resets"
	)
	const (
		waits, swaps                  = "Await dslr.LOCK", "CompareAndSwap dslr.LOCK"
		afterSwap, afterAdd, afterGet = "Flush of CompareAndSwap", "Flush of FetchAndOp", "Flush of Get"
	)
	return []check.Equivalent{
		{Phase: check.Acquiring, Step: waits, Mutation: check.AnyChange, Why: pace},
		{Phase: check.Releasing, Step: waits, Mutation: check.AnyChange, Why: pace},
		{Phase: check.Acquiring, Step: waits, Before: afterAdd, Mutation: check.NoWait, Why: pace},
		{Phase: check.Acquiring, Step: waits, Before: afterGet, Mutation: check.NoWait, Why: pace},
		{Phase: check.Acquiring, Step: waits, Before: afterSwap, Mutation: check.NoWait, Readers: true, Why: pace},
		{Phase: check.Releasing, Step: waits, Mutation: check.NoWait, Why: pace},
		{Phase: check.Trying, Step: "Flush of Get", Mutation: check.NoFlush, Why: guess},
		{Phase: check.Acquiring, Step: swaps, Before: afterAdd, Mutation: check.Trusting, Why: stays},
		{Phase: check.Acquiring, Step: swaps, Before: waits, Mutation: check.Trusting, Why: late},
		{Phase: check.Acquiring, Step: swaps, Before: waits, Mutation: check.Torn, Why: rare},
		{Phase: check.Acquiring, Step: swaps, Before: waits, Mutation: check.Blind, Why: rare},
		{Phase: check.Trying, Step: swaps, Before: afterSwap, Mutation: check.Torn, Writers: true, Why: again},
		{Phase: check.Trying, Step: swaps, Before: afterSwap, Mutation: check.Blind, Why: again},
		{Phase: check.Releasing, Step: swaps, First: true, Mutation: check.Trusting, Writers: true, Why: late},
		{Phase: check.Releasing, Step: swaps, Before: afterSwap, Mutation: check.Trusting, Why: late},
		{Phase: check.Releasing, Step: swaps, Before: afterGet, Mutation: check.Trusting, Why: late},
		{Phase: check.Releasing, Step: swaps, Before: afterAdd, Mutation: check.Trusting, Why: late},
		{Phase: check.Releasing, Step: swaps, Before: waits, Mutation: check.Trusting, Why: late},
		{Phase: check.Releasing, Step: swaps, Before: waits, Mutation: check.Torn, Why: drained},
		{Phase: check.Releasing, Step: swaps, Before: waits, Mutation: check.Blind, Why: drained},
		{Phase: check.Releasing, Step: swaps, Before: afterAdd, Mutation: check.Torn, Why: drained},
		{Phase: check.Releasing, Step: swaps, Before: afterAdd, Mutation: check.Blind, Why: drained},
		{Phase: check.Releasing, Step: swaps, Before: afterGet, Mutation: check.Torn, Readers: true, Why: looks},
		{Phase: check.Releasing, Step: swaps, Before: afterGet, Mutation: check.Blind, Why: looks},
		{Phase: check.Releasing, Step: "Flush of Get", Mutation: check.NoFlush, Why: looks},
	}
}
