package baseline_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// Four ranks add to the words of four locks, each under its lock; then one rank takes all
// of the locks in shared mode, as MPI_Win_lock_all does, and sums the words.
func ExampleRW_LockAll() {
	err := inproc.Run(4, func(c rma.Comm) error {
		locks, err := baseline.NewRW(c, baseline.Config{Locks: 4}, baseline.FoMPI)
		if err != nil {
			return err
		}
		words, err := c.Allocate(rma.DataSpec("words", 4))
		if err != nil {
			return err
		}
		ctx := context.Background()
		for i := range 100 {
			id := i % 4
			if err := locks.Lock(ctx, id, lock.Exclusive); err != nil {
				return err
			}
			n, err := words.GetFlush(0, id)
			if err != nil {
				return err
			}
			if err := words.PutFlush(n+1, 0, id); err != nil { // flushed before Unlock
				return err
			}
			if err := locks.Unlock(id, lock.Exclusive); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 3 {
			if err := locks.LockAll(ctx); err != nil {
				return err
			}
			sum := int64(0)
			for id := range 4 {
				n, err := words.GetFlush(0, id)
				if err != nil {
					return err
				}
				sum += n
			}
			fmt.Println(sum)
			if err := locks.UnlockAll(); err != nil {
				return err
			}
		}
		return locks.Free()
	})
	fmt.Println(err)
	// Output:
	// 400
	// <nil>
}

// A rank that holds a lock and does not get another one in eight tries is told to give way: it
// lets go of what it holds, and may begin again later.
func ExampleNewRetryOnFail() {
	err := inproc.Job{Nodes: 1, PerNode: 2, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		locks, err := baseline.NewRetryOnFail(c, baseline.Config{
			Locks: 2, Retries: 8, Backoff: baseline.Backoff{BaseNs: 10_000, MaxNs: 10_000_000, Jitter: baseline.Full},
		}, baseline.Keep)
		if err != nil {
			return err
		}
		ctx := context.Background()
		if err := locks.Lock(ctx, c.Rank(), lock.Exclusive); err != nil {
			return err
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 0 { // rank 1 has lock 1
			err := locks.Lock(ctx, 1, lock.Exclusive)
			fmt.Println(errors.Is(err, lock.ErrGiveWay))
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if err := locks.Unlock(c.Rank(), lock.Exclusive); err != nil {
			return err
		}
		return locks.Free()
	})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}
