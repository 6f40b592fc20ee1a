//go:build cgo

// Command gompi is a program whose MPI belongs to gompi: gompi starts it and carries
// the messages; this library attaches to the same MPI for windows and locks. Rank 0
// sends everybody work, everybody counts what it finds in a histogram that lies in a
// window at all ranks, and a reduction of gompi's checks the total.
//
//	go build -o gompi ./examples/gompi && mpirun -n 4 ./gompi
//
// gompi names Open MPI's headers and library. For MPICH:
//
//	CGO_CFLAGS="$(pkg-config --cflags mpich)" \
//	CGO_LDFLAGS="-Wl,--as-needed $(pkg-config --libs mpich)" \
//	go build -tags mpich -o gompi ./examples/gompi && mpirun.mpich -n 4 ./gompi
//
// # Rules
//
// One MPI in one process has two users now, and a rank's memory must be served while
// the rank computes. What is allowed depends on who started MPI, and how. The flag
// -start shows the three ways:
//
//	-start single    gompi.Start(false), which is MPI_Init. All MPI calls come from the
//	                 thread that made it, so main keeps it (init, below), and neither
//	                 library may be called from another goroutine. There can be no
//	                 helper thread: while a rank computes, nobody serves what ranks of
//	                 other nodes want of its memory. So it calls MPI now and then.
//	-start multiple  gompi.Start(true), which asks for MPI_THREAD_MULTIPLE. The helper
//	                 runs, and calls of both libraries may meet. Open MPI 4 refuses
//	                 one-sided communication between nodes at this level.
//	-start library   this library starts MPI, with MPI_THREAD_SERIALIZED; gompi finds it
//	                 started. The helper runs, so each call of gompi's is wrapped in
//	                 mpi.Do, which keeps the helper out of MPI meanwhile. The best one
//	                 for many nodes.
//
// gompi v0.2.0 has bugs to keep away from: BcastBytes writes beyond its slice, and
// IsOn stays true after Stop.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"

	gompi "github.com/sbromberger/gompi"

	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
)

// The main goroutine keeps the thread that main starts in, and so the one that starts
// MPI. Only init comes early enough.
func init() { runtime.LockOSThread() }

const (
	bins    = 10
	tag     = 7
	perRank = 2000 // numbers
)

func main() {
	start := flag.String("start", "single", "who starts MPI: single, multiple (both gompi), or library")
	flag.Parse()
	if err := run(*start); err != nil {
		fmt.Fprintln(os.Stderr, "gompi:", err)
		os.Exit(1) // the launcher ends the others
	}
}

func run(start string) error {
	switch start {
	case "single", "multiple":
		// First, since Open MPI reads its settings when it starts, and some of its
		// defaults are wrong for one-sided communication.
		mpi.Prepare()
		gompi.Start(start == "multiple")
		defer gompi.Stop() // who started MPI ends it, after Close
	case "library":
	default:
		return fmt.Errorf("-start is %q, want single, multiple or library", start)
	}
	world, err := mpi.Open(mpi.Config{}) // attaches where MPI is started, and starts it otherwise
	if err != nil {
		return err
	}
	if err := count(world, start); err != nil {
		return err
	}
	return world.Close() // ends MPI where Open started it, and leaves it to gompi otherwise
}

// count is the program of one rank.
func count(c *mpi.World, start string) error {
	// gompi's calls go through here. Do is needed where the helper runs and MPI does not
	// allow calls that meet; elsewhere it does no harm. What is in it must not use this
	// library.
	messages := func(f func()) { mpi.Do(f) }

	var world *gompi.Communicator
	messages(func() { world = gompi.NewCommunicator(nil) })
	if world.Rank() != c.Rank() || world.Size() != c.Size() {
		return fmt.Errorf("rank %d of %d here, rank %d of %d in gompi", c.Rank(), c.Size(), world.Rank(), world.Size())
	}

	// Windows and locks: as in a program without gompi.
	histogram, err := c.Allocate(rma.DataSpec("histogram", bins))
	if err != nil {
		return err
	}
	locks, err := dmcs.New(c, dmcs.Config{Locks: c.Size()}) // lock r guards the part of rank r
	if err != nil {
		return err
	}

	// Messages: rank 0 sends each rank the first of its numbers.
	first := int64(0)
	messages(func() {
		if world.Rank() > 0 {
			first, _ = world.RecvInt64(0, tag)
			return
		}
		for r := 1; r < world.Size(); r++ {
			world.SendInt64(int64(r*perRank), r, tag)
		}
	})

	for x := first; x < first+perRank; x++ {
		n := steps(x + 1)
		if err := add(histogram, locks, n%c.Size(), n/c.Size()%bins); err != nil {
			return err
		}
		// Without a helper, a rank that only computed here would let the others wait. add
		// calls MPI whenever ranks are on several nodes; where long stretches of a program
		// do not, let it call something cheap now and then, such as gompi's Iprobe.
	}

	// A barrier of gompi's serves as well as one of this library's: each rank comes to it
	// with everything flushed.
	messages(world.Barrier)
	mine, err := total(histogram, c.Rank())
	if err != nil {
		return err
	}
	sum := []int64{0}
	messages(func() { err = world.AllreduceInt64s(sum, []int64{mine}, gompi.OpSum, 0) })
	if err != nil {
		return err
	}
	if want := int64(perRank * c.Size()); sum[0] != want {
		return fmt.Errorf("rank %d: %d numbers are in the histogram, want %d", c.Rank(), sum[0], want)
	}
	if c.Rank() == 0 {
		fmt.Printf("gompi: %d ranks counted %d numbers in a histogram under locks, MPI started by %s: as many as gompi's reduction says\n",
			c.Size(), sum[0], start)
	}
	if err := locks.Free(); err != nil {
		return err
	}
	return histogram.Free()
}

// add counts in a word of some rank, under its lock.
func add(w *rma.Window, locks *dmcs.Table, rank, bin int) error {
	if err := locks.Lock(context.Background(), rank, lock.Exclusive); err != nil {
		return err
	}
	n, err := w.GetFlush(rank, bin)
	if err != nil {
		return err
	}
	if err := w.PutFlush(n+1, rank, bin); err != nil { // flushed before Unlock
		return err
	}
	return locks.Unlock(rank, lock.Exclusive)
}

// total adds up the part of a rank.
func total(w *rma.Window, rank int) (int64, error) {
	var part [bins]int64
	w.GetBulk(part[:], rank, 0)
	err := w.Flush(rank)
	sum := int64(0)
	for _, n := range part {
		sum += n
	}
	return sum, err
}

// steps is the number of steps from x to 1: halve the even, triple the odd and add
// one.
func steps(x int64) int {
	n := 0
	for ; x != 1; n++ {
		if x%2 == 0 {
			x /= 2
		} else {
			x = 3*x + 1
		}
	}
	return n
}
