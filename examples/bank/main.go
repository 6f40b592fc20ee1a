// Command bank moves money between accounts that lie at all ranks. A transfer needs
// two accounts at once, so it takes two locks; it takes them in the order of their
// numbers, so that no circle of ranks waits for each other. No money appears and
// none is lost.
//
//	go run ./examples/bank -ranks 4
//	go build -o bank ./examples/bank && mpirun -n 4 ./bank
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/mpi"
)

const (
	perRank   = 8    // accounts
	opening   = 1000 // balance
	transfers = 1000 // of each rank
)

func main() {
	backend := flag.String("backend", "auto", "where ranks come from: mpi, inproc, or auto: mpi under mpirun or srun")
	ranks := flag.Int("ranks", 4, "ranks of the inproc backend")
	flag.Parse()
	if err := start(*backend, *ranks, trade); err != nil {
		fmt.Fprintln(os.Stderr, "bank:", err)
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

// A bank is one rank's handle on all accounts. Account i lies at rank i mod Size,
// and so does its lock: who changes an account at home does both without the
// network.
type bank struct {
	balances *rma.Window
	locks    *dmcs.Table
	ranks    int
}

func (b *bank) place(account int) (rank, disp int) { return account % b.ranks, account / b.ranks }

// trade is the program of one rank.
func trade(c rma.Comm) error {
	// A balance has one writer at a time, who holds the lock: plain data, class Flag,
	// and no atomics.
	balances, err := c.Allocate(rma.DataSpec("balances", perRank))
	if err != nil {
		return err
	}
	n := perRank * c.Size()
	locks, err := dmcs.New(c, dmcs.Config{Locks: n}) // lock i has its home at rank i mod Size
	if err != nil {
		return err
	}
	b := &bank{balances, locks, c.Size()}
	for disp := range perRank {
		balances.Put(opening, c.Rank(), disp)
	}
	if err := balances.Flush(c.Rank()); err != nil {
		return err
	}
	if err := c.Barrier(); err != nil { // no transfer before all accounts are open
		return err
	}

	draw := rand.New(rand.NewPCG(2, uint64(c.Rank())))
	refused := int64(0)
	began := c.Now()
	for range transfers {
		from, to := draw.IntN(n), draw.IntN(n-1)
		if to >= from {
			to++ // another one than from
		}
		done, err := b.transfer(from, to, 1+draw.Int64N(opening))
		if err != nil {
			return err
		}
		if !done {
			refused++
		}
	}
	took := c.Now() - began
	if err := c.Barrier(); err != nil {
		return err
	}

	all, err := c.Allgather([]int64{refused})
	if err != nil {
		return err
	}
	wrong := error(nil)
	if c.Rank() == 0 {
		if wrong = b.audit(n); wrong == nil {
			refused = 0
			for _, r := range all {
				refused += r
			}
			fmt.Printf("bank: %d ranks made %d transfers between %d accounts, %d refused for lack of money, %.1f us each: total conserved\n",
				c.Size(), transfers*c.Size(), n, refused, float64(took)/1e3/transfers)
		}
	}
	if err := rma.Agree(c, wrong); err != nil {
		return err
	}
	if err := locks.Free(); err != nil {
		return err
	}
	return balances.Free()
}

// transfer moves an amount and reports whether there was enough.
func (b *bank) transfer(from, to int, amount int64) (bool, error) {
	ctx := context.Background() // one that can end makes Lock return lock.ErrDeadline, and D-MCS poll
	// The order is what keeps two ranks with opposite transfers from holding a lock
	// each and waiting for the other's for ever.
	first, second := min(from, to), max(from, to)
	if err := b.locks.Lock(ctx, first, lock.Exclusive); err != nil {
		return false, err
	}
	if err := b.locks.Lock(ctx, second, lock.Exclusive); err != nil {
		return false, err
	}
	done, err := b.move(from, to, amount)
	if err != nil {
		return false, err
	}
	// The order of unlocking does not matter.
	if err := b.locks.Unlock(second, lock.Exclusive); err != nil {
		return false, err
	}
	return done, b.locks.Unlock(first, lock.Exclusive)
}

// move is the critical section: the caller holds both locks.
func (b *bank) move(from, to int, amount int64) (bool, error) {
	r1, d1 := b.place(from)
	r2, d2 := b.place(to)
	w := b.balances
	x, y := w.Get(r1, d1), w.Get(r2, d2) // both under way together
	if err := w.FlushAll(); err != nil {
		return false, err
	}
	have := w.Value(x)
	if have < amount {
		return false, nil
	}
	w.Put(have-amount, r1, d1)
	w.Put(w.Value(y)+amount, r2, d2)
	// Before Unlock: the lock shows the next holder what was flushed, nothing else.
	return true, w.FlushAll()
}

// audit adds up all accounts.
func (b *bank) audit(n int) error {
	total := int64(0)
	for account := range n {
		rank, disp := b.place(account)
		have, err := b.balances.GetFlush(rank, disp)
		if err != nil {
			return err
		}
		if have < 0 {
			return fmt.Errorf("account %d has %d", account, have)
		}
		total += have
	}
	if want := int64(n) * opening; total != want {
		return fmt.Errorf("all accounts have %d together, want %d", total, want)
	}
	return nil
}
