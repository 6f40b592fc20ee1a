package shiftlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/shiftlock"
)

// Clients move money between two accounts on a memory node, and read both.
func Example() {
	err := inproc.Job{Nodes: 4, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		locks, err := shiftlock.New(c, shiftlock.Config{Locks: 2, Lease: 60e9}) // 60 s
		if err != nil {
			return err
		}
		spec := rma.DataSpec("accounts", 2)
		spec.Hosts = rma.MemoryNodes
		w, err := c.Allocate(spec)
		if err != nil {
			return err
		}
		both := func(mode lock.Mode, do func(a, b int64) error) error {
			ctx := context.Background()
			if err := errors.Join(locks.Lock(ctx, 0, mode), locks.Lock(ctx, 1, mode)); err != nil {
				return err
			}
			a, b := w.Get(0, 0), w.Get(0, 1)
			err := w.Flush(0)
			return errors.Join(err, do(w.Value(a), w.Value(b)), locks.Unlock(1, mode), locks.Unlock(0, mode))
		}
		for range 10 {
			err := both(lock.Exclusive, func(a, b int64) error {
				w.Put(a-1, 0, 0)
				w.Put(b+1, 0, 1)
				return w.Flush(0) // before Unlock
			})
			if err != nil {
				return err
			}
			err = both(lock.Shared, func(a, b int64) error {
				if a+b != 0 {
					return fmt.Errorf("the accounts have %d and %d", a, b)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		b, err := w.GetFlush(0, 1)
		if c.Rank() == 0 {
			fmt.Println(b)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// 40
	// <nil>
}
