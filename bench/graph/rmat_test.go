package graph_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/bench/graph"
)

func TestRMATShares(t *testing.T) {
	for _, scale := range []int{1, 2, 5, 10} {
		g, err := graph.NewRMAT(scale, 42)
		if err != nil {
			t.Fatal(err)
		}
		all, err := collect(g, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		edges, vertices := g.Estimate()
		if int64(len(all)) != edges || edges != 16*vertices || vertices != 1<<scale {
			t.Errorf("scale %d: %d edges, estimate %d, %d", scale, len(all), edges, vertices)
		}
		for _, e := range all {
			if min(e.u, e.v) < 0 || max(e.u, e.v) >= vertices {
				t.Fatalf("scale %d: edge %v", scale, e)
			}
		}
		for size := 1; size <= 9; size++ {
			var got []edge
			for rank := range size {
				part, err := collect(g, rank, size)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, part...)
			}
			if !slices.Equal(got, all) { // in order, too
				t.Fatalf("scale %d: the shares of %d ranks are not the whole", scale, size)
			}
		}
	}
}

// The degrees are as uneven as the quadrants make them, and seeds differ.
func TestRMATDegrees(t *testing.T) {
	var first []edge
	for seed := range uint64(3) {
		g, err := graph.NewRMAT(12, seed)
		if err != nil {
			t.Fatal(err)
		}
		all, err := collect(g, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		degree := make([]int, 1<<12)
		for _, e := range all {
			degree[e.u]++
			degree[e.v]++
		}
		slices.Sort(degree)
		// Expected for vertex 0 before the clipping: 2 * 65536 * (0.57+0.19)^12.
		if most := degree[len(degree)-1]; most < 2000 || most > 10000 {
			t.Errorf("seed %d: the largest degree is %d", seed, most)
		}
		if degree[len(degree)/4] > 10 {
			t.Errorf("seed %d: a quarter of the vertices should have few edges, degree %d", seed, degree[len(degree)/4])
		}
		if slices.Equal(all, first) {
			t.Errorf("seed %d gives the graph of the seed before", seed)
		}
		first = all
	}
}

func TestRMATConfig(t *testing.T) {
	for _, scale := range []int{-1, 0, 49} {
		if _, err := graph.NewRMAT(scale, 0); !errors.Is(err, graph.ErrConfig) || !strings.Contains(err.Error(), "want 1 to 48") {
			t.Errorf("scale %d: %v", scale, err)
		}
	}
}

func BenchmarkRMAT(b *testing.B) {
	g, err := graph.NewRMAT(20, 1)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := g.Edges(0, 256, func(_, _ int64) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(1<<16), "ns/edge")
}
