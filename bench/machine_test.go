package bench

import (
	"errors"
	"reflect"
	"slices"
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
		if got := placement(&Virtual{Topology: tree}); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// Memory nodes, coroutines and connections of 2 nodes with 4 ranks, in 2 racks.
func TestPlacementOfVerbs(t *testing.T) {
	tree, err := topo.Parse("rack:2 node:1 rank:4")
	if err != nil {
		t.Fatal(err)
	}
	ranks := []int{0, 0, 0, 0, 1, 1, 1, 1}
	for _, x := range []struct {
		v    Virtual
		want netmodel.Placement
	}{
		{Virtual{MemoryNodes: 3}, netmodel.Placement{Node: append(ranks[:8:8], 2, 3, 4), Groups: [][]int{{0, 1, 0, 1, 0}}}},
		{Virtual{MemoryNodes: 3, Colocated: true}, netmodel.Placement{Node: append(ranks[:8:8], 0, 1, 0), Groups: [][]int{{0, 1}}}},
		{Virtual{MemoryNodes: 1, Coroutines: 2, QPs: PerCore}, netmodel.Placement{
			Node: append(ranks[:8:8], 2), Groups: [][]int{{0, 1, 0}}, Coroutines: true,
			Core: []int{0, 0, 1, 1, 0, 0, 1, 1, -1}, Pair: []int{0, 0, 2, 2, 4, 4, 6, 6, 8},
		}},
		{Virtual{MemoryNodes: 1, QPs: PerProcess}, netmodel.Placement{
			Node: append(ranks[:8:8], 2), Groups: [][]int{{0, 1, 0}}, Pair: []int{0, 0, 0, 0, 4, 4, 4, 4, 8},
		}},
		{Virtual{QPs: PerCore}, netmodel.Placement{Node: ranks, Groups: [][]int{{0, 1}}, Pair: []int{0, 1, 2, 3, 4, 5, 6, 7}}},
		{Virtual{QPs: PerThreadPair}, netmodel.Placement{Node: ranks, Groups: [][]int{{0, 1}}, EachRank: true}},
	} {
		v := x.v
		v.Topology = tree
		got := placement(&v)
		if !reflect.DeepEqual(got, x.want) {
			t.Errorf("%+v: %+v, want %+v", x.v, got, x.want)
		}
		m, err := netmodel.Load("cx3")
		if err == nil {
			_, err = netmodel.New(m, got)
		}
		if err != nil {
			t.Errorf("%+v: %v", x.v, err)
		}
	}
	for _, v := range []Virtual{{MemoryNodes: -1}, {Coroutines: -1}, {QPs: "rack"}, {MaskedSwap: true}} {
		if err := v.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: error %v", v, err)
		}
	}
}

// The band of a run is over the constants that have a part in it.
func TestWeakConstantsOfARun(t *testing.T) {
	m, err := LoadMachine("cx4")
	if err != nil {
		t.Fatal(err)
	}
	has := func(v Virtual) bool {
		return slices.ContainsFunc(v.weak(m), func(c Constant) bool { return c.Name == "switchNs" })
	}
	if has(Virtual{}) || !has(Virtual{Coroutines: 2}) {
		t.Error("switchNs is weak without coroutines, or not with them")
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
