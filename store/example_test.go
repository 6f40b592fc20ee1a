package store_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/store"
)

// Four clients share objects on a memory node; a lock of DSLR guards each.
func Example() {
	ctx := context.Background()
	err := inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		locks, err := dslr.New(c, dslr.Config{Locks: 8, Lease: 10e9})
		if err != nil {
			return err
		}
		s, err := store.New(c, store.Config{Objects: 8, Locks: locks})
		if err != nil {
			return err
		}
		if _, err := s.Set(ctx, 5, []byte("a value of any length")); err != nil {
			return err
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			value, version, there, err := s.Get(ctx, 5, nil)
			if err != nil {
				return err
			}
			fmt.Printf("%s, version %d, %v\n", value, version, there)
		}
		return errors.Join(c.Barrier(), s.Free(), locks.Free())
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: a value of any length, version 4, true
}
