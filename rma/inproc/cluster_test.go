package inproc_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/stretchr/testify/require"
)

// TestClientsComeAndGo: a later client attaches to the windows that are there, in a slot of
// another generation.
func TestClientsComeAndGo(t *testing.T) {
	k, err := inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: 1}.Open()
	require.NoError(t, err)
	table := rma.CounterSpec("table", 3)
	table.Hosts = rma.MemoryNodes

	a, err := k.Join(1)
	require.NoError(t, err)
	require.Equal(t, []int{2, 0, 4}, []int{a.Rank(), rma.Generation(hook.Check(a)), a.Size()})
	w, err := a.Allocate(table)
	require.NoError(t, err)
	require.NoError(t, w.AccumulateFlush(7, 0, 1, rma.Sum))
	mail, err := a.Allocate(rma.DataSpec("mail", 1))
	require.NoError(t, err)

	b, err := k.Join(1)
	require.NoError(t, err)
	require.Equal(t, 3, b.Rank())
	_, err = k.Join(1)
	require.ErrorIs(t, err, inproc.ErrFull)
	theirs, err := b.Allocate(rma.DataSpec("mail", 1))
	require.NoError(t, err)
	require.NoError(t, theirs.PutFlush(5, a.Rank(), 0))
	v, err := mail.Await(a.Rank(), 0, rma.Equal(5))
	require.NoError(t, err)
	require.EqualValues(t, 5, v)
	require.NoError(t, w.Free()) // waits for no other client

	a.Leave()
	next, err := k.Join(1)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1}, []int{next.Rank(), next.Generation()})
	a.Leave() // of an earlier generation: the slot stays taken
	_, err = k.Join(1)
	require.ErrorIs(t, err, inproc.ErrFull)
	again, err := next.Allocate(table)
	require.NoError(t, err)
	v, err = again.GetFlush(0, 1)
	require.NoError(t, err)
	require.EqualValues(t, 7, v, "what the client before wrote")
}

func TestClusterRefuses(t *testing.T) {
	_, err := inproc.Job{Nodes: 1}.Open()
	require.ErrorIs(t, err, rma.ErrRank)
	k, err := inproc.Job{Nodes: 1, PerNode: 1}.Open()
	require.NoError(t, err)
	_, err = k.Join(1)
	require.ErrorIs(t, err, rma.ErrRank)
	c, err := k.Join(0)
	require.NoError(t, err)
	_, err = c.Allgather(nil)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = c.Split(0, 0)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorIs(t, c.Barrier(), errors.ErrUnsupported)
	require.ErrorIs(t, rma.Agree(c, nil), errors.ErrUnsupported)
	_, err = c.Allocate(rma.CounterSpec("w", 2))
	require.NoError(t, err)
	_, err = c.Allocate(rma.CounterSpec("w", 3))
	require.ErrorIs(t, err, rma.ErrMismatch)
	nodes := rma.CounterSpec("nodes", 1)
	nodes.Hosts = rma.MemoryNodes
	_, err = c.Allocate(nodes)
	require.ErrorIs(t, err, rma.ErrSpec)
}

// TestManyClients come and go at once, and lose no addition.
func TestManyClients(t *testing.T) {
	k, err := inproc.Job{Nodes: 4, PerNode: 4, MemoryNodes: 2}.Open()
	require.NoError(t, err)
	spec := rma.CounterSpec("sum", 1)
	spec.Hosts = rma.MemoryNodes
	const clients = 64
	var all sync.WaitGroup
	for i := range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			c, err := k.Join(i % 4)
			for errors.Is(err, inproc.ErrFull) {
				c, err = k.Join(i % 4)
			}
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Leave()
			w, err := c.Allocate(spec)
			for m := 0; m < 2 && err == nil; m++ {
				err = w.AccumulateFlush(1, m, 0, rma.Sum)
			}
			if err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	c, err := k.Join(0)
	require.NoError(t, err)
	w, err := c.Allocate(spec)
	require.NoError(t, err)
	for m := range 2 {
		v, err := w.GetFlush(m, 0)
		require.NoError(t, err)
		require.EqualValues(t, clients, v)
	}
}
