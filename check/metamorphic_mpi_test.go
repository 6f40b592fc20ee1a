//go:build cgo

package check_test

import (
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestScriptsUnderMPI: the scripts of TestScriptsAnywhere in real jobs.
func TestScriptsUnderMPI(t *testing.T) {
	jobs := append(mpitest.OneHost(1, 4), mpitest.Job{Ranks: 2, Hosts: 2}, mpitest.Job{Ranks: 4, Hosts: 2})
	mpitest.Each(t, jobs, func(t *testing.T, c rma.Comm) {
		for _, info := range lock.All() {
			if info.Serves || info.Name == "drtm" {
				continue // ranks that run no script; leases that run out on a busy machine
			}
			if mpi.Library == "MPICH" && c.Size() > 2 && (info.Name == "mpi-win-lock" || c.Node().Count > 1 && info.Name != "dmcs") {
				continue // takes minutes: it spins inside its calls
			}
			for seed := range uint64(4) {
				s := script(seed)
				s.Locks = min(s.Locks, c.Size()) // one per rank, as MPI has
				if err := judge(c, s, info); err != nil {
					t.Fatalf("%s, %+v: %v", info.Name, s, err)
				}
			}
		}
	})
}
