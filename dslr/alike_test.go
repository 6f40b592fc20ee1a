package dslr_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// mistaken is a table with a mistake that all ranks make.
type mistaken struct {
	*dslr.Table
	silent bool // a holder does not say that it has lost its lease
	deaf   bool // a rank does not say that the holder before died
	bold   bool // a reader does not draw a ticket
}

func (t mistaken) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if t.bold && mode == lock.Shared {
		return nil
	}
	err := t.Table.Lock(ctx, id, mode)
	if t.deaf && errors.Is(err, lock.ErrOwnerDied) {
		return nil
	}
	return err
}

func (t mistaken) Unlock(id int, mode lock.Mode) error {
	if t.bold && mode == lock.Shared {
		return nil
	}
	err := t.Table.Unlock(id, mode)
	if t.silent && errors.Is(err, lock.ErrLeaseLost) {
		return nil
	}
	return err
}

// TestAlike: a search in which ranks change places finds the same mistakes as one in which they do
// not, and has fewer states.
func TestAlike(t *testing.T) {
	for _, k := range []struct {
		name  string
		make  mistaken
		plan  check.Plan
		want  error // nil: there is no mistake
		times int   // without a mistake: how many times fewer states there are at least, in tenths
	}{
		{"right, writers", mistaken{}, check.Plan{Writers: 3, MaxDelay: 1}, nil, 50},
		{"right, readers", mistaken{}, check.Plan{Writers: 0, MaxDelay: 1}, nil, 40},
		{"right, one writer", mistaken{}, check.Plan{Writers: 1, MaxDelay: 1}, nil, 17},
		{"right, a death", mistaken{}, check.Plan{Writers: 2, MaxDelay: 1, Crashes: 1}, nil, 17},
		{"right, two preemptions", mistaken{}, check.Plan{Writers: 3, MaxDelay: 1}, nil, 30},
		{"a holder is silent", mistaken{silent: true}, check.Plan{Writers: 3, MaxDelay: 1}, check.ErrUntold, 0},
		{"a rank is deaf", mistaken{deaf: true}, check.Plan{Writers: 3, MaxDelay: 1, Crashes: 1}, check.ErrUntold, 0},
		{"a reader is bold", mistaken{bold: true}, check.Plan{Writers: 1, MaxDelay: 1}, check.ErrExclusion, 0},
		{"an operation is under way for longer than a lease", mistaken{}, check.Plan{Writers: 3}, check.ErrLease, 0},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			bound := sim.Unbounded
			if k.name == "right, two preemptions" {
				bound = 2
			}
			p := k.plan
			p.Ranks, p.Acquires, p.MemoryNodes, p.Ticks, p.Stands = 3, 1, 1, 3, true
			if k.want == nil {
				p.Ticks = 2
			}
			p.Info = variant(k.name, dslr.Config{CountMax: 3}, func(_ rma.Comm, l *dslr.Table) lock.Table {
				m := k.make
				m.Table = l
				return m
			})
			states := map[bool]int{}
			for _, p.Alike = range []bool{false, true} {
				r, err := check.Run(p, sim.Exhaustive(bound))
				switch {
				case err != nil:
					t.Fatal(err)
				case k.want == nil && (r.Failure != nil || !r.Whole):
					t.Errorf("alike %v: %v", p.Alike, r.Failure)
				case k.want != nil && (r.Failure == nil || !errors.Is(r.Failure.Err, k.want)):
					t.Errorf("alike %v: it has %v, want %v", p.Alike, r.Failure, k.want)
				}
				states[p.Alike] = r.States
			}
			if k.want == nil && states[true]*k.times > states[false]*10 {
				t.Errorf("%d states, and %d where ranks keep their places", states[true], states[false])
			}
			t.Logf("%d states, and %d where ranks keep their places", states[true], states[false])
		})
	}
}

// named is a table that asks in each Lock which rank it is.
type named struct {
	*dslr.Table
	c rma.Comm
}

func (t named) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if t.c.Rank() > t.c.Size() {
		return nil
	}
	return t.Table.Lock(ctx, id, mode)
}

// TestNotAlike: ranks do not change places where their handles differ, and a lock that asks which
// rank it is fails.
func TestNotAlike(t *testing.T) {
	p := check.Plan{Ranks: 3, Acquires: 1, Writers: 3, MemoryNodes: 1, Ticks: 1, MaxDelay: 1, Stands: true}
	p.Info = variant("named", dslr.Config{}, func(c rma.Comm, l *dslr.Table) lock.Table { return named{l, c} })
	passes(t, p, sim.Exhaustive(sim.Unbounded))
	p.Alike = true
	r, err := check.Run(p, sim.Exhaustive(sim.Unbounded))
	if err != nil || r.Failure == nil || !errors.Is(r.Failure.Err, sim.ErrAlike) {
		t.Errorf("%v, %v, want ErrAlike", r.Failure, err)
	}

	states := map[bool]int{}
	for _, p.Alike = range []bool{false, true} {
		p.Info = variant("in two ways", dslr.Config{}, nil)
		p.Info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
			return dslr.New(c, dslr.Config{Locks: n, Home: home, Lease: sim.DefaultTickNs * int64(1+c.Rank()), BackoffFirst: -1, BackoffLast: -1})
		}
		p.Ticks = 1
		r, err := check.Run(p, sim.Exhaustive(sim.Unbounded))
		if err != nil || r.Failure != nil {
			t.Fatal(r.Failure, err)
		}
		states[p.Alike] = r.States
	}
	if states[true] != states[false] {
		t.Errorf("%d states, and %d where ranks keep their places: their leases differ", states[true], states[false])
	}
}
