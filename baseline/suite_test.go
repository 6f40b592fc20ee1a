package baseline_test

import (
	"fmt"
	"testing"

	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma/inproc"
)

// TestSuite runs the suite that all locks pass. mpi-win-lock is skipped by it here
// and runs in MPI jobs.
func TestSuite(t *testing.T) {
	for _, name := range []string{"fompi-spin", "fompi-rw", "fompi-rw-local", "ompi-rw", "mpi-win-lock", "caslock"} {
		t.Run(name, func(t *testing.T) { locktest.RunInproc(t, name) })
	}
}

// TestSuiteOfTickets is the suite for DSLR+, with looks at the backend's pace.
func TestSuiteOfTickets(t *testing.T) {
	jobs := []inproc.Job{{Nodes: 1, PerNode: 3}, {Nodes: 2, PerNode: 2, MemoryNodes: 2}, {Nodes: 1, PerNode: 8, MemoryNodes: 1}}
	if locktest.Quick() {
		jobs = jobs[1:2]
	}
	for _, job := range jobs {
		t.Run(fmt.Sprintf("%dx%d+%d", job.Nodes, job.PerNode, job.MemoryNodes), func(t *testing.T) {
			locktest.RunOf(t, with(t, "dslr-plus", params{"BASE": "0"}), job.Run)
		})
	}
}
