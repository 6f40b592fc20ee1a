package rmamcs_test

import (
	"context"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/rmamcs"
	"github.com/rmalock/rmalock/topo"
)

// TestAdapts: T_L,2 falls to a sixteenth while another element wants the lock, and rises
// again to what was configured when none does.
func TestAdapts(t *testing.T) {
	const most = 40
	top, err := topo.Parse("node:2 rank:4")
	if err != nil {
		t.Fatal(err)
	}
	if top, err = top.Pick("node"); err != nil {
		t.Fatal(err)
	}
	least := []int64{most, most}
	_, err = sim.Timed{Node: []int{0, 0, 0, 0, 1, 1, 1, 1}, Model: sim.Uneven(1)}.Run(func(c rma.Comm) error {
		l, err := rmamcs.New(c, rmamcs.Config{Topology: top, TL: []int{0, most}, Adapt: true})
		if err != nil {
			return err
		}
		work := func(node, times int) error {
			if c.Node().Index != node && node >= 0 {
				return c.Barrier()
			}
			for range times {
				if err := l.Lock(context.Background(), 0, lock.Exclusive); err != nil {
					return err
				}
				if err := l.Unlock(0, lock.Exclusive); err != nil {
					return err
				}
				least[c.Node().Index] = min(least[c.Node().Index], l.Now(1))
			}
			return c.Barrier()
		}
		if err := work(-1, 1000); err != nil {
			return err
		}
		if got := least[c.Node().Index]; got != 3 { // 40/16, rounded up
			t.Errorf("T_L,2 fell to %d while all want the lock, want 3", got)
		}
		if err := work(0, 1000); err != nil {
			return err
		}
		if got := l.Now(1); c.Node().Index == 0 && got != most {
			t.Errorf("rank %d: T_L,2 is %d while one node wants the lock, want %d", c.Rank(), got, most)
		}
		return l.Free()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAdaptExhaustive: all schedules of 3 ranks in two elements, and of 4 up to 3
// preemptions.
func TestAdaptExhaustive(t *testing.T) {
	for _, element := range [][]int{{0, 0, 1}, {0, 0, 1, 1}} {
		places := make([]topo.Place, len(element))
		for r, e := range element {
			places[r].Node = e
		}
		top, err := topo.Build(places)
		if err != nil {
			t.Fatal(err)
		}
		if top, err = top.Pick("node"); err != nil {
			t.Fatal(err)
		}
		in := lock.Info{Name: "rmamcs", Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return rmamcs.New(c, rmamcs.Config{Locks: n, Home: home, Topology: top, TL: []int{0, 2}, Adapt: true})
		}}
		if len(element) == 3 {
			whole(t, check.Plan{Info: in, Ranks: 3, Acquires: 2, Topology: top}, sim.Unbounded)
			continue
		}
		whole(t, check.Plan{Info: in, Ranks: 4, Acquires: 1, Topology: top}, 3)
	}
}
