//go:build cgo

package locktest_test

import (
	"os"
	"testing"

	_ "github.com/rmalock/rmalock/alock"
	_ "github.com/rmalock/rmalock/baseline"
	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
	_ "github.com/rmalock/rmalock/rmamcs"
	_ "github.com/rmalock/rmalock/rmarw"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// full asks for every lock in every job.
var full = os.Getenv("RMALOCK_FULL") != ""

// slow reports whether a lock's suite takes minutes: MPICH spins inside MPI_Win_lock,
// and inside the calls that open and close a window, of which the suite makes
// hundreds; where ranks exceed cores each spin costs the target's time slice. With 8 ranks
// it is left to the queue locks: on one node no MPI is on the way of any. On several
// nodes the others, and with MPICH all but rmarw, come in make test-hosts and in the
// hashtable of bench/degree, and with RMALOCK_FULL here.
func slow(c rma.Comm, name string) bool {
	if name == "drtm" { // readers lose their leases where ranks are not running for 400 us
		return true
	}
	if c.Size() <= 2 {
		return false
	}
	switch queued := name == "dmcs" || name == "alock" || name == "rmarw"; {
	case name == "caslock" || name == "retry-on-fail" || name == "dslr-plus": // no operation that others have not
		return true
	case c.Node().Count > 1:
		return !queued || name == "dmcs" && mpi.Library == "MPICH"
	case name == "fompi-rw-local" || name == "ompi-rw": // fompi-rw with a word in another place, and with another undoing
		return c.Size() > 3
	case mpi.Library == "MPICH":
		return name == "mpi-win-lock" || c.Size() > 4 && !queued && name != "rmamcs"
	}
	return false
}

// TestEveryLockUnderMPI is the conformance suite for every lock of the module, the
// plain counter in a second window among it, in real jobs.
func TestEveryLockUnderMPI(t *testing.T) {
	mpitest.Each(t, mpitest.All(), func(t *testing.T, c rma.Comm) {
		for _, info := range lock.All() {
			if (!full || info.Name == "drtm") && slow(c, info.Name) {
				continue
			}
			t.Run(info.Name, func(t *testing.T) {
				locktest.Run(t, info.Name, func(body func(rma.Comm) error) error { return body(c) })
			})
		}
	})
}
