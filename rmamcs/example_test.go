package rmamcs_test

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rmamcs"
	"github.com/rmalock/rmalock/topo"
)

// Eight ranks on two nodes. The lock passes at most 16 times within a node while the other
// node waits. What the lock guards goes between Lock and Unlock, as in the example of dmcs.
func Example() {
	machine, err := topo.Parse("node:2 rank:4")
	if err != nil {
		panic(err)
	}
	machine, err = machine.Pick("node") // the levels of the tree: the machine and the node
	if err != nil {
		panic(err)
	}
	err = inproc.RunNodes(2, 4, func(c rma.Comm) error {
		locks, err := rmamcs.New(c, rmamcs.Config{Topology: machine, TL: []int{0, 16}}) // 0 is the default
		if err != nil {
			return err
		}
		m := locks.Mutex(0)
		if err := m.Lock(context.Background()); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println("T_L", locks.Config().TL, "leaf", locks.Config().Leaf)
		}
		if err := m.Unlock(); err != nil {
			return err
		}
		return locks.Free()
	})
	fmt.Println(err)
	// Output:
	// T_L [20 16] leaf barging
	// <nil>
}
