package topo_test

import (
	"fmt"
	"os"

	"github.com/rmalock/rmalock/topo"
)

// A writer of RMA-MCS climbs from the innermost level to the machine.
func Example() {
	t, err := topo.Parse("rack:2 node:2 core:4")
	if err != nil {
		panic(err)
	}
	const rank = 13
	levels := t.Levels()
	for i := len(levels) - 1; i >= 0; i-- {
		e := t.Element(rank, i)
		fmt.Println(levels[i].Name, e, "of", levels[i].Elements, "has ranks", topo.MakeSet(t.Ranks(i, e)...))
	}
	// Output:
	// core 13 of 16 has ranks 13
	// node 3 of 4 has ranks 12-15
	// rack 1 of 2 has ranks 8-15
	// machine 0 of 1 has ranks 0-15
}

func ExampleTopology_WriteTree() {
	t, err := topo.Parse("rack:2 node:4 numa:2 rank:8")
	if err != nil {
		panic(err)
	}
	t.WriteTree(os.Stdout)
	// Output:
	// machine               ranks 0-127
	// └─ rack 0-1 ×2        ranks 0-127, 64 each
	//    └─ node 0-3 ×4     ranks 0-63, 16 each
	//       └─ numa 0-1 ×2  ranks 0-15, 8 each
	// (×n: n alike, of which the first is shown in full)
}

// Three ranks on two nodes, of which one rank may run on either core of its node.
func ExampleBuild() {
	inside := func(core topo.Set) []topo.Span { return []topo.Span{{Level: "core", IDs: core}} }
	t, err := topo.Build([]topo.Place{
		{Host: "a", Node: 0, CPUs: "0", Inside: inside("0")},
		{Host: "a", Node: 0, CPUs: "1", Inside: inside("1")},
		{Host: "b", Node: 1, CPUs: "0-1", Inside: inside("0-1")},
	})
	if err != nil {
		panic(err)
	}
	t.WriteTree(os.Stdout)
	t.WriteRanks(os.Stdout)
	// Output:
	// machine                ranks 0-2
	// ├─ node a              ranks 0-1
	// │  └─ core 0-1 ×2      ranks 0-1, one each
	// └─ node b              rank 2
	//    └─ core any of 0-1  rank 2
	// (×n: n alike, of which the first is shown in full)
	// note: merged core for rank 2: not each rank there is bound to one
	// rank  node   core            cpus
	// 0-1   0 (a)  0..1 (0..1)     0..1
	// 2     1 (b)  2 (any of 0-1)  0-1
	// (a..b: one for each rank of the line, in order)
}
