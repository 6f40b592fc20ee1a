//go:build cgo

package alock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestTableOverHosts: the lock table of section 6 in real jobs, two ranks on each of four hosts and a
// lock at each rank. Nineteen in twenty acquires are of locks of the rank's own host. Each
// lock guards a counter at its home, and the sum of all is exact. The times, which depend on the
// machine, are logged.
func TestTableOverHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	jobs := []mpitest.Job{{Ranks: 4, Hosts: 2}}
	if locktest.Deep() {
		jobs = append(jobs, mpitest.Job{Ranks: 8, Hosts: 4})
	}
	mpitest.Each(t, jobs, func(t *testing.T, c rma.Comm) {
		for _, name := range []string{"alock", "dmcs"} {
			if err := table(t, c, name); err != nil {
				t.Error(err)
			}
		}
	})
}

// table counts under the locks of a table, 95 % of them local.
func table(t *testing.T, c rma.Comm, name string) error {
	const visits = 2000
	info, err := lock.Lookup(name)
	if err != nil {
		return err
	}
	locks, err := info.Open(c, c.Size(), 0)
	if err != nil {
		return err
	}
	count, err := c.Allocate(rma.DataSpec("count", 1))
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, uint64(c.Rank())))
	mates := c.Node().Ranks
	var local, remote time.Duration
	remotes := 0
	if err := c.Barrier(); err != nil {
		return err
	}
	began := time.Now()
	for range visits {
		id, start := mates[rng.IntN(len(mates))], time.Now()
		if far := rng.IntN(20) == 0; far {
			for id = rng.IntN(c.Size()); c.Node().Has(id); {
				id = rng.IntN(c.Size())
			}
		}
		if err := locks.Lock(background, id, lock.Exclusive); err != nil {
			return err
		}
		n, err := count.GetFlush(id, 0)
		if err := errors.Join(err, count.PutFlush(n+1, id, 0), locks.Unlock(id, lock.Exclusive)); err != nil {
			return err
		}
		if c.Node().Has(id) {
			local += time.Since(start)
		} else {
			remote, remotes = remote+time.Since(start), remotes+1
		}
	}
	took := time.Since(began)
	if err := c.Barrier(); err != nil {
		return err
	}
	sums, err := c.Allgather([]int64{count.Peek(0)})
	if err != nil {
		return err
	}
	total := int64(0)
	for _, n := range sums {
		total += n
	}
	if want := int64(visits * c.Size()); total != want {
		return fmt.Errorf("%s: the counters add up to %d, want %d", name, total, want)
	}
	if c.Rank() == 0 {
		t.Logf("%s: rank 0 made %d visits in %v, %v each; local ones took %v, remote ones %v", name, visits, took.Round(time.Millisecond),
			took/visits, local/time.Duration(visits-remotes), remote/time.Duration(max(remotes, 1)))
	}
	return errors.Join(c.Barrier(), count.Free(), locks.Free())
}
