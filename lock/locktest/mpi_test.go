//go:build cgo

package locktest_test

import (
	"os"
	"testing"

	_ "github.com/rmalock/rmalock/baseline"
	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// full asks for every lock in every job.
var full = os.Getenv("RMALOCK_FULL") != ""

// slow reports whether a lock's suite takes minutes: MPICH spins inside its calls,
// and where ranks exceed cores each spin costs the target's time slice. Its
// MPI_Win_lock does so on one node too.
func slow(c rma.Comm, name string) bool {
	if mpi.Library != "MPICH" || c.Size() <= 2 {
		return false
	}
	return name == "mpi-win-lock" || c.Node().Count > 1 && name != "dmcs"
}

// TestEveryLockUnderMPI is the conformance suite for every lock of the module, the
// plain counter in a second window among it, in real jobs.
func TestEveryLockUnderMPI(t *testing.T) {
	mpitest.Each(t, mpitest.All(), func(t *testing.T, c rma.Comm) {
		for _, info := range lock.All() {
			if !full && slow(c, info.Name) {
				continue
			}
			t.Run(info.Name, func(t *testing.T) {
				locktest.Run(t, info.Name, func(body func(rma.Comm) error) error { return body(c) })
			})
		}
	})
}
