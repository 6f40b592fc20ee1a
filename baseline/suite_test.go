package baseline_test

import (
	"testing"

	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/lock/locktest"
)

// TestSuite runs the suite that all locks pass. mpi-win-lock is skipped by it here
// and runs in MPI jobs.
func TestSuite(t *testing.T) {
	for _, name := range []string{"fompi-spin", "fompi-rw", "fompi-rw-local", "ompi-rw", "mpi-win-lock", "caslock", "retry-on-fail"} {
		t.Run(name, func(t *testing.T) { locktest.RunInproc(t, name) })
	}
}
