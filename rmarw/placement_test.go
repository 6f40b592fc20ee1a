package rmarw

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/topo"
)

// shapes are topologies of every kind.
func shapes(t *testing.T) map[string]*topo.Topology {
	t.Helper()
	out := map[string]*topo.Topology{}
	for name, text := range map[string]string{
		"rank:1": "rank:1", "rank:8": "rank:8", "node:4": "node:4", "regular": "rack:2 node:4 numa:2 core:4", "in turns": "node:4 core:8 by:node",
		"large":       "rack:2 node:16 numa:4 rank:32",
		"unequal":     "0-6 rack=A node=a\n7 rack=A node=b\n8-10 rack=B node=c\n",
		"interleaved": "0,5,9 node=a\n1,2,8 node=b\n3,4,6-7 node=c\n",
		"one-rank":    "0 rack=A node=a\n1 rack=A node=b\n2-7 rack=B node=c\n8 rack=C node=d\n",
		"lopsided":    "0,9 rack=A node=a numa=0\n1 rack=A node=a numa=1\n2-4,8 rack=B node=b numa=0\n5 rack=B node=b numa=1\n6 rack=B node=c numa=0\n7 rack=A node=d numa=0\n",
	} {
		tree, err := topo.Read([]byte(text))
		require.NoError(t, err)
		out[name] = tree
	}
	return out
}

// checkCounters checks what Counters promises of every one.
func checkCounters(t *testing.T, tree *topo.Topology, specs ...TDC) {
	t.Helper()
	for _, d := range specs {
		c, err := NewCounters(tree, d)
		require.NoError(t, err, "%+v", d)
		all := c.Hosts()
		require.Len(t, all, c.Len())
		seen := make([]bool, tree.Size())
		hosts := map[int]bool{}
		for k := range c.Len() {
			ranks := c.Ranks(k)
			if !slices.Contains(ranks, c.Host(k)) || all[k] != c.Host(k) || hosts[c.Host(k)] {
				t.Fatalf("%v: counter %d of ranks %v is at %d", d, k, ranks, c.Host(k))
			}
			hosts[c.Host(k)] = true
			for _, r := range ranks {
				if seen[r] || c.Index(r) != k || c.Of(r) != c.Host(k) {
					t.Fatalf("%v: rank %d of counter %d has counter %d at %d", d, r, k, c.Index(r), c.Of(r))
				}
				seen[r] = true
			}
		}
		require.NotContains(t, seen, false, "every rank has a counter")
		again, err := ParseTDC(c.TDC().String())
		require.NoError(t, err)
		settled, err := again.settle(tree.Whole())
		require.NoError(t, err)
		require.Equal(t, c.TDC(), settled)
	}
}

// TestEveryTDCthProcess is section 3.2.1 and Listing 6: ranks p = 0, T_DC, 2*T_DC
// host a counter each.
func TestEveryTDCthProcess(t *testing.T) {
	tree := shapes(t)["regular"]
	for tdc := 1; tdc <= tree.Size(); tdc++ {
		c, err := NewCounters(tree, TDC{Ranks: tdc})
		require.NoError(t, err)
		var listing6 []int
		for p := 0; p < tree.Size(); p += tdc {
			listing6 = append(listing6, p)
		}
		require.Equal(t, listing6, c.Hosts())
		for p := range tree.Size() {
			require.Equal(t, p/tdc*tdc, c.Of(p))
		}
	}
	// "T_DC = kx results in storing one physical counter every kth node."
	const x = 8
	for k := 1; k <= 8; k++ {
		byRanks, err := NewCounters(tree, TDC{Ranks: k * x})
		require.NoError(t, err)
		byNodes, err := NewCounters(tree, TDC{Level: "node", Every: k})
		require.NoError(t, err)
		require.Equal(t, byRanks.Hosts(), byNodes.Hosts())
	}
	// Figure 4a: 1, 2, 4 and 8 counters on a node.
	for _, k := range []int{1, 2, 4, 8} {
		c, err := NewCounters(tree, TDC{Each: k})
		require.NoError(t, err)
		require.Equal(t, 8*k, c.Len())
		byRanks, err := NewCounters(tree, TDC{Ranks: x / k})
		require.NoError(t, err)
		require.Equal(t, byRanks.Hosts(), c.Hosts())
		require.True(t, c.Within("node"))
		require.Equal(t, k > 1, c.Within("numa"))
		require.Equal(t, k == 8, c.Within("core"))
		require.False(t, c.Within("cache"), "no such level")
	}
}

func TestCountersFollowTheTree(t *testing.T) {
	// Dealt round robin, so that every 8th rank is on node 0: counters are on all
	// nodes none the less, and readers stay on theirs.
	tree := shapes(t)["in turns"]
	c, err := NewCounters(tree, TDC{Ranks: 8})
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2, 3}, c.Hosts())
	require.True(t, c.Within("node"))
	require.Equal(t, []int{1, 5, 9, 13, 17, 21, 25, 29}, c.Ranks(1))
}

func TestCountersOfUnequalElements(t *testing.T) {
	for _, c := range []struct {
		shape string
		d     TDC
		ranks []topo.Set
		hosts []int
	}{
		{"unequal", TDC{}, []topo.Set{"0-6", "7", "8-10"}, []int{0, 7, 8}},
		{"unequal", TDC{Each: 2}, []topo.Set{"0-2", "3-6", "7", "8", "9-10"}, []int{0, 3, 7, 8, 9}},
		{"unequal", TDC{Each: 4}, []topo.Set{"0", "1-2", "3-4", "5-6", "7", "8", "9", "10"}, []int{0, 1, 3, 5, 7, 8, 9, 10}},
		{"unequal", TDC{Each: 7}, []topo.Set{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{"unequal", TDC{Every: 2}, []topo.Set{"0-7", "8-10"}, []int{0, 8}},
		{"unequal", TDC{Level: "rack"}, []topo.Set{"0-7", "8-10"}, []int{0, 8}},
		{"unequal", TDC{Level: "machine", Each: 2}, []topo.Set{"0-4", "5-10"}, []int{0, 5}},
		{"unequal", TDC{Ranks: 4}, []topo.Set{"0-3", "4-7", "8-10"}, []int{0, 4, 8}},
		{"interleaved", TDC{}, []topo.Set{"0,5,9", "1-2,8", "3-4,6-7"}, []int{0, 1, 3}},
		{"interleaved", TDC{Ranks: 5}, []topo.Set{"0-1,2,5,9", "3-4,6-8"}, []int{0, 8}},
		{"one-rank", TDC{Every: 3}, []topo.Set{"0-7", "8"}, []int{0, 8}},
		{"lopsided", TDC{}, []topo.Set{"0-1,9", "7", "2-5,8", "6"}, []int{0, 7, 2, 6}},
		{"lopsided", TDC{Level: "numa", Each: 2}, []topo.Set{"0", "9", "1", "7", "2-3", "4,8", "5", "6"}, []int{0, 9, 1, 7, 2, 4, 5, 6}},
		{"rank:1", TDC{Ranks: 1}, []topo.Set{"0"}, []int{0}},
		{"rank:8", TDC{}, []topo.Set{"0-7"}, []int{0}}, // no nodes known: the machine
		{"node:4", TDC{}, []topo.Set{"0", "1", "2", "3"}, []int{0, 1, 2, 3}},
	} {
		tree := shapes(t)[c.shape]
		checkCounters(t, tree, c.d)
		got, err := NewCounters(tree, c.d)
		require.NoError(t, err)
		var ranks []topo.Set
		for k := range got.Len() {
			ranks = append(ranks, topo.MakeSet(got.Ranks(k)...))
		}
		want := slices.Clone(c.ranks)
		for i := range want {
			want[i], err = topo.ParseSet(string(want[i]))
			require.NoError(t, err)
		}
		require.Equal(t, want, ranks, "%s %+v", c.shape, c.d)
		require.Equal(t, c.hosts, got.Hosts(), "%s %+v", c.shape, c.d)
	}
}

func TestEveryRankHasOneCounter(t *testing.T) {
	for name, tree := range shapes(t) {
		t.Run(name, func(t *testing.T) {
			for i, l := range tree.Levels() {
				most := 0
				for e := range l.Elements {
					most = max(most, tree.Count(i, e))
				}
				checkCounters(t, tree, TDC{Level: l.Name}, TDC{Level: l.Name, Each: most}, TDC{Level: l.Name, Each: (most + 1) / 2},
					TDC{Level: l.Name, Every: l.Elements}, TDC{Level: l.Name, Every: (l.Elements + 1) / 2})
				c, err := NewCounters(tree, TDC{Level: l.Name, Each: (most + 1) / 2})
				require.NoError(t, err)
				require.True(t, c.Within(l.Name))
				c, err = NewCounters(tree, TDC{Level: l.Name, Every: l.Elements})
				require.NoError(t, err)
				require.Equal(t, 1, c.Len())
			}
		})
	}
}

func TestCounterErrors(t *testing.T) {
	tree := shapes(t)["unequal"]
	for _, c := range []struct {
		d    TDC
		want string
	}{
		{TDC{Ranks: -1}, "rmarw: T_DC: Ranks is -1, want from 1 to the number of ranks, 11"},
		{TDC{Ranks: 12}, "rmarw: T_DC: Ranks is 12, want from 1 to the number of ranks, 11"},
		{TDC{Ranks: 2, Level: "node"}, "rmarw: T_DC: Ranks is 2; then Each, Every and Level are to be left out"},
		{TDC{Ranks: 2, Each: 1}, "rmarw: T_DC: Ranks is 2; then Each, Every and Level are to be left out"},
		{TDC{Level: "numa"}, `rmarw: T_DC: Level is "numa"; there are: machine, rack, node`},
		{TDC{Each: 1, Every: 1}, "rmarw: T_DC: Each is 1 and Every is 1; only one of them can be"},
		{TDC{Each: -2}, "rmarw: T_DC: Each is -2, want from 1 to the most ranks of a node, 7"},
		{TDC{Each: 8}, "rmarw: T_DC: Each is 8, want from 1 to the most ranks of a node, 7"},
		{TDC{Every: -1}, "rmarw: T_DC: Every is -1, want from 1 to the number of elements at level node, 3"},
		{TDC{Every: 4}, "rmarw: T_DC: Every is 4, want from 1 to the number of elements at level node, 3"},
		{TDC{Every: 3, Level: "rack"}, "rmarw: T_DC: Every is 3, want from 1 to the number of elements at level rack, 2"},
	} {
		got, err := NewCounters(tree, c.d)
		require.Nil(t, got)
		require.EqualError(t, err, c.want+": "+lock.ErrConfig.Error())
		require.ErrorIs(t, err, lock.ErrConfig)
		_, err = Thresholds{TDC: c.d}.Fill(tree)
		require.EqualError(t, err, c.want+": "+lock.ErrConfig.Error())
	}
}

func TestCountersAreShared(t *testing.T) {
	tree := shapes(t)["regular"]
	a, err := NewCounters(tree, TDC{})
	require.NoError(t, err)
	view, err := tree.Pick("rack")
	require.NoError(t, err)
	b, err := NewCounters(view, TDC{Each: 1, Level: "node"})
	require.NoError(t, err)
	require.Same(t, a, b, "one table for all ranks of a process, of whatever view")
	c, err := NewCounters(tree, TDC{Each: 2})
	require.NoError(t, err)
	require.NotSame(t, a, c)
}
