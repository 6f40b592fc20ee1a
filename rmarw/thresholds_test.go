package rmarw

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/topo"
)

// TestDefaults is "Selecting RMA-RW Parameters", section 6 of rma-rw, for the machines of the
// paper and others.
func TestDefaults(t *testing.T) {
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
		{"rack:4 node:4 numa:2 rank:8", []int{5, 10, 10, 2}, 16, 4096},
		{"spine:2 rack:4 node:4 rank:8", []int{2, 10, 10, 5}, 32, 4096},
	} {
		tree, err := topo.Parse(c.text)
		require.NoError(t, err)
		th := Defaults(tree.DefaultView())
		require.Equal(t, c.tl, th.TL, c.text)
		require.Equal(t, c.tr, th.TR, c.text)
		counters, err := NewCounters(tree, TDC{})
		require.NoError(t, err)
		require.Equal(t, c.counters, counters.Len(), c.text)
		require.Equal(t, counters.TDC(), th.TDC, c.text)
	}
}

func TestFill(t *testing.T) {
	tree := shapes(t)["in turns"]
	th, err := Thresholds{TL: []int{0, 7, 1}, TR: 9, TDC: TDC{Every: 2}}.Fill(tree)
	require.NoError(t, err)
	require.Equal(t, Thresholds{TDC: TDC{Every: 2, Level: "node"}, TL: []int{Defaults(tree).TL[0], 7, 1}, TR: 9}, th)
	require.Equal(t, int64(7*th.TL[0]), th.TW())
	again, err := th.Fill(tree)
	require.NoError(t, err)
	require.Equal(t, th, again, "what is filled stays")
	for _, c := range []struct {
		th   Thresholds
		want string
	}{
		{Thresholds{TL: []int{1, 2}}, "rmarw: Config: T_L has 2 values, want one per level from the outermost in: machine, node, core"},
		{Thresholds{TL: []int{1 << 20, 1 << 20, 2}}, "rmarw: Config: T_W, the product of T_L, is more than 1099511627776"},
		{Thresholds{TR: -1}, "rmarw: Config: T_R is -1, want 1 to 8388607, or 0 for the default"},
		{Thresholds{TR: MaxTR + 1}, "rmarw: Config: T_R is 8388608, want 1 to 8388607, or 0 for the default"},
		{Thresholds{TDC: TDC{Ranks: 33}}, "rmarw: T_DC: Ranks is 33, want from 1 to the number of ranks, 32"},
	} {
		_, err := c.th.Fill(tree)
		require.EqualError(t, err, c.want+": "+lock.ErrConfig.Error())
		require.ErrorIs(t, err, lock.ErrConfig)
	}
}

// TestThresholdsInText has a threshold of 0 refused with its name, since 0 would be taken for
// the default.
func TestThresholdsInText(t *testing.T) {
	tree, err := topo.Parse("node:1 numa:2 rank:2")
	require.NoError(t, err)
	info, err := lock.Lookup("rmarw")
	require.NoError(t, err)
	for _, c := range []struct {
		params map[string]string
		want   string
	}{
		{map[string]string{"TR": "0"}, `rmarw: TR is "0", want a number from 1`},
		{map[string]string{"TR": "-3"}, `rmarw: TR is "-3"`},
		{map[string]string{"TR": "many"}, `rmarw: TR is "many"`},
		{map[string]string{"TL": "0/5"}, `rmarw: TL is "0/5": entry 1 is 0`},
		{map[string]string{"TDC": "0"}, `rmarw: T_DC is "0", want at least 1`},
		{map[string]string{"TL": "/5", "TR": "7"}, ""},
	} {
		err := inproc.Run(4, func(c2 rma.Comm) error {
			l, err := info.With(c2, lock.Setting{Topology: tree.DefaultView(), Params: c.params})
			if err != nil {
				return err
			}
			cfg := l.(*Table).cfg
			require.Equal(t, []int{Defaults(tree.DefaultView()).TL[0], 5}, cfg.Thresholds.TL)
			require.Equal(t, int64(7), cfg.Thresholds.TR)
			return l.Free()
		})
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, lock.ErrConfig, c.params)
		require.ErrorContains(t, err, c.want)
	}
}

// TestCountersOfThisMachine has as many counters as processors in a job on one node that sets
// nothing, though neither cores nor caches are known here.
func TestCountersOfThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("affinities are known on Linux")
	}
	for _, ranks := range []int{1, 2, 5, 40} {
		require.NoError(t, inproc.Run(ranks, func(c rma.Comm) error {
			l, err := New(c, Config{})
			if err != nil {
				return err
			}
			if want := min(ranks, runtime.NumCPU(), 16); l.counters.Len() != want {
				t.Errorf("%d ranks have %d counters, want %d", ranks, l.counters.Len(), want)
			}
			return l.Free()
		}))
	}
	require.NoError(t, inproc.RunNodes(2, 3, func(c rma.Comm) error {
		l, err := New(c, Config{})
		if err != nil {
			return err
		}
		if l.counters.Len() != 2 {
			t.Errorf("two nodes have %d counters, want one each", l.counters.Len())
		}
		return l.Free()
	}))
}
