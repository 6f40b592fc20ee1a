package topo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/rma"
)

// checkMaps checks the maps of a topology against what they say, the long way.
func checkMaps(t *testing.T, topo *Topology) {
	t.Helper()
	last := len(topo.Levels()) - 1
	load := make([]int, topo.Size())
	for i := range topo.Levels() {
		for e := range topo.Elements(i) {
			ranks := topo.Ranks(i, e)
			require.Equal(t, len(ranks), topo.Count(i, e))
			require.Equal(t, ranks[0], topo.FirstRank(i, e))
			require.Contains(t, ranks, topo.Host(i, e), "host of level %d element %d", i, e)
			require.Equal(t, topo.Host(i, e), topo.HostOf(i, e, 0))
			load[topo.Host(i, e)]++
			if e < 20 && len(ranks) <= 64 {
				var turns []int
				for k := range ranks {
					turns = append(turns, topo.HostOf(i, e, k))
				}
				require.Equal(t, turns[0], topo.HostOf(i, e, len(ranks)))
				slices.Sort(turns)
				require.Equal(t, ranks, turns, "locks go round all ranks of the element")
			}
			inner := map[int]bool{}
			for _, r := range ranks {
				if i > 0 && topo.Element(r, i-1) != topo.Up(i, e) {
					t.Fatalf("level %d element %d: Up is %d, rank %d is in %d", i, e, topo.Up(i, e), r, topo.Element(r, i-1))
				}
				if i < last {
					inner[topo.Element(r, i+1)] = true
				} else {
					inner[r] = true
				}
			}
			require.Equal(t, len(inner), topo.Arity(i, e))
		}
	}
	for r, n := range load {
		for i := 0; n > 1 && i < last; i++ {
			if e := topo.Element(r, i); topo.Host(i, e) == r {
				for _, other := range topo.Ranks(i, e) {
					if load[other] == 0 {
						t.Fatalf("rank %d hosts for %d elements, among them %d of level %d, in which rank %d hosts for none", r, n, e, i, other)
					}
				}
			}
		}
	}
	for range 20 {
		p, q := rand.IntN(topo.Size()), rand.IntN(topo.Size())
		m := topo.Meet(p, q)
		require.Equal(t, topo.Element(p, m), topo.Element(q, m))
		if m < last {
			require.NotEqual(t, topo.Element(p, m+1), topo.Element(q, m+1))
		}
	}
	require.Equal(t, last, topo.Meet(0, 0))
	for i, l := range topo.Levels() { // in order, the ranks of an element are together
		runs := 1
		for k := 1; k < topo.Size(); k++ {
			if topo.Element(topo.InOrder(k), i) != topo.Element(topo.InOrder(k-1), i) {
				runs++
			}
		}
		require.Equal(t, l.Elements, runs)
	}
}

// shapes are topologies of every kind that locks have to do with.
func shapes(t *testing.T) map[string]*Topology {
	t.Helper()
	out := map[string]*Topology{}
	for _, text := range []string{
		"rank:1", "node:1", "rank:8", "node:4", "node:4 core:1", "rack:2 node:4 numa:2 core:4", "node:4 core:8 by:node",
		"rack:3 node:2 numa:2 rank:3 by:rack", "rack:2 node:16 numa:4 rank:32", "rack:4 node:32 rank:16 by:node",
	} {
		topo, err := Parse(text)
		require.NoError(t, err)
		out[text] = topo
	}
	for name, text := range map[string]string{
		"unequal":     "0-6 rack=A node=a\n7 rack=A node=b\n8-10 rack=B node=c\n",
		"interleaved": "0,5,9 node=a\n1,2,8 node=b\n3,4,6-7 node=c\n",
		"one-rank":    "0 rack=A node=a\n1 rack=A node=b\n2-7 rack=B node=c\n8 rack=C node=d\n",
		"lopsided":    "0,9 rack=A node=a numa=0\n1 rack=A node=a numa=1\n2-4,8 rack=B node=b numa=0\n5 rack=B node=b numa=1\n6 rack=B node=c numa=0\n7 rack=A node=d numa=0\n",
	} {
		topo, err := Read([]byte(text))
		require.NoError(t, err)
		out[name] = topo
	}
	// Thousands of ranks, thrown at random into unequal elements.
	var places []Place
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		node := int(random.ExpFloat64() * 20)
		p := at(node, Set(fmt.Sprint(random.IntN(4))), "")
		p.Inside = p.Inside[:1]
		p.Above = []Part{{"rack", fmt.Sprint(node % 7)}}
		places = append(places, p)
	}
	topo, err := Build(places)
	require.NoError(t, err)
	out["random"] = topo
	return out
}

func TestLookups(t *testing.T) {
	for name, topo := range shapes(t) {
		t.Run(name, func(t *testing.T) { checkInvariants(t, topo) })
	}
}

func TestHostsAreSpread(t *testing.T) {
	for name, c := range map[string]struct {
		topo *Topology
		most int // words that any rank hosts
	}{
		"enough ranks":        {shapes(t)["rack:2 node:16 numa:4 rank:32"], 1},
		"round robin":         {shapes(t)["rack:4 node:32 rank:16 by:node"], 1},
		"a core each":         {shapes(t)["rack:2 node:4 numa:2 core:4"], 2}, // everyone hosts its core
		"one rank, two parts": {shapes(t)["node:1"], 2},
	} {
		load := map[int]int{}
		for i := range c.topo.Levels() {
			for e := range c.topo.Elements(i) {
				load[c.topo.Host(i, e)]++
			}
		}
		for r, n := range load {
			require.LessOrEqual(t, n, c.most, "%s: rank %d", name, r)
		}
		if c.topo.Size() > 1 {
			require.NotZero(t, c.topo.Host(0, 0), "%s: rank 0 is left alone", name)
		}
	}
	topo := shapes(t)["lopsided"]
	var hosts [][]int
	for i := range topo.Levels() {
		var of []int
		for e := range topo.Elements(i) {
			of = append(of, topo.Host(i, e))
		}
		hosts = append(hosts, of)
	}
	// From the inside out: the last rank of each NUMA node in the order of the tree;
	// of those left over in node a (0,9,1) rank 0, in b (2-4,8,5) rank 4; and so on.
	require.Equal(t, [][]int{{2}, {1, 3}, {0, 4, 6, 7}, {9, 1, 8, 5, 6, 7}}, hosts)
}

func TestUpIsTheWayOfAWriter(t *testing.T) {
	topo := shapes(t)["lopsided"]
	var way []string
	for level, e := 3, topo.Element(8, 3); ; level-- {
		way = append(way, fmt.Sprintf("%s %s: ranks %s of %d", topo.Levels()[level].Name, topo.Label(level, e), MakeSet(topo.Ranks(level, e)...), topo.Arity(level, e)))
		if level == 0 {
			break
		}
		e = topo.Up(level, e)
	}
	require.Equal(t, []string{
		"numa 0: ranks 2-4,8 of 4", "node b: ranks 2-5,8 of 2", "rack B: ranks 2-6,8 of 2", "machine 0: ranks 0-9 of 2",
	}, way)
}

func TestNear(t *testing.T) {
	topo := shapes(t)["lopsided"]
	n := rma.Node{Ranks: []int{2, 3, 4, 5, 8}}
	node, _ := topo.Find("node")
	rack, _ := topo.Find("rack")
	require.True(t, topo.Near(node, topo.Element(2, node), n))
	require.True(t, topo.Near(node+1, topo.Element(5, node+1), n))
	require.False(t, topo.Near(rack, topo.Element(2, rack), n))
	require.False(t, topo.Near(node, topo.Element(0, node), n))
	require.False(t, topo.Near(0, 0, n))
}

func TestLookupsAllocateNothing(t *testing.T) {
	topo := shapes(t)["rack:2 node:16 numa:4 rank:32"]
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for level := 3; level > 0; level-- {
			e := topo.Element(1000, level)
			_ = topo.Host(level, e) + topo.HostOf(level, e, 7) + topo.Up(level, e) + topo.Arity(level, e) + topo.FirstRank(level, e) + topo.Count(level, e)
		}
		_ = topo.Meet(3, 4000) + topo.InOrder(7)
	}))
}
