package topo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSection6 is "Selecting RMA-RW Parameters" for the machines of the paper and
// others.
func TestSection6(t *testing.T) {
	for _, c := range []struct {
		text     string
		tl       []int
		counters int
		tr       int64
	}{
		{"node:64 rank:16", []int{20, 50}, 64, 4096}, // section 5: machine and nodes, T_L,1 = 20 and T_L,2 = 50 of 1,000
		{"rank:8", []int{1000}, 1, 4096},
		{"rack:4 node:16 rank:16", []int{5, 20, 10}, 64, 4096}, // Figure 2's levels
		{"rack:16 node:64 rank:64", []int{5, 20, 10}, 1024, 65536},
		{"node:4 numa:2 rank:8", []int{10, 20, 5}, 4, 4096},
		{"node:1 numa:2 rank:8", []int{50, 20}, 1, 4096},
		{"rack:4 node:4 numa:2 rank:8", []int{5, 10, 10, 2}, 16, 4096},
		{"spine:2 rack:4 node:4 rank:8", []int{2, 10, 10, 5}, 32, 4096},
	} {
		topo, err := Parse(c.text)
		require.NoError(t, err)
		topo = topo.DefaultView()
		th := topo.Defaults()
		require.Equal(t, c.tl, th.TL, c.text)
		require.Equal(t, c.tr, th.TR, c.text)
		counters, err := topo.Counters(th.TDC)
		require.NoError(t, err)
		require.Equal(t, c.counters, counters.Len(), c.text)
	}
}

// TestLocalityGrowsOutwards is the rule of thumb of section 6, and T_W of table 2.
func TestLocalityGrowsOutwards(t *testing.T) {
	text := ""
	for _, above := range []string{"", "spine:2 ", "spine:2 rack:3 ", "site:2 spine:2 rack:2 "} {
		for _, within := range []string{"", "numa:2 ", "group:2 numa:2 ", "group:2 numa:2 cache:2 core:2 "} {
			text = above + "node:3 " + within + "rank:2"
			topo, err := Parse(text)
			require.NoError(t, err)
			th := topo.Defaults()
			for i := 2; i < len(th.TL); i++ {
				require.LessOrEqual(t, th.TL[i], th.TL[i-1], "%s: %v", text, th.TL)
			}
			require.GreaterOrEqual(t, th.TL[len(th.TL)-1], 2)
			require.LessOrEqual(t, th.TW(), int64(product), "%s: %v", text, th.TL)
			require.GreaterOrEqual(t, th.TW(), int64(product/2), "%s: %v", text, th.TL)
		}
	}
}

func TestThresholdsOfAView(t *testing.T) {
	topo := shapes(t)["rack:2 node:16 numa:4 rank:32"]
	view, err := topo.Pick("rack", "numa")
	require.NoError(t, err)
	// 3, 5 and 2 shares of ten: no node in the view, but numa is known to be inside one.
	require.Equal(t, []int{10, 20, 5}, []int{view.Defaults().TL[0], view.Defaults().TL[1], view.Defaults().TL[2]})
	require.Equal(t, TDC{Each: 1, Level: "node"}, view.Defaults().TDC)
}

func TestNice(t *testing.T) {
	for x, want := range map[float64]int{0.5: 2, 1: 2, 2: 2, 3.1: 2, 3.2: 5, 7: 5, 7.1: 10, 14: 10, 15: 20, 31: 20, 32: 50, 51.8: 50, 75: 100, 1000: 1000, 1e6: 1000000} {
		require.Equal(t, want, nice(x), "%v", x)
	}
}

func TestFill(t *testing.T) {
	topo := shapes(t)["node:4 core:8 by:node"]
	th, err := topo.Fill(Thresholds{TL: []int{0, 7, 1}, TR: 9, TDC: TDC{Every: 2}})
	require.NoError(t, err)
	require.Equal(t, Thresholds{TDC: TDC{Every: 2, Level: "node"}, TL: []int{topo.Defaults().TL[0], 7, 1}, TR: 9}, th)
	require.Equal(t, int64(7*th.TL[0]), th.TW())
	mine := []int{1, 0, 1}
	_, err = topo.Fill(Thresholds{TL: mine})
	require.NoError(t, err)
	require.Equal(t, []int{1, 0, 1}, mine, "the caller's slice is left alone")
	for _, c := range []struct {
		th   Thresholds
		want string
	}{
		{Thresholds{TL: []int{1, 2}}, "topo: T_L has 2 values, want one per level from the outermost in: machine, node, core"},
		{Thresholds{TL: []int{1, -2, 3}}, "topo: T_L of level node is -2, want at least 1"},
		{Thresholds{TL: []int{1 << 20, 1 << 20, 2}}, "topo: T_W, the product of T_L, is more than 1099511627776"},
		{Thresholds{TL: []int{1 << 40, 1 << 24, 1}}, "topo: T_W, the product of T_L, is more than 1099511627776"}, // 0 in 64 bits
		{Thresholds{TL: []int{1 << 62, 1 << 62, 1 << 62}}, "topo: T_W, the product of T_L, is more than 1099511627776"},
		{Thresholds{TR: -1}, "topo: T_R is -1, want from 1 to 1099511627776"},
		{Thresholds{TR: 1<<40 + 1}, "topo: T_R is 1099511627777, want from 1 to 1099511627776"},
		{Thresholds{TDC: TDC{Ranks: 33}}, "topo: T_DC: Ranks is 33, want from 1 to the number of ranks, 32"},
	} {
		_, err := topo.Fill(c.th)
		require.EqualError(t, err, c.want+": bad description of the machine")
		require.ErrorIs(t, err, ErrTopology)
	}
}

// told is what a lock on a topology would be made with when nothing is set.
func told(t *testing.T, topo *Topology) string {
	t.Helper()
	topo = topo.DefaultView()
	th := topo.Defaults()
	c, err := topo.Counters(th.TDC)
	require.NoError(t, err)
	return fmt.Sprintf("%s: T_DC %s at %v, T_L %v, T_R %d, T_W %d", sketch(topo), th.TDC, MakeSet(c.Hosts()...), th.TL, th.TR, th.TW())
}
