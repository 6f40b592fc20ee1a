// Command config is a configuration table that all ranks read all the time and that
// somebody changes now and then. An entry is several words, which must be read as
// they were written together. RMA-RW is the lock for that: readers count themselves
// at a counter near them and do not disturb each other; a writer, who is rare, pays.
//
//	go run ./examples/config -ranks 4
//	go build -o config ./examples/config && mpirun -n 4 ./config
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rmarw"
	_ "github.com/rmalock/rmalock/topo/hardware" // for the levels inside the node
)

const (
	entries = 16   // of the table
	reads   = 2000 // of each rank
	oneIn   = 100  // a write with every so many reads
)

// The words of an entry.
const (
	version = iota // writes so far
	timeout
	limit
	sum // of the three, which a reader checks
	words
)

func main() {
	backend := flag.String("backend", "auto", "where ranks come from: mpi, inproc, or auto: mpi under mpirun or srun")
	ranks := flag.Int("ranks", 4, "ranks of the inproc backend")
	flag.Parse()
	if err := start(*backend, *ranks, serve); err != nil {
		fmt.Fprintln(os.Stderr, "config:", err)
		os.Exit(1)
	}
}

// start runs f at every rank: as goroutines of this process, or in all processes of
// the job that the launcher has started.
func start(backend string, ranks int, f func(rma.Comm) error) error {
	switch {
	case backend == "mpi" || backend == "auto" && mpi.Launched():
		return mpi.Run(f)
	case backend == "inproc" || backend == "auto":
		return inproc.Run(ranks, f)
	}
	return fmt.Errorf("no backend is called %q", backend)
}

// A table is one rank's handle on the configuration. It lies at rank 0.
type table struct {
	data *rma.Window
	lock *rmarw.RWMutex
}

// serve is the program of one rank.
func serve(c rma.Comm) error {
	data, err := c.Allocate(rma.DataSpec("config", entries*words))
	if err != nil {
		return err
	}
	// The zero Config finds out where ranks are (package topo), and puts a counter for
	// readers on each node and a queue for writers at each level of the machine.
	locks, err := rmarw.New(c, rmarw.Config{})
	if err != nil {
		return err
	}
	t := table{data, locks.Mutex(0).(*rmarw.RWMutex)}

	seen := make([]int64, entries) // the latest version of each entry that this rank knows
	wrote := int64(0)
	for i := range reads {
		e := (i + c.Rank()) % entries
		if i%oneIn == c.Rank()%oneIn {
			if err := t.write(e, int64(i)); err != nil {
				return err
			}
			wrote++
		}
		v, err := t.read(e)
		if err != nil {
			return err
		}
		if v < seen[e] {
			return fmt.Errorf("rank %d: entry %d went back from version %d to %d", c.Rank(), e, seen[e], v)
		}
		seen[e] = v
	}

	all, err := c.Allgather([]int64{wrote}) // nobody returns before all have written
	if err != nil {
		return err
	}
	wrong := error(nil)
	if c.Rank() == 0 {
		wrong = t.check(all)
	}
	if err := rma.Agree(c, wrong); err != nil {
		return err
	}
	if err := locks.Free(); err != nil {
		return err
	}
	return data.Free()
}

// read returns the version of an entry, under the lock in shared mode.
func (t table) read(e int) (int64, error) {
	if err := t.lock.RLock(context.Background()); err != nil {
		return 0, err
	}
	var entry [words]int64
	t.data.GetBulk(entry[:], 0, e*words) // atomic word by word, not as a whole
	if err := t.data.Flush(0); err != nil {
		return 0, err
	}
	if err := t.lock.RUnlock(); err != nil {
		return 0, err
	}
	if entry[version]+entry[timeout]+entry[limit] != entry[sum] {
		return 0, fmt.Errorf("entry %d is torn: %v", e, entry)
	}
	return entry[version], nil
}

// write changes an entry, under the lock in exclusive mode.
func (t table) write(e int, value int64) error {
	if err := t.lock.Lock(context.Background()); err != nil {
		return err
	}
	v, err := t.data.GetFlush(0, e*words+version)
	if err != nil {
		return err
	}
	v++
	entry := []int64{version: v, timeout: value, limit: 2 * value, sum: v + 3*value}
	t.data.PutBulk(entry, 0, e*words)
	if err := t.data.Flush(0); err != nil { // before Unlock
		return err
	}
	return t.lock.Unlock()
}

// check compares the versions with the writes of all ranks.
func (t table) check(wrote []int64) error {
	versions, writes := int64(0), int64(0)
	for e := range entries {
		v, err := t.read(e)
		if err != nil {
			return err
		}
		versions += v
	}
	for _, n := range wrote {
		writes += n
	}
	if versions != writes {
		return fmt.Errorf("the entries have seen %d writes, want %d", versions, writes)
	}
	fmt.Printf("config: %d ranks made %d reads and %d writes: no entry torn, no write lost\n", len(wrote), reads*len(wrote), writes)
	return nil
}
