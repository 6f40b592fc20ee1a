package queuetree

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/topo"
)

// TestDefaultTLGrowsOutwards is the rule of thumb of section 6 of rma-rw, and T_W of table 2.
func TestDefaultTLGrowsOutwards(t *testing.T) {
	for _, above := range []string{"", "spine:2 ", "spine:2 rack:3 ", "site:2 spine:2 rack:2 "} {
		for _, within := range []string{"", "numa:2 ", "group:2 numa:2 ", "group:2 numa:2 cache:2 core:2 "} {
			text := above + "node:3 " + within + "rank:2"
			tree, err := topo.Parse(text)
			require.NoError(t, err)
			tl := DefaultTL(tree)
			w := 1
			for i, n := range tl {
				w *= n
				if i > 1 {
					require.LessOrEqual(t, n, tl[i-1], "%s: %v", text, tl)
				}
			}
			require.GreaterOrEqual(t, tl[len(tl)-1], 2)
			require.LessOrEqual(t, w, product, "%s: %v", text, tl)
			require.GreaterOrEqual(t, w, product/2, "%s: %v", text, tl)
		}
	}
}

func TestDefaultTLOfAView(t *testing.T) {
	tree, err := topo.Parse("rack:2 node:16 numa:4 rank:32")
	require.NoError(t, err)
	view, err := tree.Pick("rack", "numa")
	require.NoError(t, err)
	// 3, 5 and 2 shares of ten: no node in the view, but numa is known to be inside one.
	require.Equal(t, []int{10, 20, 5}, DefaultTL(view))
}

func TestNice(t *testing.T) {
	for x, want := range map[float64]int{0.5: 2, 1: 2, 2: 2, 3.1: 2, 3.2: 5, 7: 5, 7.1: 10, 14: 10, 15: 20, 31: 20, 32: 50, 51.8: 50, 75: 100, 1000: 1000, 1e6: 1000000} {
		require.Equal(t, want, nice(x), "%v", x)
	}
}

func TestFillTL(t *testing.T) {
	tree, err := topo.Parse("node:4 core:8")
	require.NoError(t, err)
	mine := []int{0, 7, 1}
	got, err := FillTL("rmarw", tree, mine)
	require.NoError(t, err)
	require.Equal(t, []int{DefaultTL(tree)[0], 7, 1}, got)
	require.Equal(t, []int{0, 7, 1}, mine, "the caller's slice is left alone")
	for _, c := range []struct {
		tl   []int
		want string
	}{
		{[]int{1, 2}, "rmarw: Config: T_L has 2 values, want one per level from the outermost in: machine, node, core"},
		{[]int{1, -2, 3}, "rmarw: Config: T_L of level node is -2, want 1 to 2147483646, or 0 for the default"},
		{[]int{1, 2, MaxTL + 1}, "rmarw: Config: T_L of level core is 2147483647, want 1 to 2147483646, or 0 for the default"},
	} {
		_, err := FillTL("rmarw", tree, c.tl)
		require.EqualError(t, err, c.want+": "+lock.ErrConfig.Error())
		require.ErrorIs(t, err, lock.ErrConfig)
	}
}
