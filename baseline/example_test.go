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

// Three ranks share a lock of the CAS spin lock; while they do, a writer's try fails.
func ExampleNewCASLock() {
	err := inproc.Job{Nodes: 1, PerNode: 3, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		locks, err := baseline.NewCASLock(c, baseline.Config{Locks: 1}, baseline.Keep)
		if err != nil {
			return err
		}
		if c.Rank() > 0 {
			if err := locks.Lock(context.Background(), 0, lock.Shared); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			got, err := locks.TryLock(0, lock.Exclusive)
			fmt.Println(got, err)
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() > 0 {
			if err := locks.Unlock(0, lock.Shared); err != nil {
				return err
			}
		}
		return locks.Free()
	})
	fmt.Println(err)
	// Output:
	// false <nil>
	// <nil>
}

// Ranks count under a ticket lock whose counters are reset after eight tickets.
func ExampleNewDSLRPlus() {
	err := inproc.Job{Nodes: 1, PerNode: 4, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		locks, err := baseline.NewDSLRPlus(c, baseline.PlusConfig{Config: baseline.Config{Locks: 1}, CountMax: 8})
		if err != nil {
			return err
		}
		n, err := counts(c, locks, 4)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(n)
		}
		return locks.Free()
	})
	fmt.Println(err)
	// Output:
	// 100
	// <nil>
}

// A reader whose lease has ended learns so from Unlock: what it has read may be torn, and it reads
// again.
func ExampleNewDrTM() {
	err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		locks, err := baseline.NewDrTM(c, baseline.DrTMConfig{Config: baseline.Config{Locks: 1}, LeaseNs: 1_000_000})
		if err != nil {
			return err
		}
		if err := locks.Lock(context.Background(), 0, lock.Shared); err != nil {
			return err
		}
		c.Sleep(2_000_000)
		err = locks.Unlock(0, lock.Shared)
		fmt.Println(errors.Is(err, lock.ErrLeaseLost))
		return locks.Free()
	})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// The last rank serves, and takes no locks; the others count under a lock.
func ExampleNewNCoSED() {
	err := inproc.Job{Nodes: 1, PerNode: 5, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		locks, err := baseline.NewNCoSED(c, baseline.NCoSEDConfig{Config: baseline.Config{Locks: 1}})
		if err != nil {
			return err
		}
		return servedCounts(c, locks)
	})
	fmt.Println(err)
	// Output:
	// 100
	// <nil>
}

// The same with a lock manager that lets up to ten readers pass a writer.
func ExampleNewTraditional() {
	err := inproc.Job{Nodes: 1, PerNode: 5}.Run(func(c rma.Comm) error {
		locks, err := baseline.NewTraditional(c, baseline.TraditionalConfig{Locks: 1, Passes: 10})
		if err != nil {
			return err
		}
		return servedCounts(c, locks)
	})
	fmt.Println(err)
	// Output:
	// 100
	// <nil>
}

// servedCounts counts under lock 0 of a table that some ranks serve.
func servedCounts(c rma.Comm, locks lock.Table) error {
	n, err := counts(c, locks, 4)
	if err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Println(n)
	}
	return locks.Free()
}

// counts has the first ranks add to a word under lock 0, 25 times each, and returns the sum. The
// others serve.
func counts(c rma.Comm, locks lock.Table, clients int) (int64, error) {
	word, err := c.Allocate(rma.DataSpec("word", 1))
	if err != nil {
		return 0, err
	}
	for range 25 {
		if c.Rank() >= clients {
			break
		}
		if err := locks.Lock(context.Background(), 0, lock.Exclusive); err != nil {
			return 0, err
		}
		n, err := word.GetFlush(0, 0)
		if err != nil {
			return 0, err
		}
		if err := word.PutFlush(n+1, 0, 0); err != nil {
			return 0, err
		}
		if err := locks.Unlock(0, lock.Exclusive); err != nil {
			return 0, err
		}
	}
	if err := lock.Leave(locks); err != nil { // a rank that serves stays until all have left
		return 0, err
	}
	if err := c.Barrier(); err != nil {
		return 0, err
	}
	return word.GetFlush(0, 0)
}
