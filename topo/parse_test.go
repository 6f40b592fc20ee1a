package topo

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text   string
		levels []Level
		size   int
		again  string // String, where it is not text
	}{
		{"rack:2 node:4 numa:2 core:4", []Level{{"machine", 1}, {"rack", 2}, {"node", 8}, {"numa", 16}, {"core", 64}}, 64, ""},
		{"node:2 core:2 rank:4", []Level{{"machine", 1}, {"node", 2}, {"core", 4}}, 16, ""},
		{"node:2 core:2 pu:4", []Level{{"machine", 1}, {"node", 2}, {"core", 4}}, 16, "node:2 core:2 rank:4"},
		{"machine:1 node:3", []Level{{"machine", 1}, {"node", 3}}, 3, "node:3"},
		{"rank:8", []Level{{"machine", 1}}, 8, ""},
		{"machine:1", []Level{{"machine", 1}}, 1, "rank:1"},
		{"node:3 core:2 by:node", []Level{{"machine", 1}, {"node", 3}, {"core", 6}}, 6, ""},
		{"node:3 rank:2 by:node", []Level{{"machine", 1}, {"node", 3}}, 6, ""},
		{"node:3 core:2 by:core", []Level{{"machine", 1}, {"node", 3}, {"core", 6}}, 6, "node:3 core:2"},
		{"node:3 core:2 by:machine", []Level{{"machine", 1}, {"node", 3}, {"core", 6}}, 6, "node:3 core:2"},
		{"rack:2 node:2 numa:2 rank:3 by:numa", []Level{{"machine", 1}, {"rack", 2}, {"node", 4}, {"numa", 8}}, 24, ""},
		{"island:2 switch:3 node:1", []Level{{"machine", 1}, {"island", 2}, {"switch", 6}, {"node", 6}}, 6, ""},
	} {
		topo, err := Parse(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.levels, topo.Levels(), c.text)
		require.Equal(t, c.size, topo.Size(), c.text)
		if c.again == "" {
			c.again = c.text
		}
		require.Equal(t, c.again, topo.String())
		checkInvariants(t, topo)
	}
	topo, err := Parse("rack:2 node:4 numa:2 core:4")
	require.NoError(t, err)
	level, ok := topo.Find("numa")
	require.True(t, ok)
	require.Equal(t, 3, level)
	require.Equal(t, 9, topo.Element(37, level))
	require.Equal(t, []int{36, 37, 38, 39}, topo.Ranks(level, 9))
	require.Equal(t, "1", topo.Label(level, 9))
	_, ok = topo.Find("cache")
	require.False(t, ok)
	require.Equal(t, Set(""), topo.CPUs(3))
}

func TestParseErrors(t *testing.T) {
	const end = ": bad description of the machine"
	for text, want := range map[string]string{
		" ":                         `topo: the description is empty; write for example "node:2 core:4", or "rank:8" for no levels`,
		"node:2 numa:x":             `topo: level 2 "numa:x": count must be a positive integer below 16777216`,
		"node:0":                    `topo: level 1 "node:0": count must be a positive integer below 16777216`,
		"node:-1":                   `topo: level 1 "node:-1": count must be a positive integer below 16777216`,
		"node:":                     `topo: level 1 "node:": count must be a positive integer below 16777216`,
		"node:2 numa":               `topo: level 2 "numa": want a name and a count, such as "numa:2"`,
		"node:2 :4":                 `topo: level 2 ":4": a name is a lower-case letter and then letters, digits, '-' or '_'`,
		"NUMANode:2":                `topo: level 1 "NUMANode:2": a name is a lower-case letter and then letters, digits, '-' or '_'`,
		"node:2 rank:2 core:2":      `topo: level 2 "rank:2": ranks per element come after the levels, and only by: after them`,
		"node:2 machine:1":          `topo: level 2 "machine:1": there is one machine, and it comes first`,
		"machine:2 node:2":          `topo: level 1 "machine:2": there is one machine, and it comes first`,
		"node:2 node:2":             `topo: level 2 "node:2": a level of that name has come before; give each level a name of its own`,
		"node:2 by:rack":            `topo: level 2 "by:rack": no level "rack" is written before; there are: machine, node`,
		"node:2 by:node core:2":     `topo: level 2 "by:node": how ranks are dealt comes last`,
		"by:2":                      `topo: level 1 "by:2": no level "2" is written before; there are: machine`,
		"node:2 by:":                `topo: level 2 "by:": no level "" is written before; there are: machine, node`,
		"node:2 rank:2 core:2 by:x": `topo: level 2 "rank:2": ranks per element come after the levels, and only by: after them`,
		"core:2 node:2":             `topo: level 2 "node:2": a node cannot be inside a core; write levels from the outermost to the innermost`,
		"node:99999 core:9999":      `topo: level 2 "core:9999": the counts multiply to more than 16777216 ranks`,
		"node:99999999999999999999": `topo: level 1 "node:99999999999999999999": count must be a positive integer below 16777216`,
		"a:1 b:1 c:1 d:1 e:1 f:1 g:1 h:1 i:1 j:1 k:1 l:1 m:1 n:1 o:1 p:1": `topo: level 16 "p:1": more than 16 levels`,
	} {
		topo, err := Parse(text)
		require.Nil(t, topo, text)
		require.EqualError(t, err, want+end, text)
		require.ErrorIs(t, err, ErrTopology)
	}
}

func TestFits(t *testing.T) {
	topo, err := Parse("node:2 numa:2 core:2")
	require.NoError(t, err)
	require.NoError(t, topo.Fits(8))
	require.NoError(t, topo.Fits(6), "places may be free")
	require.EqualError(t, topo.Fits(9), "topo: topology has 8 places, the job has 9 ranks: start at most 8 ranks, or describe 2 times as many per innermost element (rank:2 if none was written): bad description of the machine")
	require.EqualError(t, topo.Fits(0), "topo: a job of 0 ranks, want at least 1: bad description of the machine")
	// The advice is one that can be followed.
	for ranks := 9; ranks < 40; ranks++ {
		more, err := Parse(fmt.Sprintf("node:2 numa:2 core:2 rank:%d", (ranks+7)/8))
		require.NoError(t, err)
		require.NoError(t, more.Fits(ranks))
	}
}

// TestFor has the first ranks of every shape where they are in the whole.
func TestFor(t *testing.T) {
	for name, topo := range shapes(t) {
		for _, size := range []int{1, 2, 3, topo.Size() / 2, topo.Size() - 1} {
			if size < 1 || size > topo.Size() {
				continue
			}
			part, err := topo.For(size)
			require.NoError(t, err)
			checkInvariants(t, part)
			require.Equal(t, size, part.Size())
			again, err := topo.For(size)
			require.NoError(t, err)
			require.Same(t, part, again, "ranks of one process share it")
			for i := range topo.Levels() {
				for r := range size {
					e := part.Element(r, i)
					require.Equal(t, topo.Element(r, i), e, name)
					require.Equal(t, topo.Label(i, e), part.Label(i, e))
					require.Equal(t, topo.Merged(i, e), part.Merged(i, e))
				}
			}
		}
	}
	topo := build(t, at(0, "0", "0"), at(0, "0", "1"), at(0, "1", "2-3"), at(0, "1", "2"), at(1, "0", "0"))
	whole, err := topo.For(5)
	require.NoError(t, err)
	require.Same(t, topo, whole)
	view, err := topo.Pick("numa")
	require.NoError(t, err)
	part, err := view.For(3)
	require.NoError(t, err)
	require.Equal(t, []Level{{"machine", 1}, {"numa", 2}}, part.Levels())
	require.Equal(t, "n01/1", part.Label(1, 1))
	require.Equal(t, Set("2-3"), part.CPUs(2))
	require.Contains(t, part.Notes(), "3 of 5 places are used: there are no more ranks")
	_, err = view.For(6)
	require.ErrorIs(t, err, ErrTopology)
}

// TestSize holds the tables of a large job to the promise of the package comment.
func TestTablesAreSmall(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	topo, err := Parse("rack:16 node:64 numa:4 core:16")
	require.NoError(t, err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Equal(t, 65536, topo.Size())
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(4<<20), "bytes for 65,536 ranks")
	checkInvariants(t, topo)
	core := len(topo.Levels()) - 1
	require.Zero(t, testing.AllocsPerRun(100, func() { topo.Element(40000, core) }))
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"rack:2 node:4 numa:2 core:4", "node:2 core:3 rank:2 by:node", "rack:2 node:3 by:rack", "rank:3", "node:2 rank:2", "core:1 node:1", "x:0", "machine:1 a:2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 40 {
			return
		}
		topo, err := Parse(text)
		if err != nil {
			require.ErrorIs(t, err, ErrTopology)
			return
		}
		if topo.Size() > 5000 {
			return
		}
		checkInvariants(t, topo)
		again, err := Parse(topo.String())
		require.NoError(t, err)
		require.Equal(t, topo.levels, again.levels)
		b, err := json.Marshal(topo)
		require.NoError(t, err)
		again, err = Read(b)
		require.NoError(t, err)
		require.Equal(t, topo.levels, again.levels)
	})
}

// checkInvariants checks what the comment of Topology promises of every one.
func checkInvariants(t *testing.T, topo *Topology) {
	t.Helper()
	levels := topo.Levels()
	require.Equal(t, Level{"machine", 1}, levels[0])
	for i, l := range levels {
		require.Equal(t, l.Elements, topo.Elements(i))
		found, ok := topo.Find(l.Name)
		require.True(t, ok && found == i, "names are unique")
		seen, next := 0, 0
		for r := range topo.Size() {
			e := topo.Element(r, i)
			require.LessOrEqual(t, e, next, "numbered by lowest rank")
			next = max(next, e+1)
		}
		require.Equal(t, l.Elements, next)
		for e := range l.Elements {
			ranks := topo.Ranks(i, e)
			require.NotEmpty(t, ranks)
			require.True(t, slices.IsSorted(ranks))
			seen += len(ranks)
			for _, r := range ranks {
				if topo.Element(r, i) != e || i > 0 && topo.Element(r, i-1) != topo.Element(ranks[0], i-1) {
					t.Fatalf("level %d: rank %d of element %d is in element %d, or levels do not nest", i, r, e, topo.Element(r, i))
				}
			}
			require.NotEmpty(t, topo.Label(i, e))
		}
		require.Equal(t, topo.Size(), seen)
	}
	checkMaps(t, topo)
}

func TestDealtRoundRobin(t *testing.T) {
	topo, err := Parse("rack:2 node:2 numa:2 rank:2 by:node")
	require.NoError(t, err)
	checkInvariants(t, topo)
	require.Equal(t, []int{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}, elements(t, topo, "node"))
	require.Equal(t, []int{0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1}, elements(t, topo, "rack"))
	require.Equal(t, []int{0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7}, elements(t, topo, "numa"), "the first places of a node first")
	var labels []string
	for e := range topo.Elements(3) {
		labels = append(labels, topo.Label(3, e))
	}
	require.Equal(t, []string{"0", "0", "0", "0", "1", "1", "1", "1"}, labels, "positions in the node")

	topo, err = Parse("rack:2 node:2 rank:2 by:rack")
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 0, 1, 2, 3, 2, 3}, elements(t, topo, "node"))
	require.Equal(t, []int{0, 1, 0, 1, 0, 1, 0, 1}, elements(t, topo, "rack"))
	require.Equal(t, "rack:2 node:2 rank:2 by:rack", topo.String())
}
