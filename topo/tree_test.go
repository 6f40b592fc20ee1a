package topo

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares the tree and the table with testdata/name.golden.
func golden(t *testing.T, name string, topo *Topology) {
	t.Helper()
	var b strings.Builder
	require.NoError(t, topo.WriteTree(&b))
	b.WriteString("\n")
	require.NoError(t, topo.WriteRanks(&b))
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

func TestTreeAndTableGolden(t *testing.T) {
	for name, text := range map[string]string{
		"regular": "rack:2 node:4 numa:2 core:4",
		"flat":    "rank:8",
	} {
		topo, err := Parse(text)
		require.NoError(t, err)
		golden(t, name, topo)
	}
	var places []Place
	for r := range 24 { // round robin over six nodes, two NUMA nodes each
		places = append(places, at(r%6, Set(fmt.Sprint(r/6%2)), MakeSet(r/6)))
	}
	golden(t, "roundrobin", build(t, places...))
	golden(t, "unequal", build(t,
		at(0, "0", "0"), at(0, "0", "1"), at(0, "1", "2"), at(0, "1", "2-3"),
		at(1, "0", "0"), at(1, "0-1", "0-3"), at(1, "1", "3"),
		at(2, "0", "0"), at(2, "0", "1"), at(2, "1", "2"),
		at(3, "0", "0"), at(3, "0", "1"), at(3, "1", "2"),
		at(4, "0", "0"), at(4, "0", "1"), at(4, "1", "3"),
		at(9, "", "")))
}

func TestLinesFoldOnlyWhenAlike(t *testing.T) {
	same := func(a, b Place) string {
		var s strings.Builder
		require.NoError(t, build(t, at(0, "0", "0"), at(0, "0", "1"), a, b).WriteTree(&s))
		return s.String()
	}
	require.Contains(t, same(at(1, "0", "0"), at(1, "0", "1")), "node n[01-02] ×2")
	require.NotContains(t, same(at(1, "0", "0"), at(1, "0", "2")), "node n[01-02] ×2", "another core")
	require.NotContains(t, same(at(2, "0", "0"), at(2, "0", "1")), "×2  ranks 0-3", "another name than the next")
	require.NotContains(t, same(at(1, "0", "0"), at(1, "0", "0")), "node n[01-02] ×2", "another shape")
	require.NotContains(t, same(at(1, "0", "0"), at(2, "0", "1")), "node n[01-03] ×3", "another size")
}

func TestLabels(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"0", "1", true}, {"9", "10", true}, {"n09", "n10", true}, {"n9", "n10", true}, {"n01", "n2", false},
		{"n1", "m2", false}, {"n", "n", false}, {"", "", false}, {"any of 0-1", "any of 0-1", false},
		{"n999999999999", "n1000000000000", false}, {"0", "0", false}, {"1", "0", false},
	} {
		require.Equal(t, c.want, follows(c.a, c.b), "%q %q", c.a, c.b)
	}
	require.Equal(t, "0-3", labelRange("0", 4))
	require.Equal(t, "n[08-11]", labelRange("n08", 4))
	require.Equal(t, "0-12:4", rankList([]int{0, 4, 8, 12}))
	require.Equal(t, "0,4,8", rankList([]int{0, 4, 8}))
	require.Equal(t, "0-3", rankList([]int{0, 1, 2, 3}))
}

func TestJSON(t *testing.T) {
	b, err := json.MarshalIndent(build(t, at(0, "0", "0"), at(1, "0-1", "0-1"), at(0, "1", "1"), at(1, "", "")), "", " ")
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/small.json")
	if *update {
		require.NoError(t, os.WriteFile("testdata/small.json", append(b, '\n'), 0o644))
		return
	}
	require.NoError(t, err)
	require.Equal(t, string(want), string(b)+"\n")

	// Nothing known is an empty list and not null.
	topo, err := Parse("rank:1")
	require.NoError(t, err)
	b, err = json.Marshal(topo)
	require.NoError(t, err)
	require.Equal(t, `{"ranks":1,"levels":[{"name":"machine","count":1,"elements":[{"element":0,"label":"0","host":0,"ranks":"0"}]}],"cpus":[],"notes":[]}`, string(b))
}

// full refuses to be written to.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space")

func TestWriteErrors(t *testing.T) {
	topo, err := Parse("node:2 core:2")
	require.NoError(t, err)
	require.ErrorIs(t, topo.WriteTree(full{}), errFull)
	require.ErrorIs(t, topo.WriteRanks(full{}), errFull)
}
