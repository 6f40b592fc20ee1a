package bench_test

import (
	"runtime"
	"testing"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/topo"
)

// TestStartGrowsWithRanks: a rank costs the same bytes and allocations in a job of many
// ranks as in one of few, as goroutines and in virtual time: no rank looks at what each of
// the others brought.
func TestStartGrowsWithRanks(t *testing.T) {
	if rmatest.RaceEnabled {
		t.Skip("the race detector allocates by itself")
	}
	const few, many, perNode = 64, 1024, 32
	for _, lock := range []string{"dmcs", "rmamcs", "rmarw"} {
		cfg := bench.Config{Lock: lock, Mode: bench.WCSB, Acquires: 2}
		for name, run := range map[string]func(ranks int) error{
			"inproc": func(ranks int) error {
				return inproc.RunNodes(ranks/perNode, perNode, func(c rma.Comm) error {
					_, err := bench.Run(c, cfg)
					return err
				})
			},
			"sim": func(ranks int) error {
				m, err := bench.LoadMachine("aries")
				if err != nil {
					return err
				}
				tree, err := topo.Build(places(ranks, perNode))
				if err != nil {
					return err
				}
				_, err = bench.Virtual{Topology: tree, Machine: m}.Run(cfg)
				return err
			},
		} {
			fewBytes, fewAllocs := perRank(t, few, run)
			bytes, allocs := perRank(t, many, run)
			t.Logf("%s on %s: %d bytes in %d allocations a rank of %d, %d in %d of %d", lock, name, fewBytes, fewAllocs, few, bytes, allocs, many)
			if bytes > fewBytes*5/4 || allocs > fewAllocs*5/4 {
				t.Errorf("%s on %s: %d bytes in %d allocations a rank of %d, but %d in %d of %d", lock, name, bytes, allocs, many, fewBytes, fewAllocs, few)
			}
		}
	}
}

// perRank is what a run allocates.
func perRank(t *testing.T, ranks int, run func(ranks int) error) (bytes, allocs uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := run(ranks); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / uint64(ranks), (after.Mallocs - before.Mallocs) / uint64(ranks)
}

func places(ranks, perNode int) []topo.Place {
	out := make([]topo.Place, ranks)
	for r := range out {
		out[r].Node = r / perNode
	}
	return out
}
