// Command workqueue shares out work that nobody can share out beforehand: the search
// for all ways to put N queens on a board. Every rank has a queue of tasks in its
// part of a window. It works on its own; when it has none left it takes half of
// another's, one-sidedly: the other goes on working.
//
//	go run ./examples/workqueue -ranks 4 -queens 11
//	go build -o workqueue ./examples/workqueue && mpirun -n 4 ./workqueue
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

func main() {
	backend := flag.String("backend", "auto", "where ranks come from: mpi, inproc, or auto: mpi under mpirun or srun")
	ranks := flag.Int("ranks", 4, "ranks of the inproc backend")
	queens := flag.Int("queens", 10, "queens, and the board's width, 1 to 16")
	flag.Parse()
	if *queens < 1 || *queens > 16 {
		fmt.Fprintf(os.Stderr, "workqueue: -queens is %d, want 1 to 16\n", *queens)
		os.Exit(2)
	}
	work := func(c rma.Comm) error { return work(c, *queens) }
	if err := start(*backend, *ranks, work); err != nil {
		fmt.Fprintln(os.Stderr, "workqueue:", err)
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

// A task is a board whose first rows are filled, in words that can lie in a window:
// the rows that are filled, and the columns and diagonals that are taken in the next
// row, a bit each.
type task [taskWords]int64

const (
	row = iota
	columns
	left
	right
	taskWords
)

// next calls f for every board with one row more.
func (t task) next(queens int, f func(task)) {
	for free := ^(t[columns] | t[left] | t[right]) & (1<<queens - 1); free != 0; free &= free - 1 {
		q := free & -free
		f(task{t[row] + 1, t[columns] | q, (t[left] | q) << 1, (t[right] | q) >> 1})
	}
}

// solve counts the solutions below a board, without help.
func (t task) solve(queens int) int64 {
	if t[row] == int64(queens) {
		return 1
	}
	n := int64(0)
	t.next(queens, func(t task) { n += t.solve(queens) })
	return n
}

// rest is how many rows a task that is not worth sharing may have left.
const rest = 6

// The words of a queue. Its tasks are those from bottom to top. The owner works at
// the top, where the small ones are; thieves take from the bottom. All words have
// one writer at a time, who holds the queue's lock: class Flag, as in rma.Data.
const (
	bottom   = 0
	top      = 1
	tasks    = 2
	capacity = 1024 // tasks
)

// pool is one rank's handle on the queues of all.
type pool struct {
	queues *rma.Window
	locks  *dmcs.Table // lock r guards the queue of rank r, and has its home there
	open   *rma.Window // at rank 0: tasks that are not done, in queues or in hand
	rank   int
	ranks  int
	stolen int64 // tasks
}

// work is the program of one rank.
func work(c rma.Comm, queens int) error {
	queues, err := c.Allocate(rma.DataSpec("queues", tasks+capacity*taskWords))
	if err != nil {
		return err
	}
	locks, err := dmcs.New(c, dmcs.Config{Locks: c.Size()})
	if err != nil {
		return err
	}
	open, err := c.Allocate(rma.CounterSpec("open", 1))
	if err != nil {
		return err
	}
	p := &pool{queues: queues, locks: locks, open: open, rank: c.Rank(), ranks: c.Size()}
	if c.Rank() == 0 { // the empty board; the others will have to steal
		if err := p.add(1); err != nil {
			return err
		}
		if err := p.push([]task{{}}); err != nil {
			return err
		}
	}
	if err := c.Barrier(); err != nil {
		return err
	}

	found, did, err := p.run(c, queens)
	if err != nil {
		return err
	}
	all, err := c.Allgather([]int64{found, did, p.stolen})
	if err != nil {
		return err
	}
	wrong := error(nil)
	if c.Rank() == 0 {
		wrong = report(all, queens)
	}
	if err := rma.Agree(c, wrong); err != nil {
		return err
	}
	if err := open.Free(); err != nil {
		return err
	}
	if err := locks.Free(); err != nil {
		return err
	}
	return queues.Free()
}

// run works until no rank has anything to do, and returns the solutions that this one
// found and the tasks that it did.
func (p *pool) run(c rma.Comm, queens int) (found, did int64, err error) {
	draw := rand.New(rand.NewPCG(3, uint64(p.rank)))
	for pause := int64(1000); ; {
		t, ok, err := p.pop()
		if err == nil && !ok && p.ranks > 1 {
			t, ok, err = p.steal((p.rank + 1 + draw.IntN(p.ranks-1)) % p.ranks)
		}
		if err != nil {
			return found, did, err
		}
		if !ok {
			left, err := p.open.FetchAndOpFlush(0, 0, 0, rma.NoOp) // an atomic read
			if err != nil || left == 0 {
				return found, did, err
			}
			// Others are at work. Ask less and less often: what they need for their work is
			// the same network.
			c.Sleep(pause)
			pause = min(2*pause, 200_000)
			continue
		}
		pause = 1000
		did++
		if int64(queens)-t[row] <= rest {
			found += t.solve(queens)
			if err := p.add(-1); err != nil {
				return found, did, err
			}
			continue
		}
		var more []task
		t.next(queens, func(t task) { more = append(more, t) })
		// Counted before anybody can take them: otherwise a thief could finish the last
		// one and see 0 while this rank still has to count the others.
		if err := p.add(int64(len(more)) - 1); err != nil {
			return found, did, err
		}
		if err := p.push(more); err != nil {
			return found, did, err
		}
	}
}

// add counts open tasks.
func (p *pool) add(n int64) error { return p.open.AccumulateFlush(n, 0, 0, rma.Sum) }

// push puts tasks on the rank's own queue.
func (p *pool) push(more []task) error {
	return p.locked(p.rank, func(lo, hi int64) error {
		if hi+int64(len(more)) > capacity {
			return fmt.Errorf("queue of rank %d is full", p.rank)
		}
		var words []int64
		for _, t := range more {
			words = append(words, t[:]...)
		}
		if len(words) > 0 {
			p.queues.PutBulk(words, p.rank, at(hi)) // words must not change before the Flush
		}
		p.queues.Put(hi+int64(len(more)), p.rank, top)
		return nil
	})
}

// pop takes a task from the top of the rank's own queue.
func (p *pool) pop() (t task, ok bool, err error) {
	err = p.locked(p.rank, func(lo, hi int64) error {
		if lo == hi {
			return nil
		}
		ok = true
		p.queues.GetBulk(t[:], p.rank, at(hi-1))
		if lo == hi-1 { // empty: begin anew, so that the queue does not wander
			p.queues.Put(0, p.rank, bottom)
			p.queues.Put(0, p.rank, top)
		} else {
			p.queues.Put(hi-1, p.rank, top)
		}
		return nil
	})
	return t, ok, err
}

// steal takes half of a victim's tasks: one to work on, and the others for the
// rank's own queue. Never holds two locks.
func (p *pool) steal(victim int) (t task, ok bool, err error) {
	// A look without the lock is a hint: it may be old when it arrives. It spares the
	// victim a lock that is taken in vain.
	lo, hi, err := p.ends(victim)
	if err != nil || lo >= hi {
		return t, false, err
	}
	var loot []task
	err = p.locked(victim, func(lo, hi int64) error {
		n := (hi - lo + 1) / 2
		if n <= 0 {
			return nil // somebody was faster
		}
		words := make([]int64, n*taskWords)
		p.queues.GetBulk(words, victim, at(lo))
		p.queues.Put(lo+n, victim, bottom)
		if err := p.queues.Flush(victim); err != nil { // now words are filled
			return err
		}
		for ; len(words) > 0; words = words[taskWords:] {
			loot = append(loot, task(words[:taskWords]))
		}
		return nil
	})
	if err != nil || len(loot) == 0 {
		return t, false, err
	}
	p.stolen += int64(len(loot))
	return loot[0], true, p.push(loot[1:])
}

// locked runs f, with the ends of a rank's queue, while it holds the queue's lock, and
// flushes what f did before it lets go.
func (p *pool) locked(rank int, f func(lo, hi int64) error) error {
	if err := p.locks.Lock(context.Background(), rank, lock.Exclusive); err != nil {
		return err
	}
	lo, hi, err := p.ends(rank)
	if err != nil {
		return err
	}
	if err := f(lo, hi); err != nil {
		return err
	}
	if err := p.queues.Flush(rank); err != nil {
		return err
	}
	return p.locks.Unlock(rank, lock.Exclusive)
}

// ends are bottom and top of a rank's queue.
func (p *pool) ends(rank int) (lo, hi int64, err error) {
	var ends [2]int64
	p.queues.GetBulk(ends[:], rank, bottom)
	err = p.queues.Flush(rank)
	return ends[0], ends[1], err
}

// at is where a task lies.
func at(i int64) int { return tasks + int(i)*taskWords }

// report compares what the ranks found with what one of them finds alone.
func report(all []int64, queens int) error {
	found, did, stolen := int64(0), int64(0), int64(0)
	least, most := all[1], all[1]
	for ; len(all) > 0; all = all[3:] {
		found, did, stolen = found+all[0], did+all[1], stolen+all[2]
		least, most = min(least, all[1]), max(most, all[1])
	}
	if want := (task{}).solve(queens); found != want {
		return fmt.Errorf("%d queens: found %d ways, want %d", queens, found, want)
	}
	fmt.Printf("workqueue: %d queens: %d ways, right; %d tasks, %d to %d by each rank, %d stolen\n",
		queens, found, did, least, most, stolen)
	return nil
}
