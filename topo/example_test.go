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
	t = t.DefaultView() // cores have one rank each: no level for a lock
	const rank = 13
	levels := t.Levels()
	last := len(levels) - 1
	for i, e := last, t.Element(rank, last); ; i-- {
		fmt.Printf("%s %d of %d: ranks %s, %d compete, tail at rank %d\n", levels[i].Name, e, levels[i].Elements,
			topo.MakeSet(t.Ranks(i, e)...), t.Arity(i, e), t.Host(i, e))
		if i == 0 {
			break
		}
		e = t.Up(i, e)
	}
	// Output:
	// node 3 of 4: ranks 12-15, 4 compete, tail at rank 15
	// rack 1 of 2: ranks 8-15, 2 compete, tail at rank 14
	// machine 0 of 1: ranks 0-15, 2 compete, tail at rank 13
}

// The user of a lock picks its levels; counters may go by others.
func ExampleTopology_Pick() {
	t, err := topo.Parse("rack:2 node:4 numa:2 core:4")
	if err != nil {
		panic(err)
	}
	view, err := t.Pick("rack", "numa")
	if err != nil {
		panic(err)
	}
	fmt.Println(view)
	_, err = t.Pick("socket")
	fmt.Println(err)
	// Output:
	// rack:2 numa:8 rank:4
	// topo: no level is called "socket"; there are: machine, rack, node, numa, core: bad description of the machine
}

// A machine of unequal nodes, in a file.
func ExampleRead() {
	t, err := topo.Read([]byte(`
		# ranks  where
		0-3      rack=A node=n1
		4,6      rack=B node=n2
		5        rack=B node=n3
	`))
	if err != nil {
		panic(err)
	}
	t.WriteTree(os.Stdout)
	// Output:
	// machine        ranks 0-6
	// ├─ rack A      ranks 0-3
	// │  └─ node n1  ranks 0-3
	// └─ rack B      ranks 4-6
	//    ├─ node n2  ranks 4,6
	//    └─ node n3  rank 5
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
