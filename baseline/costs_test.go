package baseline

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// ops is a number of operations on another node: FetchAndOp, CompareAndSwap,
// Accumulate and Get.
type ops struct{ fao, cas, acc, get int64 }

func far(t *hook.Tally) ops {
	return ops{
		t.Ops(rma.KindFetchAndOp, hook.Far), t.Ops(rma.KindCompareAndSwap, hook.Far),
		t.Ops(rma.KindAccumulate, hook.Far), t.Ops(rma.KindGet, hook.Far),
	}
}

// TestCosts counts the remote operations that the package comment states.
func TestCosts(t *testing.T) {
	ctx := context.Background()
	const x, s = lock.Exclusive, lock.Shared
	type step struct {
		what string
		do   func(tab lock.Table) error
		want ops
	}
	take := func(id int, m lock.Mode) func(lock.Table) error {
		return func(tab lock.Table) error { return tab.Lock(ctx, id, m) }
	}
	give := func(id int, m lock.Mode) func(lock.Table) error {
		return func(tab lock.Table) error { return tab.Unlock(id, m) }
	}
	all := func(tab lock.Table) error { return tab.(*RW).LockAll(ctx) }
	unall := func(tab lock.Table) error { return tab.(*RW).UnlockAll() }
	cas, acc, fao := ops{cas: 1}, ops{acc: 1}, ops{fao: 1}
	spins := []step{{"X", take(0, x), cas}, {"unX", give(0, x), cas}, {"S", take(0, s), fao}, {"unS", give(0, s), fao}}
	reader := []step{{"S", take(0, s), fao}, {"unS", give(0, s), acc}}
	wholeTable := []step{{"ALL", all, fao}, {"unALL", unall, acc}}
	for name, steps := range map[string][]step{
		"fompi-spin": {{"X", take(0, x), cas}, {"unX", give(0, x), acc}},
		"fompi-rw": append(append([]step{
			{"X", take(0, x), ops{fao: 1, cas: 1}},
			{"X with another one held", take(2, x), cas},
			{"unX with another one held", give(0, x), acc},
			{"unX", give(2, x), ops{acc: 2}},
		}, reader...), wholeTable...),
		"caslock":             spins,
		"retry-on-fail":       spins,
		"retry-on-fail, undo": {{"X", take(0, x), cas}, {"unX", give(0, x), fao}, {"S", take(0, s), fao}, {"unS", give(0, s), fao}},
		"fompi-rw-local":      append([]step{{"X", take(0, x), cas}, {"unX", give(0, x), acc}}, reader...),
		"ompi-rw": append(append([]step{
			{"X", take(0, x), ops{fao: 1, cas: 1}},
			{"X with another one held", take(2, x), ops{fao: 1, cas: 1}},
			{"unX with another one held", give(0, x), ops{acc: 2}},
			{"unX", give(2, x), ops{acc: 2}},
		}, reader...), wholeTable...),
	} {
		err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
			var tally hook.Tally
			tab, err := open(t, hook.Count(c, &tally), name, Config{Locks: 3})
			if err != nil {
				return err
			}
			if c.Rank() == 1 { // locks 0 and 2 are at rank 0
				for _, step := range steps {
					tally.Reset()
					if err := step.do(tab); err != nil {
						return err
					}
					if got := far(&tally); got != step.want || tally.Remote() != got.fao+got.cas+got.acc+got.get {
						return fmt.Errorf("%s: %+v, want %+v; in all\n%v", step.what, got, step.want, &tally)
					}
				}
			}
			return errors.Join(atRest(c, tab), tab.Free())
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCostsOfWaiting counts what a try that fails costs, by what is in its way.
func TestCostsOfWaiting(t *testing.T) {
	for _, c := range []struct {
		name string
		hold func(tab lock.Table) error // by rank 0
		mode lock.Mode
		want ops // of a TryLock by rank 1
	}{
		{"fompi-spin", holdX, lock.Exclusive, ops{cas: 1}},
		{"fompi-rw", holdX, lock.Exclusive, ops{fao: 1, cas: 1, acc: 1}},
		{"fompi-rw", holdAll, lock.Exclusive, ops{fao: 1, acc: 1}},
		{"fompi-rw", holdX, lock.Shared, ops{fao: 1, acc: 1}},
		{"fompi-rw-local", holdX, lock.Exclusive, ops{cas: 1}},
		{"caslock", holdX, lock.Exclusive, ops{cas: 1}},
		{"caslock", holdX, lock.Shared, ops{fao: 1, acc: 1}},
		{"caslock", holdS, lock.Exclusive, ops{cas: 1}},
		{"ompi-rw", holdX, lock.Exclusive, ops{fao: 1, cas: 1, acc: 1}},
		{"ompi-rw", holdAll, lock.Exclusive, ops{fao: 1, acc: 1}},
	} {
		err := inproc.RunNodes(2, 1, func(comm rma.Comm) error {
			var tally hook.Tally
			tab, err := open(t, hook.Count(comm, &tally), c.name, Config{})
			if err != nil {
				return err
			}
			if comm.Rank() == 0 {
				return errors.Join(c.hold(tab), comm.Barrier(), comm.Barrier(), tab.Free())
			}
			if err := comm.Barrier(); err != nil {
				return err
			}
			tally.Reset()
			if got, err := tab.TryLock(0, c.mode); got || err != nil {
				return fmt.Errorf("TryLock: %v, %v", got, err)
			}
			if got := far(&tally); got != c.want {
				return fmt.Errorf("%+v, want %+v", got, c.want)
			}
			return errors.Join(comm.Barrier(), tab.Free())
		})
		if err != nil {
			t.Errorf("%s, %v: %v", c.name, c.mode, err)
		}
	}
}

func holdX(tab lock.Table) error   { return tab.Lock(context.Background(), 0, lock.Exclusive) }
func holdS(tab lock.Table) error   { return tab.Lock(context.Background(), 0, lock.Shared) }
func holdAll(tab lock.Table) error { return tab.(*RW).LockAll(context.Background()) }

// TestWaitingReader: foMPI's reader adds its 2 once and polls by Get; Open MPI's
// adds and takes back at each try.
func TestWaitingReader(t *testing.T) {
	for _, v := range []Variant{FoMPI, Undo} {
		err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
			var tally hook.Tally
			tab, err := NewRW(hook.Count(c, &tally), Config{}, v)
			if err != nil {
				return err
			}
			ctx := context.Background()
			if c.Rank() == 0 {
				if err := errors.Join(holdX(tab), c.Barrier()); err != nil {
					return err
				}
				c.Sleep(2e6)
				return errors.Join(tab.Unlock(0, lock.Exclusive), c.Barrier(), tab.Free())
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			tally.Reset()
			if err := tab.Lock(ctx, 0, lock.Shared); err != nil {
				return err
			}
			got, pauses := far(&tally), tally.Backoffs(hook.Far)
			want := ops{fao: 1, get: pauses}
			if v == Undo {
				want = ops{fao: 1 + pauses, acc: pauses}
			}
			if got != want || pauses == 0 {
				return fmt.Errorf("%+v in %d pauses, want %+v", got, pauses, want)
			}
			return errors.Join(tab.Unlock(0, lock.Shared), c.Barrier(), tab.Free())
		})
		if err != nil {
			t.Errorf("%v: %v", v, err)
		}
	}
}
