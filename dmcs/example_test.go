package dmcs_test

import (
	"context"
	"fmt"

	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// Four ranks count to four hundred in a word that the lock guards.
func Example() {
	err := inproc.Run(4, func(c rma.Comm) error {
		locks, err := dmcs.New(c, dmcs.Config{}) // one lock, at home at rank 0
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
			if err != nil {
				return err
			}
			if err := count.PutFlush(n+1, 0, 0); err != nil { // flushed before Unlock
				return err
			}
			if err := m.Unlock(); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			n, err := count.GetFlush(0, 0)
			fmt.Println(n, err)
		}
		return locks.Free()
	})
	fmt.Println(err)
	// Output:
	// 400 <nil>
	// <nil>
}
