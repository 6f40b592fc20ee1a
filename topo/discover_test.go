package topo

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// gathered runs f on ranks and returns what each got.
func gathered(t *testing.T, nodes, perNode int, f func(rma.Comm) (*Topology, error)) []*Topology {
	t.Helper()
	got := make([]*Topology, nodes*perNode)
	require.NoError(t, inproc.RunNodes(nodes, perNode, func(c rma.Comm) error {
		topo, err := f(c)
		got[c.Rank()] = topo
		return err
	}))
	return got
}

func TestDiscoverOneNode(t *testing.T) {
	var got [8]*Topology
	require.NoError(t, inproc.Run(len(got), func(c rma.Comm) error {
		topo, err := Discover(c)
		got[c.Rank()] = topo
		return err
	}))
	for _, topo := range got {
		require.Same(t, got[0], topo, "ranks of one process share it")
	}
	checkInvariants(t, got[0])
	require.NoError(t, got[0].Fits(8))
	levels := got[0].Levels()
	require.Equal(t, []Level{{"machine", 1}, {"node", 1}}, levels, "goroutines have one affinity")
	require.NotEmpty(t, got[0].Notes())
}

func TestDiscoverNodesArePerComm(t *testing.T) {
	got := gathered(t, 3, 4, func(c rma.Comm) (*Topology, error) {
		topo, err := Discover(c)
		if err == nil && topo.Element(c.Rank(), 1) != c.Node().Index {
			err = fmt.Errorf("node %d, want %d", topo.Element(c.Rank(), 1), c.Node().Index)
		}
		return topo, err
	})
	checkInvariants(t, got[0])
	require.Equal(t, []Level{{"machine", 1}, {"node", 3}}, got[0].Levels())
	require.Equal(t, []int{4, 5, 6, 7}, got[11].Ranks(1, 1))

	// Half the ranks, dealt round robin to the nodes.
	got = gathered(t, 2, 4, func(c rma.Comm) (*Topology, error) {
		half, err := c.Split(c.Rank()%4/2, c.Rank()%4*2+c.Rank()/4)
		if err != nil {
			return nil, err
		}
		return Discover(half)
	})
	for _, topo := range got {
		require.Equal(t, 4, topo.Size())
		require.Equal(t, []int{0, 1, 0, 1}, elements(t, topo, "node"))
	}
}

func TestDiscoverAgreesOnWhatEachRankSays(t *testing.T) {
	// Rank r is bound to processor r%4, but nobody knows NUMA nodes: each says which
	// of two hosts it sees, and its trouble.
	got := gathered(t, 2, 4, func(c rma.Comm) (*Topology, error) {
		return discover(c, Options{Root: t.TempDir(), Host: fmt.Sprintf("n%d", c.Node().Index), CPUs: MakeSet(c.Rank() % 4)})
	})
	first, err := json.Marshal(got[0])
	require.NoError(t, err)
	for _, topo := range got {
		b, err := json.Marshal(topo)
		require.NoError(t, err)
		require.JSONEq(t, string(first), string(b))
	}
	require.Equal(t, "n1", got[0].Label(1, 1))
	require.Equal(t, Set("3"), got[0].CPUs(7))
}

func TestDiscoverSurvivesARankThatCannotTell(t *testing.T) {
	got := gathered(t, 1, 3, func(c rma.Comm) (*Topology, error) {
		o := Options{Host: "h", CPUs: "0", Root: t.TempDir()}
		if c.Rank() == 1 {
			o.Root = "/nonexistent/machine"
		}
		return discover(c, o)
	})
	require.Equal(t, []Level{{"machine", 1}, {"node", 1}}, got[0].Levels())
	require.Contains(t, fmt.Sprint(got[2].Notes()), "rank 1: topo: Options.Root: stat /nonexistent/machine")
}

func TestDiscoverReportsTheTransport(t *testing.T) {
	broken := errors.New("broken")
	err := inproc.Run(3, func(c rma.Comm) error {
		if c.Rank() == 1 {
			return broken
		}
		_, err := Discover(c)
		require.ErrorIs(t, err, rma.ErrPeer)
		require.ErrorContains(t, err, "topo: exchange of places: ")
		return err
	})
	require.ErrorIs(t, err, broken)
}

func TestGarbledPlaces(t *testing.T) {
	ok := (&Place{Host: "a"}).encode()
	_, err := shared(ok, []byte{9, 9})
	require.ErrorIs(t, err, ErrTopology)
	require.ErrorContains(t, err, "topo: rank 1: its place arrived garbled")
	_, err = shared(ok, (&Place{CPUs: "x"}).encode())
	require.ErrorIs(t, err, ErrTopology)
}

func TestShareIsForEqualPlacesAlone(t *testing.T) {
	a := [][]byte{(&Place{Host: "a"}).encode(), (&Place{Host: "a"}).encode()}
	b := [][]byte{(&Place{Host: "a"}).encode(), (&Place{Host: "a", Node: 1}).encode()}
	build := func(all [][]byte) *Topology {
		topo, err := shared(all...)
		require.NoError(t, err)
		return topo
	}
	var wg sync.WaitGroup
	first := build(a)
	for range 4 {
		wg.Go(func() { require.Same(t, first, build(a)) })
	}
	wg.Wait()
	other := build(b)
	require.Equal(t, 2, other.Elements(1))
	require.Equal(t, 1, first.Elements(1))
	require.Equal(t, first, build(a))
}

func TestLocalIsThisProcess(t *testing.T) {
	p, err := Local(Options{})
	require.NoError(t, err)
	_, err = decodePlace(p.encode())
	require.NoError(t, err)
	topo := build(t, p)
	require.Equal(t, 1, topo.Elements(1))
	require.Equal(t, p.CPUs, topo.CPUs(0))
}

func TestLocalErrors(t *testing.T) {
	_, err := Local(Options{CPUs: "0-x"})
	require.ErrorIs(t, err, ErrTopology)
	require.ErrorContains(t, err, `topo: Options.CPUs: list "0-x"`)
	_, err = Local(Options{Root: "doc.go"})
	require.ErrorIs(t, err, ErrTopology)
	require.ErrorContains(t, err, "topo: Options.Root: doc.go is not a directory")
	_, err = Local(Options{Root: "/nonexistent/machine"})
	require.ErrorIs(t, err, ErrTopology)
}

// shared is share of encoded places.
func shared(all ...[]byte) (*Topology, error) {
	return share(all, func() (*Topology, error) { return buildEncoded(all, "") })
}
