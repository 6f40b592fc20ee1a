package rmarw_test

import (
	"fmt"

	"github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
)

// Ranks that were dealt to two nodes in turns, and T_DC in three ways.
func ExampleNewCounters() {
	t, err := topo.Parse("node:2 rank:4 by:node")
	if err != nil {
		panic(err)
	}
	for _, text := range []string{"1 per node", "every 2nd node", "3"} {
		d, err := rmarw.ParseTDC(text)
		if err != nil {
			panic(err)
		}
		c, err := rmarw.NewCounters(t, d)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: rank 5 counts at rank %d; a writer visits %v\n", text, c.Of(5), c.Hosts())
	}
	// Output:
	// 1 per node: rank 5 counts at rank 1; a writer visits [0 1]
	// every 2nd node: rank 5 counts at rank 0; a writer visits [0]
	// 3: rank 5 counts at rank 5; a writer visits [0 6 5]
}

// The defaults for a machine of the paper's size, where the user sets one of them.
func ExampleThresholds_Fill() {
	t, err := topo.Parse("node:64 core:16")
	if err != nil {
		panic(err)
	}
	th, err := rmarw.Thresholds{TR: 10000}.Fill(t.DefaultView())
	if err != nil {
		panic(err)
	}
	fmt.Printf("T_DC %v, T_L %v, T_R %d, T_W %d\n", th.TDC, th.TL, th.TR, th.TW())
	// Output:
	// T_DC 1 per node, T_L [20 50], T_R 10000, T_W 1000
}
