package graph

import (
	"errors"
	"fmt"
	"math/bits"
)

var (
	// ErrNoEdges is wrapped when a source has no edges.
	ErrNoEdges = errors.New("no edges")
	// ErrLine is wrapped by the errors about a line that is not an edge; they are
	// *LineError and say where it is.
	ErrLine = errors.New("malformed line")
	// ErrConfig is wrapped by errors about the parameters of a source.
	ErrConfig = errors.New("bad configuration")
)

// A Source is a list of edges.
type Source interface {
	// Edges calls f for every edge in the share of one of size ranks, and ends with
	// f's first error, which it returns as it is. Edges(0, 1, f) visits the whole.
	// The shares of ranks 0 to size-1 have no edge in common and together make the
	// whole, always the same one. A rank's share may be empty; that the whole is, is
	// ErrNoEdges of Edges(0, 1, f).
	Edges(rank, size int, f func(u, v int64) error) error
	// Estimate guesses the number of edges, and of vertices from above, at little
	// cost. See the sources for how good the guess is.
	Estimate() (edges, vertices int64)
	// String names the source in reports.
	String() string
}

// share is the part [lo, hi) of n things that belongs to a rank: equal parts but
// for one.
func share(n int64, rank, size int) (lo, hi int64) {
	return cut(n, rank, size), cut(n, rank+1, size)
}

// cut is n*i/size without overflow.
func cut(n int64, i, size int) int64 {
	high, low := bits.Mul64(uint64(n), uint64(i))
	q, _ := bits.Div64(high, low, uint64(size))
	return int64(q)
}

// checkRank panics on a share that does not exist.
func checkRank(rank, size int) {
	if rank < 0 || rank >= size {
		panic(fmt.Sprintf("graph: share of rank %d of %d", rank, size))
	}
}
