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
	locktest.RunMutantsOf(t, 12, equivalent(), variant("dslr", dslr.Config{CountMax: 3}, nil),
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
		rare    = "not caught in the time: the rank learns too late that its ticket is served, and meanwhile another one passes it over"
		again   = "not caught in the time: a try that loses its first CompareAndSwap"
	)
	const lockWord, afterWait, afterFlush = "CompareAndSwap dslr.LOCK", "Await dslr.LOCK", "Flush of "
	afterSwap, afterAdd, afterGet := afterFlush+"CompareAndSwap", afterFlush+"FetchAndOp", afterFlush+"Get"
	return []check.Equivalent{
		{Phase: check.Acquiring, Step: "Await dslr.LOCK", Mutation: check.AnyChange, Why: pace},
		{Phase: check.Releasing, Step: "Await dslr.LOCK", Mutation: check.AnyChange, Why: pace},
		{Phase: check.Acquiring, Step: "Await dslr.LOCK", Before: afterFlush, Mutation: check.NoWait, Why: pace},
		{Phase: check.Releasing, Step: "Await dslr.LOCK", Before: afterFlush, Mutation: check.NoWait, Why: pace},
		{Phase: check.Releasing, Step: "Await dslr.LOCK", Before: afterWait, Mutation: check.NoWait, Writers: true, Why: pace},
		{Phase: check.Trying, Step: "Flush of Get", Mutation: check.NoFlush, Why: guess},
		{Phase: check.Acquiring, Step: lockWord, Before: afterAdd, Mutation: check.Trusting, Why: stays},
		{Phase: check.Acquiring, Step: lockWord, Before: afterWait, Mutation: check.Trusting, Why: late},
		{Phase: check.Acquiring, Step: lockWord, Before: afterWait, Mutation: check.Torn, Writers: true, Why: rare},
		{Phase: check.Trying, Step: lockWord, Before: afterSwap, Mutation: check.Torn, Writers: true, Why: again},
		{Phase: check.Trying, Step: lockWord, Before: afterSwap, Mutation: check.Blind, Writers: true, Why: again},
		{Phase: check.Releasing, Step: lockWord, First: true, Mutation: check.Trusting, Writers: true, Why: late},
		{Phase: check.Releasing, Step: lockWord, Before: afterSwap, Mutation: check.Trusting, Writers: true, Why: late},
		{Phase: check.Releasing, Step: lockWord, Before: afterGet, Mutation: check.Trusting, Why: late},
		{Phase: check.Releasing, Step: lockWord, Before: afterAdd, Mutation: check.Trusting, Readers: true, Why: late},
		{Phase: check.Releasing, Step: lockWord, Before: afterWait, Mutation: check.Trusting, Why: late},
		{Phase: check.Releasing, Step: lockWord, Before: afterWait, Mutation: check.Torn, Why: drained},
		{Phase: check.Releasing, Step: lockWord, Before: afterWait, Mutation: check.Blind, Why: drained},
		{Phase: check.Releasing, Step: lockWord, Before: afterAdd, Mutation: check.Torn, Why: drained},
		{Phase: check.Releasing, Step: lockWord, Before: afterAdd, Mutation: check.Blind, Why: drained},
	}
}
