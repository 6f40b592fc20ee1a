package rmarw_test

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
)

// One rank of four writes two words under the lock, the others read them. A reader never
// sees one word without the other.
func Example() {
	err := inproc.Run(4, func(c rma.Comm) error {
		locks, err := rmarw.New(c, rmarw.Config{}) // one lock, thresholds from the topology
		if err != nil {
			return err
		}
		pair, err := c.Allocate(rma.DataSpec("pair", 2))
		if err != nil {
			return err
		}
		m := locks.Mutex(0).(lock.RWMutex)
		ctx := context.Background()
		for i := range int64(100) {
			if c.Rank() == 0 {
				if err := m.Lock(ctx); err != nil {
					return err
				}
				pair.Put(i, 0, 0)
				pair.Put(i, 0, 1)
				if err := pair.Flush(0); err != nil { // flushed before Unlock
					return err
				}
				if err := m.Unlock(); err != nil {
					return err
				}
				continue
			}
			if err := m.RLock(ctx); err != nil {
				return err
			}
			first, second := pair.Get(0, 0), pair.Get(0, 1)
			if err := pair.Flush(0); err != nil {
				return err
			}
			if pair.Value(first) != pair.Value(second) {
				fmt.Println("one word without the other")
			}
			if err := m.RUnlock(); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 1 {
			n, err := pair.GetFlush(0, 1)
			fmt.Println(n, err)
		}
		return locks.Free()
	})
	fmt.Println(err)
	// Output:
	// 99 <nil>
	// <nil>
}

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
