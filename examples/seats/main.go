// Command seats sells the seats of flights that lie on memory nodes: machines that have memory and
// run no program. The locks lie there too, so that a seller that comes or goes leaves nothing
// behind. No seat is sold twice, and none is left.
//
//	go run ./examples/seats -ranks 4
//	go build -o bin/ ./examples/seats && mpirun -n 5 bin/seats -memory-nodes 1
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/mpi"
)

const (
	flights = 16
	seats   = 20 // of a flight
)

func main() {
	backend := flag.String("backend", "auto", "where ranks come from: mpi, inproc, or auto: mpi under mpirun or srun")
	ranks := flag.Int("ranks", 4, "ranks of the inproc backend")
	memoryNodes := flag.Int("memory-nodes", -1, "number of memory nodes; under MPI they are some of the ranks (default 1, under MPI 0: the ranks' own memory)")
	flag.Parse()
	if err := start(*backend, *ranks, *memoryNodes, sell); err != nil {
		fmt.Fprintln(os.Stderr, "seats:", err)
		os.Exit(1)
	}
}

// start runs f at every rank but memory nodes, which serve until the others have ended.
func start(backend string, ranks, memoryNodes int, f func(rma.Comm) error) error {
	switch {
	case backend == "mpi" || backend == "auto" && mpi.Launched():
		return mpi.Config{MemoryNodes: max(memoryNodes, 0)}.Run(f)
	case ranks < 1:
		return fmt.Errorf("-ranks is %d, want at least 1 rank", ranks)
	case backend == "inproc" || backend == "auto":
		if memoryNodes < 0 {
			memoryNodes = 1
		}
		return inproc.Job{Nodes: 1, PerNode: ranks, MemoryNodes: memoryNodes}.Run(f)
	}
	return fmt.Errorf("no backend is called %q", backend)
}

// An office is one rank's handle on all flights. Flight i lies where its lock has its home.
type office struct {
	locks   *dslr.Table
	sold    *rma.Window // of each flight the number of seats sold, and the buyer of each seat
	hosts   int
	tickets int64
}

// place is the first word of a flight.
func (o *office) place(flight int) (host, disp int) {
	return o.locks.Home(flight), flight / o.hosts * (1 + seats)
}

// sell is the program of one rank.
func sell(c rma.Comm) error {
	// A rank that keeps a lock for longer than the lease may lose it, and its Unlock says so. A
	// minute is longer than any pause of a busy machine.
	locks, err := dslr.New(c, dslr.Config{Locks: flights, Lease: int64(time.Minute)})
	if err != nil {
		return err
	}
	o := &office{locks: locks, hosts: lock.HomesOf(locks, c)}
	spec := rma.DataSpec("seats", (flights+o.hosts-1)/o.hosts*(1+seats))
	spec.Hosts = lock.HostsOf(locks) // memory nodes, or ranks where the job has none
	if o.sold, err = c.Allocate(spec); err != nil {
		return err
	}
	draw := rand.New(rand.NewPCG(7, uint64(c.Rank())))
	for full := 0; full < flights; { // each flight at least once, until it is full
		flight := draw.IntN(flights)
		for full = 0; full < flights; full++ {
			got, err := o.book(flight, int64(c.Rank()+1))
			if err != nil {
				return err
			}
			if got {
				break
			}
			flight = (flight + 1) % flights
		}
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	all, err := c.Allgather([]int64{o.tickets})
	if err != nil {
		return err
	}
	wrong := error(nil)
	if c.Rank() == 0 {
		if wrong = o.audit(all); wrong == nil {
			fmt.Printf("seats: %d ranks sold %d seats of %d flights: none twice, none left\n", c.Size(), flights*seats, flights)
		}
	}
	if err := rma.Agree(c, wrong); err != nil {
		return err
	}
	return errors.Join(locks.Free(), o.sold.Free())
}

// book sells a seat to a buyer, and reports whether there was one.
func (o *office) book(flight int, buyer int64) (bool, error) {
	host, disp := o.place(flight)
	// lock.ErrOwnerDied would say that a seller has died with the lock: what it guards may be half
	// written. Here the number of seats is written last, so that nothing is wrong then.
	if err := o.locks.Lock(context.Background(), flight, lock.Exclusive); err != nil && !errors.Is(err, lock.ErrOwnerDied) {
		return false, err
	}
	sold, err := o.sold.GetFlush(host, disp)
	if err == nil && sold < seats {
		if err = o.sold.PutFlush(buyer, host, disp+1+int(sold)); err == nil {
			err = o.sold.PutFlush(sold+1, host, disp) // flushed before Unlock
		}
	}
	if err != nil {
		return false, err
	}
	if sold < seats {
		o.tickets++
	}
	return sold < seats, o.locks.Unlock(flight, lock.Exclusive)
}

// audit compares the seats of each buyer with the tickets that it got.
func (o *office) audit(tickets []int64) error {
	for flight := range flights {
		host, disp := o.place(flight)
		for seat := range seats {
			buyer, err := o.sold.GetFlush(host, disp+1+seat)
			if err != nil {
				return err
			}
			if buyer < 1 || buyer > int64(len(tickets)) {
				return fmt.Errorf("seat %d of flight %d is of buyer %d, want 1 to %d", seat, flight, buyer, len(tickets))
			}
			tickets[buyer-1]--
		}
	}
	for buyer, n := range tickets {
		if n != 0 {
			return fmt.Errorf("buyer %d has %d tickets more than seats", buyer+1, n)
		}
	}
	return nil
}
