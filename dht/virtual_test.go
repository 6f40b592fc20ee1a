package dht_test

import (
	"testing"

	"github.com/rmalock/rmalock/dht"
	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/rma/sim/netmodel"
	_ "github.com/rmalock/rmalock/rmamcs"
	_ "github.com/rmalock/rmalock/rmarw"
)

// rate is how many Adds a second, in millions, the ranks of some nodes make in virtual time to one
// key in the memory of rank 0, under a lock or, where it is "", with atomics.
func rate(t *testing.T, nodes, perNode int, name string, combine bool) float64 {
	t.Helper()
	m, err := netmodel.Load("aries")
	if err != nil {
		t.Fatal(err)
	}
	var place netmodel.Placement
	for r := range nodes * perNode {
		place.Node, place.Core = append(place.Node, r/perNode), append(place.Core, r%perNode)
	}
	net, err := netmodel.New(m, place)
	if err != nil {
		t.Fatal(err)
	}
	const adds = 50
	var begin, end int64
	_, err = sim.Timed{Node: place.Node, Model: net}.Run(func(c rma.Comm) error {
		cfg := dht.Config{Volumes: 1, Slots: 1, Combine: combine}
		if name != "" {
			info, err := lock.Lookup(name)
			if err != nil {
				return err
			}
			if cfg.Locks, err = info.Open(c, 1, 0); err != nil {
				return err
			}
		}
		table, err := dht.New(c, cfg)
		if err != nil {
			return err
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		begin = c.Now()
		for range adds {
			if _, err := table.Add(1, 1); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		end = c.Now()
		if n, _, err := table.Lookup(1); err != nil || n != int64(adds*c.Size()) {
			t.Errorf("the sum is %d of %d, error %v", n, adds*c.Size(), err)
		}
		return c.Barrier()
	})
	if err != nil {
		t.Fatal(err)
	}
	return float64(adds*nodes*perNode) / float64(end-begin) * 1000
}

// TestCombineInVirtualTime: what combining is worth at one key, on 4 nodes of Aries. Without
// mates it changes nothing.
func TestCombineInVirtualTime(t *testing.T) {
	sizes := []int{1, 2, 4, 8}
	if !testing.Short() {
		sizes = append(sizes, 16, 32)
	}
	for _, name := range []string{"dmcs", "rmamcs", "rmarw"} {
		for _, perNode := range sizes {
			atomics, plain, combined := rate(t, 4, perNode, "", false), rate(t, 4, perNode, name, false), rate(t, 4, perNode, name, true)
			t.Logf("%s, %d ranks a node: %.2f million Adds a second, combined %.2f: %.2f times; atomics alone %.2f", name, perNode, plain, combined, combined/plain, atomics)
			least := map[int]float64{1: 0.99, 8: 1.5}[perNode]
			if name == "dmcs" && perNode == 8 {
				least = 4
			}
			if combined < least*plain {
				t.Errorf("%s, %d ranks a node: %.2f times, want %.2f", name, perNode, combined/plain, least)
			}
		}
	}
}
