//go:build cgo && !mpich

// Command attach is a program whose MPI gompi has started: gompi carries its
// messages, and its locks attach to the same MPI. With the argument "multiple" it
// probesPerTimeout for MPI_THREAD_MULTIPLE.
package main

import (
	"fmt"
	"os"
	"runtime"

	gompi "github.com/sbromberger/gompi"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
)

// MPI_Init grants MPI_THREAD_SINGLE: all calls must come from one thread.
func init() { runtime.LockOSThread() }

func main() {
	mpi.Prepare()
	gompi.Start(len(os.Args) > 1 && os.Args[1] == "multiple")
	err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	gompi.Stop()
}

func run() error {
	world := gompi.NewCommunicator(nil)
	c, err := mpi.Open(mpi.Config{})
	if err != nil {
		return err
	}
	if c.Rank() != world.Rank() || c.Size() != world.Size() {
		return fmt.Errorf("rank %d of %d here, %d of %d in gompi", c.Rank(), c.Size(), world.Rank(), world.Size())
	}
	count, err := c.Allocate(rma.CounterSpec("count", 1))
	if err != nil {
		return err
	}
	const rounds = 100
	for range rounds {
		if err := count.AccumulateFlush(1, 0, 0, rma.Sum); err != nil {
			return err
		}
	}
	mpi.Do(world.Barrier) // gompi's messages between this package's calls
	n, err := count.GetFlush(0, 0)
	if err != nil {
		return err
	}
	if n != int64(rounds*c.Size()) {
		return fmt.Errorf("rank %d: counted %d, want %d", c.Rank(), n, rounds*c.Size())
	}
	sum := []int64{0}
	if err := world.AllreduceInt64s(sum, []int64{1}, gompi.OpSum, 0); err != nil {
		return err
	}
	if sum[0] != int64(c.Size()) {
		return fmt.Errorf("rank %d: gompi's sum is %d", c.Rank(), sum[0])
	}
	// From another thread than the one that started MPI: refused, not undefined.
	if len(os.Args) == 1 {
		done := make(chan error)
		go func() { done <- c.Barrier() }()
		if err := <-done; err == nil {
			return fmt.Errorf("a Barrier from another thread went through under MPI_THREAD_SINGLE")
		} else if c.Rank() == 0 {
			fmt.Println(err)
		}
	}
	if err := count.Free(); err != nil {
		return err
	}
	if err := c.Close(); err != nil { // leaves MPI to gompi
		return err
	}
	if c.Rank() == 0 {
		fmt.Println("attached,", n, "counted")
	}
	return nil
}
