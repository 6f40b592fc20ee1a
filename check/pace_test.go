package check_test

import (
	"context"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// nervous is dmcs with something done before each Lock, after which it may say that an owner died,
// and with what it counts.
type nervous struct {
	lock.Checked
	c      rma.Comm
	before func(c rma.Comm)
	died   bool
	counts int64
}

func (n *nervous) Lock(ctx context.Context, id int, mode lock.Mode) error {
	n.before(n.c)
	if err := n.Checked.Lock(ctx, id, mode); err != nil || !n.died {
		return err
	}
	return lock.ErrOwnerDied
}

func (n *nervous) Counts() map[string]int64 { return map[string]int64{"resets": n.counts} }

// TestPace: where no rank is silent for long, a check finds what a lock does as if one were.
func TestPace(t *testing.T) {
	sleeps := func(c rma.Comm) { c.Sleep(tick) }
	looks := func(c rma.Comm) { c.Now() }
	calm := check.Plan{Pace: check.Forced, Prompt: true, PerDeath: "resets"}
	slow, hasty := calm, calm
	slow.Pace, hasty.Pace = check.Timely, check.Hasty
	for _, k := range []struct {
		name string
		n    nervous
		plan check.Plan
		want error
	}{
		{"nothing", nervous{before: looks}, calm, nil},
		{"nothing, slow", nervous{before: looks}, slow, nil},
		{"nothing, hasty", nervous{before: looks}, hasty, nil},
		{"waits", nervous{before: sleeps}, calm, check.ErrWaits},
		{"says that an owner died", nervous{before: looks, died: true}, calm, check.ErrTaken},
		{"says that an owner died, slow", nervous{before: looks, died: true}, slow, check.ErrTaken},
		{"says that an owner died, hasty", nervous{before: looks, died: true}, hasty, nil},
		{"counts", nervous{before: looks, counts: 1}, calm, check.ErrMore},
	} {
		t.Run(k.name, func(t *testing.T) {
			p := k.plan
			p.Info, p.Ranks, p.Acquires, p.Ticks = lookup(t, "dmcs"), 2, 2, 20
			open := p.Info.Open
			p.Info.Recovers = true
			p.Info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
				table, err := open(c, n, home)
				if err != nil {
					return nil, err
				}
				a := k.n
				a.Checked, a.c = table.(lock.Checked), c
				return &a, nil
			}
			for _, s := range []sim.Scheduler{sim.Random(1, 0, 50), sim.PCT(1, 3, 0, 50)} {
				r, err := check.Run(p, s)
				switch {
				case err != nil:
					t.Fatal(err)
				case k.want == nil && r.Failure != nil:
					t.Errorf("%T: %v", s, r.Failure)
				case k.want != nil && !is(r.Failure, k.want):
					t.Errorf("%T finds %v, want %v", s, r.Failure, k.want)
				}
			}
			x := sim.Exhaustive(0)
			r, err := check.Run(p, x)
			switch want := k.want; {
			case p.Pace != check.Forced:
				if err == nil {
					t.Error("a search of all schedules takes any pace")
				}
			case err != nil:
				t.Fatal(err)
			case want == check.ErrMore || want == nil: // it does not count
				if r.Failure != nil {
					t.Error(r.Failure)
				}
			case !is(r.Failure, want):
				t.Errorf("a search of all schedules finds %v, want %v", r.Failure, want)
			}
		})
	}
}
