//go:build cgo

package mpi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

// TestFenceFlushes: what a Fence costs under MPI is one MPI_Win_flush of its target, where
// operations lie before and behind it, in the crossing into C that a Flush is. So does the order
// of operations on one word, unless both read.
func TestFenceFlushes(t *testing.T) {
	mpitest.Each(t, []mpitest.Job{{Ranks: 3, Hosts: 3}, {Ranks: 3, MemoryNodes: 2}}, func(t *testing.T, c rma.Comm) {
		spec := rma.CounterSpec("fenced", 4)
		first, second := 1%c.Size(), 2%c.Size()
		if c.MemoryNodes() > 0 {
			spec.Hosts = rma.MemoryNodes
			first, second = 0, 1
		}
		w, err := c.Allocate(spec)
		require.NoError(t, err)
		if c.Rank() == 0 {
			for _, k := range []struct {
				name  string
				want  int
				issue func()
			}{
				{"no fence", 1, func() { w.Put(1, first, 0); w.Put(1, first, 1) }},
				{"one fence", 2, func() { w.Put(1, first, 0); w.Fence(first); w.Put(1, first, 1) }},
				{"two fences with nothing between", 2, func() { w.Put(1, first, 0); w.Fence(first); w.Fence(first); w.Put(1, first, 1) }},
				{"a fence before and one behind", 1, func() { w.Fence(first); w.Put(1, first, 0); w.Fence(first) }},
				{"three fences", 4, func() {
					for i := range 4 {
						w.Accumulate(1, first, i, rma.Sum)
						w.Fence(first)
					}
				}},
				{"batches of two", 2, func() {
					w.Put(1, first, 0)
					w.Put(1, first, 1)
					w.Fence(first)
					w.Put(1, first, 2)
					w.Put(1, first, 3)
				}},
				{"a fence towards another target", 1, func() { w.Put(1, first, 0); w.Fence(second); w.Put(1, first, 1) }},
				{"one word twice", 2, func() { w.Put(1, first, 0); w.Accumulate(1, first, 0, rma.Sum) }},
				{"one word read twice", 1, func() { w.Get(first, 0); w.Get(first, 0) }},
				{"reads with a fence", 2, func() { w.Get(first, 0); w.Fence(first); w.Get(first, 1) }},
			} {
				before := mpi.Flushes(w)
				k.issue()
				require.NoError(t, w.Flush(first))
				require.Equal(t, k.want, mpi.Flushes(w)-before, k.name)
			}
			before := mpi.Flushes(w)
			for _, target := range []int{first, second} {
				w.Put(1, target, 0)
				w.Fence(target)
				w.Put(2, target, 1)
			}
			require.NoError(t, w.FlushAll())
			require.Equal(t, 3, mpi.Flushes(w)-before, "a fence towards each of two targets, and one FlushAll")
		}
		require.NoError(t, c.Barrier())
		require.NoError(t, w.Free())
	})
}
