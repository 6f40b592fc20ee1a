package graph

import (
	"fmt"
	"math/bits"
)

// Graph500's probabilities of the four quadrants of the adjacency matrix (D. A.
// Bader et al.: Graph 500 Benchmark Specification; D. Chakrabarti, Y. Zhan,
// C. Faloutsos: R-MAT. SDM 2004), of 2^32.
const (
	quadrantA = 57 << 32 / 100
	quadrantB = 19 << 32 / 100
	quadrantC = 19 << 32 / 100 // and D has the rest, 0.05
)

const (
	edgeFactor = 16 // Graph500's edges per vertex
	maxScale   = 48
)

// An RMAT is a Graph500 graph: 2^scale vertices, of which some have no edge, and 16
// times as many undirected edges, self-loops and repetitions included. An edge
// descends through scale levels of quadrants of the adjacency matrix, taken with
// probabilities 0.57, 0.19, 0.19 and 0.05; the names of the vertices are then
// scrambled, so that a vertex with many edges can have any name.
//
// Edge i depends on scale, seed and i alone: shares need no communication.
type RMAT struct {
	scale int
	seed  uint64
	add   [2]uint64 // of the scrambling
	mul   [2]uint64
}

var _ Source = (*RMAT)(nil)

// NewRMAT makes the graph of a scale, from 1 to 48, and a seed. It is ErrConfig for
// another scale.
func NewRMAT(scale int, seed uint64) (*RMAT, error) {
	if scale < 1 || scale > maxScale {
		return nil, fmt.Errorf("graph: scale of an R-MAT graph is %d, want 1 to %d (it has 2^scale vertices): %w", scale, maxScale, ErrConfig)
	}
	g := &RMAT{scale: scale, seed: mix(seed)}
	for i := range g.mul {
		g.add[i] = mix(g.seed + uint64(2*i))
		g.mul[i] = mix(g.seed+uint64(2*i+1)) | 1
	}
	return g, nil
}

// String is such as "R-MAT, scale 20, edge factor 16".
func (g *RMAT) String() string {
	return fmt.Sprintf("R-MAT, scale %d, edge factor %d", g.scale, edgeFactor)
}

// Estimate is the number of edges, exactly, and of vertices, of which those without
// an edge do not occur.
func (g *RMAT) Estimate() (edges, vertices int64) {
	return edgeFactor << g.scale, 1 << g.scale
}

// Edges visits a range of the edges, in order. Its errors are f's.
func (g *RMAT) Edges(rank, size int, f func(u, v int64) error) error {
	checkRank(rank, size)
	all, _ := g.Estimate()
	lo, hi := share(all, rank, size)
	for i := lo; i < hi; i++ {
		if err := f(g.edge(uint64(i))); err != nil {
			return err
		}
	}
	return nil
}

// edge makes edge i. Two levels take the halves of one random number.
func (g *RMAT) edge(i uint64) (int64, int64) {
	var u, v, random uint64
	stream := mix(g.seed ^ mix(i))
	for level := range g.scale {
		if level%2 == 0 {
			random = mix(stream + uint64(level))
		}
		x := random & 0xffffffff
		random >>= 32
		var down, right uint64
		switch {
		case x < quadrantA:
		case x < quadrantA+quadrantB:
			right = 1
		case x < quadrantA+quadrantB+quadrantC:
			down = 1
		default:
			down, right = 1, 1
		}
		if u == v && down > right { // the graph is undirected: stay above the diagonal
			down, right = right, down
		}
		u, v = u<<1|down, v<<1|right
	}
	return g.scramble(u), g.scramble(v)
}

// scramble is a bijection on the names of the vertices: each step is one on scale
// bits. Reversal brings the high bits low, where the product spreads them.
func (g *RMAT) scramble(u uint64) int64 {
	for i := range g.mul {
		u = (u + g.add[i]) * g.mul[i]
		u = bits.Reverse64(u) >> (64 - g.scale)
	}
	return int64(u)
}

// mix is splitmix64, a bijection that makes neighbours strangers.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
