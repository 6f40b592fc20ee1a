package btree_test

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/btree"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// Clients on two compute nodes fill a tree on a memory node; one of them scans it.
func Example() {
	err := inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		tree, err := btree.New(c, btree.Config{Nodes: 100})
		if err != nil {
			return err
		}
		for k := range int64(100) {
			if err := tree.Set(k*4+int64(c.Rank()), k); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			err = tree.Scan(198, func(key, value int64) bool {
				fmt.Println(key, value)
				return key < 201
			})
		}
		return errors.Join(err, c.Barrier(), tree.Free())
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 198 49
	// 199 49
	// 200 50
	// 201 50
}
