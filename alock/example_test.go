package alock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/alock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// Two nodes of two ranks count in a word that a lock guards. The lock's home is rank 0: ranks 0 and
// 1 reach it by the CPU, ranks 2 and 3 through the transport.
func Example() {
	err := inproc.RunNodes(2, 2, func(c rma.Comm) error {
		locks, err := alock.New(c, alock.Config{LocalBudget: 5, RemoteBudget: 20})
		if err != nil {
			return err
		}
		count, err := c.Allocate(rma.DataSpec("count", 1))
		if err != nil {
			return err
		}
		m := locks.Mutex(0)
		for range 100 {
			if err := m.Lock(context.Background()); err != nil {
				return err
			}
			n, err := count.GetFlush(0, 0)
			if err := errors.Join(err, count.PutFlush(n+1, 0, 0), m.Unlock()); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 3 {
			n, err := count.GetFlush(0, 0)
			fmt.Println(n, err)
		}
		return errors.Join(c.Barrier(), locks.Free())
	})
	fmt.Println(err)
	// Output:
	// 400 <nil>
	// <nil>
}
