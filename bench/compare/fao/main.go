// Fao is what bench/c/fao.c does, with this module's window: FetchAndOp(SUM) and Flush
// between two ranks, each on a word of the other. It prints one line of JSON with the
// same fields.
//
//	mpirun -n 2 fao [-duration 1s] [-helper]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
)

func main() {
	duration := flag.Duration("duration", time.Second, "time to run, warm-up included")
	helper := flag.Bool("helper", false, "with the progress helper")
	flag.Parse()
	if err := run(*duration, *helper); err != nil {
		fmt.Fprintln(os.Stderr, "fao:", err)
		time.Sleep(200 * time.Millisecond) // MPICH's launcher loses what it has not read when a rank fails
		os.Exit(1)
	}
}

// ops is the number of operations per reading of the clock.
const ops = 10

func run(duration time.Duration, helper bool) error {
	progress := mpi.ProgressOff
	if helper {
		progress = mpi.ProgressOn
	}
	c, err := mpi.Open(mpi.Config{Progress: progress})
	if err != nil {
		return err
	}
	if c.Size() != 2 || duration <= 0 {
		return fmt.Errorf("%d ranks and a duration of %v, want 2 and more than 0", c.Size(), duration)
	}
	w, err := c.Allocate(rma.CounterSpec("fao", 1))
	if err != nil {
		return err
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	peer := 1 - c.Rank()
	var ns []float64
	made := int64(0)
	begin := c.Now()
	warm, stop := begin+int64(duration)/10, begin+int64(duration)
	for start := begin; start < stop; {
		for range ops {
			if _, err := w.FetchAndOpFlush(1, peer, 0, rma.Sum); err != nil {
				return err
			}
		}
		made += ops
		end := c.Now()
		if start >= warm || end >= stop {
			ns = append(ns, float64(end-start)/ops)
		}
		start = end
	}
	all, err := c.Allgather([]int64{made})
	if err != nil {
		return err
	}
	if v, err := w.GetFlush(c.Rank(), 0); err != nil || v != all[peer] {
		return fmt.Errorf("%d additions made the word %d: %w", all[peer], v, err)
	}
	if err := w.Free(); err != nil {
		return err
	}
	if c.Rank() == 0 {
		slices.Sort(ns)
		err = json.NewEncoder(os.Stdout).Encode(map[string]any{
			"lock": "fao", "mode": "far", "ranks": 2, "transport": c.Describe(),
			"ns_per_acquire_min": ns[0], "ns_per_acquire_median": ns[len(ns)/2], "acquires_per_rank": []int64{made},
		})
		if err != nil {
			return err
		}
	}
	return c.Close()
}
