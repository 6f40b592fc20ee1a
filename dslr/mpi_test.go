//go:build cgo

package dslr_test

import (
	"testing"

	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestOneFetchAndAddUnderMPI: as TestOneFetchAndAdd, in real jobs.
func TestOneFetchAndAddUnderMPI(t *testing.T) {
	mpitest.Each(t, []mpitest.Job{{Ranks: 2}, {Ranks: 2, Hosts: 2}, {Ranks: 2, MemoryNodes: 1}}, func(t *testing.T, c rma.Comm) {
		err := locktest.OneFetchAndAdd(c, func(c rma.Comm, locks int) (lock.Table, error) {
			return dslr.New(c, dslr.Config{Locks: locks, Lease: 60e9})
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
