package discover

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/topo"
)

// gathered runs f on ranks and returns what each got.
func gathered(t *testing.T, nodes, perNode int, f func(rma.Comm) (*topo.Topology, error)) []*topo.Topology {
	t.Helper()
	got := make([]*topo.Topology, nodes*perNode)
	require.NoError(t, inproc.RunNodes(nodes, perNode, func(c rma.Comm) error {
		tree, err := f(c)
		got[c.Rank()] = tree
		return err
	}))
	return got
}

func TestDiscoverOneNode(t *testing.T) {
	var got [8]*topo.Topology
	require.NoError(t, inproc.Run(len(got), func(c rma.Comm) error {
		tree, err := Topology(c)
		got[c.Rank()] = tree
		return err
	}))
	for _, tree := range got {
		require.Same(t, got[0], tree, "ranks of one process share it")
	}
	require.NoError(t, got[0].Fits(8))
	levels := got[0].Levels()
	require.Equal(t, []topo.Level{{Name: "machine", Elements: 1}, {Name: "node", Elements: 1}}, levels, "goroutines have one affinity")
	require.NotEmpty(t, got[0].Notes())
}

func TestDiscoverNodesArePerComm(t *testing.T) {
	got := gathered(t, 3, 4, func(c rma.Comm) (*topo.Topology, error) {
		tree, err := Topology(c)
		if err == nil && tree.Element(c.Rank(), 1) != c.Node().Index {
			err = fmt.Errorf("node %d, want %d", tree.Element(c.Rank(), 1), c.Node().Index)
		}
		return tree, err
	})
	require.Equal(t, []topo.Level{{Name: "machine", Elements: 1}, {Name: "node", Elements: 3}}, got[0].Levels())
	require.Equal(t, []int{4, 5, 6, 7}, got[11].Ranks(1, 1))

	// Half the ranks, dealt round robin to the nodes.
	got = gathered(t, 2, 4, func(c rma.Comm) (*topo.Topology, error) {
		half, err := c.Split(c.Rank()%4/2, c.Rank()%4*2+c.Rank()/4)
		if err != nil {
			return nil, err
		}
		return Topology(half)
	})
	for _, tree := range got {
		require.Equal(t, 4, tree.Size())
		require.Equal(t, []int{0, 2}, tree.Ranks(1, 0))
	}
}

func TestDiscoverAgreesOnWhatEachRankSays(t *testing.T) {
	// Rank r is bound to processor r%4, but nobody knows NUMA nodes: each says which
	// of two hosts it sees, and its trouble.
	got := gathered(t, 2, 4, func(c rma.Comm) (*topo.Topology, error) {
		return discover(c, Options{Root: t.TempDir(), Host: fmt.Sprintf("n%d", c.Node().Index), CPUs: topo.MakeSet(c.Rank() % 4)})
	})
	first, err := json.Marshal(got[0])
	require.NoError(t, err)
	for _, tree := range got {
		b, err := json.Marshal(tree)
		require.NoError(t, err)
		require.JSONEq(t, string(first), string(b))
	}
	require.Equal(t, "n1", got[0].Label(1, 1))
	require.Equal(t, topo.Set("3"), got[0].CPUs(7))
}

func TestDiscoverSurvivesARankThatCannotTell(t *testing.T) {
	got := gathered(t, 1, 3, func(c rma.Comm) (*topo.Topology, error) {
		o := Options{Host: "h", CPUs: "0", Root: t.TempDir()}
		if c.Rank() == 1 {
			o.Root = "/nonexistent/machine"
		}
		return discover(c, o)
	})
	require.Equal(t, []topo.Level{{Name: "machine", Elements: 1}, {Name: "node", Elements: 1}}, got[0].Levels())
	require.Contains(t, fmt.Sprint(got[2].Notes()), "rank 1: discover: Options.Root: stat /nonexistent/machine")
}

func TestDiscoverReportsTheTransport(t *testing.T) {
	broken := errors.New("broken")
	err := inproc.Run(3, func(c rma.Comm) error {
		if c.Rank() == 1 {
			return broken
		}
		_, err := Topology(c)
		require.ErrorIs(t, err, rma.ErrPeer)
		require.ErrorContains(t, err, "discover: exchange of places: ")
		return err
	})
	require.ErrorIs(t, err, broken)
}

func TestGarbledPlaces(t *testing.T) {
	ok := (&report{Place: topo.Place{Host: "a"}}).encode()
	_, err := shared(ok, []byte{9, 9})
	require.ErrorIs(t, err, topo.ErrTopology)
	require.ErrorContains(t, err, "discover: rank 1: its place arrived garbled")
	_, err = shared(ok, (&report{Place: topo.Place{CPUs: "x"}}).encode())
	require.ErrorIs(t, err, topo.ErrTopology)
}

func TestShareIsForEqualPlacesAlone(t *testing.T) {
	a := [][]byte{(&report{Place: topo.Place{Host: "a"}}).encode(), (&report{Place: topo.Place{Host: "a"}}).encode()}
	b := [][]byte{(&report{Place: topo.Place{Host: "a"}}).encode(), (&report{Place: topo.Place{Host: "a", Node: 1}}).encode()}
	build := func(all [][]byte) *topo.Topology {
		tree, err := shared(all...)
		require.NoError(t, err)
		return tree
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
	p, err := local(Options{})
	require.NoError(t, err)
	_, err = decodeReport(p.encode())
	require.NoError(t, err)
	tree, err := build([]report{p})
	require.NoError(t, err)
	require.Equal(t, 1, tree.Elements(1))
	require.Equal(t, p.CPUs, tree.CPUs(0))
}

func TestLocalErrors(t *testing.T) {
	_, err := Local(Options{CPUs: "0-x"})
	require.ErrorIs(t, err, topo.ErrTopology)
	require.ErrorContains(t, err, `discover: Options.CPUs: topo: list "0-x"`)
	_, err = Local(Options{Root: "doc.go"})
	require.ErrorIs(t, err, topo.ErrTopology)
	require.ErrorContains(t, err, "discover: Options.Root: doc.go is not a directory")
	_, err = Local(Options{Root: "/nonexistent/machine"})
	require.ErrorIs(t, err, topo.ErrTopology)
}

// shared is share of encoded places.
func shared(all ...[]byte) (*topo.Topology, error) {
	return share(all, func() (*topo.Topology, error) { return buildEncoded(all, "") })
}

// TestWithoutHardware has neither levels inside the node nor silence about them.
func TestWithoutHardware(t *testing.T) {
	require.Nil(t, reader, "this test does not import topo/hardware")
	p, err := local(Options{})
	require.NoError(t, err)
	require.Empty(t, p.Inside)
	require.Contains(t, p.Notes, "levels inside the node are not looked for: the program does not import topo/hardware")
}

// TestSimulatedRanksAreOnNoMachine has the same topology on every host.
func TestSimulatedRanksAreOnNoMachine(t *testing.T) {
	t.Setenv("SLURM_TOPOLOGY_ADDR", "garbage")
	_, err := sim.Timed{Node: []int{0, 0, 1, 1}, Model: sim.Uneven(1)}.Run(func(c rma.Comm) error {
		tree, err := Topology(c)
		if err != nil {
			return err
		}
		if tree.String() != "node:2 rank:2" || len(tree.Notes()) > 0 || tree.CPUs(0) != "" {
			return fmt.Errorf("topology %v of processors %q, notes %q", tree, tree.CPUs(0), tree.Notes())
		}
		return nil
	})
	require.NoError(t, err)
}
