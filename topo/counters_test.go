package topo

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkCounters checks what Counters promises of every one.
func checkCounters(t *testing.T, topo *Topology, specs ...TDC) {
	t.Helper()
	for _, d := range specs {
		c, err := topo.Counters(d)
		require.NoError(t, err, "%+v", d)
		all := c.Hosts()
		require.Len(t, all, c.Len())
		seen := make([]bool, topo.Size())
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
		settled, err := topo.whole().settle(again)
		require.NoError(t, err)
		require.Equal(t, c.TDC(), settled)
	}
}

// TestEveryTDCthProcess is section 3.2.1 and Listing 6: ranks p = 0, T_DC, 2*T_DC
// host a counter each.
func TestEveryTDCthProcess(t *testing.T) {
	topo := shapes(t)["rack:2 node:4 numa:2 core:4"]
	for tdc := 1; tdc <= topo.Size(); tdc++ {
		c, err := topo.Counters(TDC{Ranks: tdc})
		require.NoError(t, err)
		var listing6 []int
		for p := 0; p < topo.Size(); p += tdc {
			listing6 = append(listing6, p)
		}
		require.Equal(t, listing6, c.Hosts())
		for p := range topo.Size() {
			require.Equal(t, p/tdc*tdc, c.Of(p))
		}
	}
	// "T_DC = kx results in storing one physical counter every kth node."
	const x = 8
	for k := 1; k <= 8; k++ {
		byRanks, err := topo.Counters(TDC{Ranks: k * x})
		require.NoError(t, err)
		byNodes, err := topo.Counters(TDC{Level: "node", Every: k})
		require.NoError(t, err)
		require.Equal(t, byRanks.Hosts(), byNodes.Hosts())
	}
	// Figure 4a: 1, 2, 4 and 8 counters on a node.
	for _, k := range []int{1, 2, 4, 8} {
		c, err := topo.Counters(TDC{Each: k})
		require.NoError(t, err)
		require.Equal(t, 8*k, c.Len())
		byRanks, err := topo.Counters(TDC{Ranks: x / k})
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
	topo := shapes(t)["node:4 core:8 by:node"]
	c, err := topo.Counters(TDC{Ranks: 8})
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2, 3}, c.Hosts())
	require.True(t, c.Within("node"))
	require.Equal(t, []int{1, 5, 9, 13, 17, 21, 25, 29}, c.Ranks(1))
}

func TestCountersOfUnequalElements(t *testing.T) {
	for _, c := range []struct {
		shape string
		d     TDC
		ranks []Set
		hosts []int
	}{
		{"unequal", TDC{}, []Set{"0-6", "7", "8-10"}, []int{0, 7, 8}},
		{"unequal", TDC{Each: 2}, []Set{"0-2", "3-6", "7", "8", "9-10"}, []int{0, 3, 7, 8, 9}},
		{"unequal", TDC{Each: 4}, []Set{"0", "1-2", "3-4", "5-6", "7", "8", "9", "10"}, []int{0, 1, 3, 5, 7, 8, 9, 10}},
		{"unequal", TDC{Each: 7}, []Set{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{"unequal", TDC{Every: 2}, []Set{"0-7", "8-10"}, []int{0, 8}},
		{"unequal", TDC{Level: "rack"}, []Set{"0-7", "8-10"}, []int{0, 8}},
		{"unequal", TDC{Level: "machine", Each: 2}, []Set{"0-4", "5-10"}, []int{0, 5}},
		{"unequal", TDC{Ranks: 4}, []Set{"0-3", "4-7", "8-10"}, []int{0, 4, 8}},
		{"interleaved", TDC{}, []Set{"0,5,9", "1-2,8", "3-4,6-7"}, []int{0, 1, 3}},
		{"interleaved", TDC{Ranks: 5}, []Set{"0-1,2,5,9", "3-4,6-8"}, []int{0, 8}},
		{"one-rank", TDC{Every: 3}, []Set{"0-7", "8"}, []int{0, 8}},
		{"lopsided", TDC{}, []Set{"0-1,9", "7", "2-5,8", "6"}, []int{0, 7, 2, 6}},
		{"lopsided", TDC{Level: "numa", Each: 2}, []Set{"0", "9", "1", "7", "2-3", "4,8", "5", "6"}, []int{0, 9, 1, 7, 2, 4, 5, 6}},
		{"rank:1", TDC{Ranks: 1}, []Set{"0"}, []int{0}},
		{"rank:8", TDC{}, []Set{"0-7"}, []int{0}}, // no nodes known: the machine
		{"node:4", TDC{}, []Set{"0", "1", "2", "3"}, []int{0, 1, 2, 3}},
	} {
		topo := shapes(t)[c.shape]
		checkCounters(t, topo, c.d)
		got, err := topo.Counters(c.d)
		require.NoError(t, err)
		var ranks []Set
		for k := range got.Len() {
			ranks = append(ranks, MakeSet(got.Ranks(k)...))
		}
		want := slices.Clone(c.ranks)
		for i := range want {
			want[i], err = ParseSet(string(want[i]))
			require.NoError(t, err)
		}
		require.Equal(t, want, ranks, "%s %+v", c.shape, c.d)
		require.Equal(t, c.hosts, got.Hosts(), "%s %+v", c.shape, c.d)
	}
}

func TestCountersOfManyShapes(t *testing.T) {
	for name, topo := range shapes(t) {
		t.Run(name, func(t *testing.T) {
			for i, l := range topo.Levels() {
				most := 0
				for e := range l.Elements {
					most = max(most, topo.Count(i, e))
				}
				checkCounters(t, topo, TDC{Level: l.Name}, TDC{Level: l.Name, Each: most}, TDC{Level: l.Name, Each: (most + 1) / 2},
					TDC{Level: l.Name, Every: l.Elements}, TDC{Level: l.Name, Every: (l.Elements + 1) / 2})
				c, err := topo.Counters(TDC{Level: l.Name, Each: (most + 1) / 2})
				require.NoError(t, err)
				require.True(t, c.Within(l.Name))
				c, err = topo.Counters(TDC{Level: l.Name, Every: l.Elements})
				require.NoError(t, err)
				require.Equal(t, 1, c.Len())
			}
		})
	}
}

func TestCounterErrors(t *testing.T) {
	topo := shapes(t)["unequal"]
	for _, c := range []struct {
		d    TDC
		want string
	}{
		{TDC{Ranks: -1}, "topo: T_DC: Ranks is -1, want from 1 to the number of ranks, 11"},
		{TDC{Ranks: 12}, "topo: T_DC: Ranks is 12, want from 1 to the number of ranks, 11"},
		{TDC{Ranks: 2, Level: "node"}, "topo: T_DC: Ranks is 2; then Each, Every and Level are to be left out"},
		{TDC{Ranks: 2, Each: 1}, "topo: T_DC: Ranks is 2; then Each, Every and Level are to be left out"},
		{TDC{Level: "numa"}, `topo: T_DC: Level is "numa"; there are: machine, rack, node`},
		{TDC{Each: 1, Every: 1}, "topo: T_DC: Each is 1 and Every is 1; only one of them can be"},
		{TDC{Each: -2}, "topo: T_DC: Each is -2, want from 1 to the most ranks of a node, 7"},
		{TDC{Each: 8}, "topo: T_DC: Each is 8, want from 1 to the most ranks of a node, 7"},
		{TDC{Every: -1}, "topo: T_DC: Every is -1, want from 1 to the number of elements at level node, 3"},
		{TDC{Every: 4}, "topo: T_DC: Every is 4, want from 1 to the number of elements at level node, 3"},
		{TDC{Every: 3, Level: "rack"}, "topo: T_DC: Every is 3, want from 1 to the number of elements at level rack, 2"},
	} {
		got, err := topo.Counters(c.d)
		require.Nil(t, got)
		require.EqualError(t, err, c.want+": bad description of the machine")
		require.ErrorIs(t, err, ErrTopology)
		_, err = topo.Fill(Thresholds{TDC: c.d})
		require.EqualError(t, err, c.want+": bad description of the machine")
	}
}

func TestParseTDC(t *testing.T) {
	for text, want := range map[string]TDC{
		"16": {Ranks: 16}, "every 16th rank": {Ranks: 16}, "1": {Ranks: 1}, "every rank": {Ranks: 1}, "1 per rank": {Ranks: 1},
		"every node": {Each: 1, Level: "node"}, "1 per node": {Each: 1, Level: "node"}, " 4  per node ": {Each: 4, Level: "node"},
		"every 2nd node": {Every: 2, Level: "node"}, "every 3 rack": {Every: 3, Level: "rack"}, "every 1st numa": {Each: 1, Level: "numa"},
		"every 23rd node": {Every: 23, Level: "node"},
	} {
		got, err := ParseTDC(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := ParseTDC(got.String())
		require.NoError(t, err, got.String())
		require.Equal(t, got, again, got.String())
	}
	require.Equal(t, "1 per node", TDC{}.String())
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 112: "112th", 122: "122nd"} {
		require.Equal(t, want, ordinal(n))
	}
	for text, want := range map[string]string{
		"0":                "topo: T_DC is \"0\", want at least 1",
		"-4":               "topo: T_DC is \"-4\", want at least 1",
		"every 0th node":   "topo: T_DC is \"every 0th node\", want at least 1",
		"0 per node":       "topo: T_DC is \"0 per node\", want at least 1",
		"2 per rank":       "topo: T_DC is \"2 per rank\", but a rank has at most one counter",
		"":                 `topo: T_DC: want for example "16" (ranks), "2 per node" or "every 2nd node", not ""`,
		"x":                `topo: T_DC: want for example "16" (ranks), "2 per node" or "every 2nd node", not "x"`,
		"2nd per node":     `topo: T_DC: want for example "16" (ranks), "2 per node" or "every 2nd node", not "2nd per node"`,
		"each 2nd node":    `topo: T_DC: want for example "16" (ranks), "2 per node" or "every 2nd node", not "each 2nd node"`,
		"every 2nd NODE":   `topo: T_DC: want for example "16" (ranks), "2 per node" or "every 2nd node", not "every 2nd NODE"`,
		"every 2nd node x": `topo: T_DC: want for example "16" (ranks), "2 per node" or "every 2nd node", not "every 2nd node x"`,
	} {
		_, err := ParseTDC(text)
		require.EqualError(t, err, want+": bad description of the machine", text)
	}
}

func TestCountersAreShared(t *testing.T) {
	topo := shapes(t)["rack:2 node:4 numa:2 core:4"]
	a, err := topo.Counters(TDC{})
	require.NoError(t, err)
	view, err := topo.Pick("rack")
	require.NoError(t, err)
	b, err := view.Counters(TDC{Each: 1, Level: "node"})
	require.NoError(t, err)
	require.Same(t, a, b, "one table for all ranks of a process, of whatever view")
	c, err := topo.Counters(TDC{Each: 2})
	require.NoError(t, err)
	require.NotSame(t, a, c)
}
