package bench

import (
	"errors"
	"reflect"
	"testing"

	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/rma/sim/netmodel"
	"github.com/rmalock/rmalock/topo"
)

func TestPlacement(t *testing.T) {
	for text, want := range map[string]netmodel.Placement{
		"rank:3":        {Node: []int{0, 0, 0}},
		"node:2 rank:2": {Node: []int{0, 0, 1, 1}},
		"zone:2 rack:2 node:1 numa:2": {
			Node: []int{0, 0, 1, 1, 2, 2, 3, 3}, Groups: [][]int{{0, 1, 2, 3}, {0, 0, 1, 1}}, Socket: []int{0, 1, 2, 3, 4, 5, 6, 7},
		},
		"node:1 package:2 core:1 rank:2": {Node: []int{0, 0, 0, 0}, Socket: []int{0, 0, 1, 1}, Core: []int{0, 0, 1, 1}},
	} {
		tree, err := topo.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := placement(tree); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// Every machine runs, with the constants that are weak at either end. Nodes are farther
// apart than ranks of a node, and where hops count so are nodes of two racks.
func TestMachines(t *testing.T) {
	mean := func(m Machine, text string, band bool) float64 {
		t.Helper()
		tree, err := topo.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Virtual{Topology: tree, Machine: m, Band: band}.Run(Config{Lock: "dmcs", Mode: LB, Acquires: 100})
		if err != nil {
			t.Fatalf("%s, %q: %v", m.Name(), text, err)
		}
		if r.Machine != m.Name() || r.About == "" || band && (r.Band == nil || r.Band.Mean.Min > r.Mean || r.Band.Mean.Max < r.Mean) {
			t.Errorf("%s: %+v", m.Name(), r)
		}
		return r.Mean
	}
	if len(Machines()) < 5 {
		t.Errorf("machines %v", Machines())
	}
	for _, name := range Machines() {
		m, err := LoadMachine(name)
		if err != nil {
			t.Fatal(err)
		}
		far, near := mean(m, "rack:2 node:2 rank:1", false), mean(m, "node:1 rank:4", false)
		if flat := mean(m, "node:4 rank:1", true); !(near < flat) || name == "aries" && !(flat < far) {
			t.Errorf("%s: mean of 4 ranks is %v ns on one node, %v on four and %v on four in two racks", name, near, flat, far)
		}
	}
	if _, err := LoadMachine("nonsense"); !errors.Is(err, ErrConfig) {
		t.Errorf("error %v", err)
	}
}
