package topo

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sketch names the levels of a topology with their elements.
func sketch(topo *Topology) string {
	var b strings.Builder
	for i, l := range topo.Levels() {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(l.Name)
	}
	return b.String()
}

func TestPick(t *testing.T) {
	topo := shapes(t)["rack:2 node:4 numa:2 core:4"]
	view, err := topo.Pick("numa", "rack") // in any order
	require.NoError(t, err)
	require.Equal(t, []Level{{"machine", 1}, {"rack", 2}, {"numa", 16}}, view.Levels())
	checkInvariants(t, view)
	require.Equal(t, "rack:2 numa:8 rank:4", view.String())
	require.Equal(t, "7", view.Label(2, 15), "its position in the rack")
	require.Equal(t, 1, view.Up(2, 15))
	require.Equal(t, 8, view.Arity(1, 1))
	for e := range view.Elements(2) {
		require.Equal(t, topo.Ranks(3, e), view.Ranks(2, e), "elements keep their numbers")
		require.Equal(t, topo.Host(3, e), view.Host(2, e))
	}

	again, err := topo.Pick("rack", "numa")
	require.NoError(t, err)
	require.Same(t, view, again, "one view for all ranks of a process")
	coarser, err := view.Pick("numa")
	require.NoError(t, err)
	direct, err := topo.Pick("numa")
	require.NoError(t, err)
	require.Same(t, direct, coarser)

	flat, err := topo.Pick()
	require.NoError(t, err)
	require.Equal(t, []Level{{"machine", 1}}, flat.Levels())
	require.Equal(t, 64, flat.Arity(0, 0))
	checkInvariants(t, flat)
	all, err := topo.Pick("machine", "rack", "node", "numa", "core")
	require.NoError(t, err)
	require.Same(t, topo, all)
	require.Same(t, &topo.levels[3].of[0], &view.levels[2].of[0], "tables are shared")

}

func TestPickedLabelsSayWhereTheyWere(t *testing.T) {
	topo := shapes(t)["lopsided"]
	view, err := topo.Pick("numa")
	require.NoError(t, err)
	var labels []string
	for e := range view.Elements(1) {
		labels = append(labels, view.Label(1, e))
	}
	require.Equal(t, []string{"A/a/0", "A/a/1", "B/b/0", "B/b/1", "B/c/0", "A/d/0"}, labels)
	checkInvariants(t, view)
	require.Equal(t, "0", topo.Label(3, 0), "those of the whole stay")
}

func TestPickErrors(t *testing.T) {
	topo := shapes(t)["unequal"]
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"numa"}, `topo: no level is called "numa"; there are: machine, rack, node`},
		{[]string{"node", "Rack"}, `topo: no level is called "Rack"; there are: machine, rack, node`},
		{[]string{""}, `topo: no level is called ""; there are: machine, rack, node`},
		{[]string{"node", "node"}, `topo: level "node" is picked twice`},
	} {
		_, err := topo.Pick(c.names...)
		require.EqualError(t, err, c.want+": bad description of the machine")
		require.ErrorIs(t, err, ErrTopology)
	}
	view, err := topo.Pick("node")
	require.NoError(t, err)
	_, err = view.Pick("rack")
	require.EqualError(t, err, `topo: no level is called "rack"; there are: machine, node: bad description of the machine`, "a view has no more than it shows")
}

func TestDefaultView(t *testing.T) {
	for text, want := range map[string]string{
		"rank:8":                       "machine",
		"rank:1":                       "machine",
		"node:1 core:8":                "machine",            // a node that is the machine, cores of one rank
		"node:4":                       "machine",            // a rank a node
		"node:4 core:8":                "machine node",       // the paper's two levels
		"node:4 core:8 rank:2":         "machine node",       // no cores
		"node:4 cache:2 core:4":        "machine node",       // no caches
		"rack:2 node:4 core:16":        "machine rack node",  // the paper's three
		"rack:1 node:4 core:16":        "machine node",       // one rack is the machine
		"rack:4 node:1 core:16":        "machine node",       // a node a rack
		"rack:4 node:4":                "machine rack",       // racks of nodes of one rank
		"node:4 numa:2 core:8":         "machine node numa",  //
		"node:1 numa:2 core:8":         "machine numa",       // sockets of one node
		"node:4 numa:1 core:8":         "machine node",       //
		"node:4 group:2 numa:4 core:":  "machine node group", // the outermost inside
		"node:4 group:1 numa:4 core:":  "machine node numa",  //
		"node:4 numa:8":                "machine node",       // a rank each
		"spine:2 switch:4 node:8 c:16": "machine spine switch node",
		"numa:2 core:8":                "machine numa", // no nodes known: by the name
		"island:2 house:4 rank:2":      "machine island house",
	} {
		if strings.HasSuffix(text, ":") {
			text += "2"
		}
		topo, err := Parse(text)
		require.NoError(t, err)
		view := topo.DefaultView()
		require.Equal(t, want, sketch(view), text)
		checkInvariants(t, view)
		require.Same(t, view, topo.DefaultView())
	}
}

// TestSizeOfMany holds what ranks of one process make of a large topology to the
// promise that it is made once.
func TestManyViewsAreSmall(t *testing.T) {
	topo, err := Parse("rack:16 node:64 numa:4 core:16")
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	views, made := make([]*Topology, 1000), make([]*[]int32, 1000)
	for r := range views {
		views[r] = topo.DefaultView()
		made[r] = Derive(views[r], "a table", func() *[]int32 { b := make([]int32, views[r].Size()); return &b })
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1<<20), "bytes for views and tables of 1,000 of 65,536 ranks")
	require.Same(t, made[0], made[999])
	runtime.KeepAlive(views)
}
