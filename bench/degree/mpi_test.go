//go:build cgo

package degree_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/bench/degree"
	"github.com/rmalock/rmalock/bench/graph"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// full asks for the whole graph in every job. Jobs on pretended hosts take half a
// minute for each lock then.
var full = os.Getenv("RMALOCK_FULL") != ""

// first is the beginning of a source.
type first struct {
	graph.Source
	edges int64
}

func (f first) Estimate() (edges, vertices int64) { return f.edges, min(2*f.edges, 4096) }

func (f first) Edges(rank, size int, visit func(u, v int64) error) error {
	n := int64(0) // of the whole, so that all ranks cut at the same edge
	return f.Source.Edges(0, 1, func(u, v int64) error {
		n++
		if n > f.edges || n%int64(size) != int64(rank) {
			return nil
		}
		return visit(u, v)
	})
}

// TestGraphUnderMPI counts the degrees of a real social graph in real jobs under
// every lock and under atomics alone: on one host with 1, 2, 4 and 8 ranks, on two
// with 2, 4 and 8.
func TestGraphUnderMPI(t *testing.T) {
	const path = "../../../shared/data/facebook_combined.txt"
	var source graph.Source
	if file, err := graph.OpenFile(path); err == nil {
		source = file
	} else {
		t.Logf("no %s (%v): a graph of the same size is generated", path, err)
		source = rmat(t, 12)
	}
	edges, _ := source.Estimate()
	jobs := append(mpitest.OneHost(1, 2, 4, 8),
		mpitest.Job{Ranks: 2, Hosts: 2}, mpitest.Job{Ranks: 4, Hosts: 2}, mpitest.Job{Ranks: 8, Hosts: 2})
	mpitest.Each(t, jobs, func(t *testing.T, c rma.Comm) {
		names := []string{degree.Atomic}
		for _, info := range lock.All() {
			// Not locks of which some ranks serve, nor one whose readers' lease is too short.
			if !info.Serves && info.Name != "drtm" {
				names = append(names, info.Name)
			}
		}
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				part := source
				if n := slice(c, name); n < edges && (!full || n <= spinning) {
					part = first{source, n}
				}
				r, err := degree.Run(c, degree.Config{Source: part, Lock: name})
				require.NoError(t, err)
				require.True(t, r.Verified, "%+v", r)
				if c.Rank() == 0 {
					t.Logf("%s: %d edges, %.0f inserts/s, %.2f s, verified", name, r.Edges, r.PerSecond, r.Seconds)
				}
			})
		}
	})
}

// spinning is the edges of a lock that takes milliseconds for each, also in full.
const spinning = 500

// slice is how many edges a job counts when not all.
func slice(c rma.Comm, name string) int64 {
	const all = 1 << 40
	oversubscribed := c.Size() > 2
	switch {
	case name == "mpi-win-lock" && mpi.Library == "MPICH" && c.Node().Count > 1 && oversubscribed:
		return spinning / 25 // it spins in MPI_Win_lock until the target has had the core and answered
	case name == "mpi-win-lock" && mpi.Library == "MPICH" && oversubscribed:
		return spinning / 5
	case name == "mpi-win-lock" && mpi.Library == "MPICH":
		return spinning
	case c.Node().Count > 1 && oversubscribed && mpi.Library == "MPICH":
		return 1000 / int64(c.Size())
	case c.Node().Count > 1:
		return 4000 / int64(c.Size())
	}
	return all
}
