package baseline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// TestRDMASpinReleasesByPut: a CompareAndSwap to acquire and a Put to release.
func TestRDMASpinReleasesByPut(t *testing.T) {
	err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
		var n hook.Tally
		l, err := baseline.NewRDMASpin(hook.Count(c, &n), baseline.Config{})
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			err = errors.Join(l.Lock(context.Background(), 0, lock.Exclusive), l.Unlock(0, lock.Exclusive))
			if cas, put := n.Ops(rma.KindCompareAndSwap, hook.Far), n.Ops(rma.KindPut, hook.Far); cas != 1 || put != 1 || n.Remote() != 2 {
				err = errors.Join(err, fmt.Errorf("want a CompareAndSwap and a Put:\n%v", &n))
			}
		}
		return errors.Join(err, l.Free())
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSuite runs the suite that all locks pass. mpi-win-lock is skipped by it here
// and runs in MPI jobs.
func TestSuite(t *testing.T) {
	for _, name := range []string{"fompi-spin", "rdma-spin", "fompi-rw", "fompi-rw-local", "ompi-rw", "mpi-win-lock", "caslock"} {
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
