// Command counters is a global array of counters: an array that is spread over the
// memory of all ranks, and that every rank updates at random places, one-sidedly.
// The rank that hosts a counter takes no part in it.
//
//	go run ./examples/counters -ranks 4
//	go build -o counters ./examples/counters && mpirun -n 4 ./counters
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/mpi"
)

const (
	counters = 1000  // in the whole array
	updates  = 20000 // of each rank
)

func main() {
	backend := flag.String("backend", "auto", "where ranks come from: mpi, inproc, or auto: mpi under mpirun or srun")
	ranks := flag.Int("ranks", 4, "ranks of the inproc backend")
	flag.Parse()
	if err := start(*backend, *ranks, count); err != nil {
		fmt.Fprintln(os.Stderr, "counters:", err)
		os.Exit(1)
	}
}

// start runs f at every rank: as goroutines of this process, or in all processes of
// the job that the launcher has started. f does not see the difference.
func start(backend string, ranks int, f func(rma.Comm) error) error {
	switch {
	case backend == "mpi" || backend == "auto" && mpi.Launched():
		return mpi.Run(f)
	case backend == "inproc" || backend == "auto":
		return inproc.Run(ranks, f)
	}
	return fmt.Errorf("no backend is called %q", backend)
}

// An array is the global view of a window. The window is local memory at each rank,
// addressed by (rank, displacement); where the elements of the array lie is for the
// program to say. Here they lie in blocks: 0 to per-1 at rank 0, and so on.
type array struct {
	words *rma.Window
	per   int // elements per rank
}

// place is where element i lies.
func (a array) place(i int) (rank, disp int) { return i / a.per, i % a.per }

// count is the program of one rank.
func count(c rma.Comm) error {
	per := (counters + c.Size() - 1) / c.Size() // windows have the same size at all ranks
	// Counters are words that everybody updates by atomics: class Far. Allocate is
	// collective, like every call that opens something; the words are zero.
	w, err := c.Allocate(rma.CounterSpec("counters", per))
	if err != nil {
		return err
	}
	a := array{w, per}

	draw := draws(c.Rank())
	pending := 0
	for range updates {
		rank, disp := a.place(draw.IntN(counters))
		// Accumulate is atomic by itself: no lock is needed to add. It is also only
		// issued; it has happened when a Flush has returned. Up to rma.MaxPending may be
		// under way, so that the network's latency is paid once for many.
		w.Accumulate(1, rank, disp, rma.Sum)
		if pending++; pending == rma.MaxPending {
			if err := w.FlushAll(); err != nil { // errors of operations come out here
				return err
			}
			pending = 0
		}
	}
	if err := w.FlushAll(); err != nil {
		return err
	}
	// All have flushed before anybody passes the barrier: from here on the array is
	// what it will be.
	if err := c.Barrier(); err != nil {
		return err
	}

	wrong := error(nil)
	if c.Rank() == 0 {
		wrong = check(a, c.Size())
	}
	// Rank 0 alone knows. Agree tells all, so that all end in the same way.
	if err := rma.Agree(c, wrong); err != nil {
		return err
	}
	return w.Free()
}

// draws are the random numbers of a rank, the same in every run.
func draws(rank int) *rand.Rand { return rand.New(rand.NewPCG(1, uint64(rank))) }

// check reads the whole array and compares it with what all ranks have drawn.
func check(a array, ranks int) error {
	want := make([]int64, counters)
	for rank := range ranks {
		draw := draws(rank)
		for range updates {
			want[draw.IntN(counters)]++
		}
	}
	got := make([]int64, a.per*ranks)
	for rank := range ranks {
		a.words.GetBulk(got[rank*a.per:][:a.per], rank, 0)
	}
	if err := a.words.FlushAll(); err != nil { // now got is filled
		return err
	}
	sum := int64(0)
	for i, n := range want {
		if got[i] != n {
			return fmt.Errorf("counter %d is %d, want %d", i, got[i], n)
		}
		sum += got[i]
	}
	fmt.Printf("counters: %d ranks made %d updates of %d counters: all right\n", ranks, sum, counters)
	return nil
}
