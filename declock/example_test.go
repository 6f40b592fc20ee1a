package declock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/declock"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// Ranks count in a word of a memory node. One has died with the lock; the others go on.
func Example() {
	job := inproc.Job{Nodes: 3, PerNode: 1, MemoryNodes: 1, MayDie: true}
	err := job.Run(func(c rma.Comm) error {
		locks, err := declock.New(c, declock.Config{Lease: 1e9}) // 1 s
		if err != nil {
			return err
		}
		count := rma.DataSpec("count", 1)
		count.Hosts = rma.MemoryNodes
		w, err := c.Allocate(count)
		if err != nil {
			return err
		}
		m := locks.Mutex(0)
		if c.Rank() == 2 { // dies with the lock
			return errors.Join(m.Lock(context.Background()), c.Barrier(), rma.ErrDied)
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		for range 10 {
			if err := m.Lock(context.Background()); errors.Is(err, lock.ErrOwnerDied) {
				fmt.Println("a holder died; what the lock guards may be half written")
			} else if err != nil {
				return err
			}
			n, err := w.GetFlush(0, 0)
			if err != nil {
				return err
			}
			if err := w.PutFlush(n+1, 0, 0); err != nil { // flushed before Unlock
				return err
			}
			if err := m.Unlock(); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil { // of those that live
			return err
		}
		n, err := w.GetFlush(0, 0)
		if c.Rank() == 0 {
			fmt.Println(n)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// a holder died; what the lock guards may be half written
	// 20
	// <nil>
}
