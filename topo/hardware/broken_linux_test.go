package hardware

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/topo"
	"github.com/rmalock/rmalock/topo/discover"
)

func TestEmptyMachine(t *testing.T) {
	root := t.TempDir()
	tree := replay(t, root, 2, "0", "1")
	require.Equal(t, []topo.Level{{Name: "machine", Elements: 1}, {Name: "node", Elements: 2}}, tree.Levels())
	require.Equal(t, topo.Set("1"), tree.CPUs(3))
	require.Len(t, tree.Notes(), 2)
	require.Contains(t, tree.Notes()[0], "no description of NUMA nodes, taken for flat inside the node: open "+root)
	require.Equal(t, "left out group, numa, cache, core: no rank knows its place there", tree.Notes()[1])

	require.NoError(t, os.MkdirAll(filepath.Join(root, "sys/devices/system/node/power"), 0o755))
	require.Contains(t, replay(t, root, 1, "0").Notes()[0], "has no NUMA node")
}

// TestBrokenMachines breaks files of a machine; whatever they hold, the levels
// concerned are unknown, the others stay, and a note says what is wrong.
func TestBrokenMachines(t *testing.T) {
	const node = "sys/devices/system/node/node1/"
	all := []topo.Span{{Level: "group", IDs: "0"}, {Level: "numa", IDs: "1"}, {Level: "cache", IDs: "1"}, {Level: "core", IDs: "3"}}
	without := func(levels ...string) []topo.Span {
		out := slices.Clone(all)
		for i := range out {
			if slices.Contains(levels, out[i].Level) {
				out[i].IDs = ""
			}
		}
		return out
	}
	remove := func(t *testing.T, path string) { require.NoError(t, os.RemoveAll(path)) }
	unreadable := func(t *testing.T, path string) { // to root too
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.Mkdir(path, 0o755))
	}
	write := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o644)) }
	}
	eachCPU := func(f func(*testing.T, string)) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			for _, cpu := range []string{"cpu1", "cpu3", "cpu5", "cpu7"} {
				f(t, strings.Replace(path, "cpu*", cpu, 1))
			}
		}
	}
	for _, c := range []struct {
		name, path string
		damage     func(*testing.T, string)
		want       []topo.Span
		note       string
	}{
		{"garbage in the list of processors", "cpulist", write("0-x\x00"), all, ""},
		{"garbage in a core's number", "cpu3/topology/core_id", write("many"), without("core"), "failed to read int from file"},
		{"no core's number", "cpu3/topology/core_id", remove, without("core"), "no such file"},
		{"core's number unreadable", "cpu3/topology/core_id", unreadable, without("core"), "is a directory"},
		{"no topology", "cpu*/topology", eachCPU(remove), without("core"), "no such file"},
		{"no caches", "cpu*/cache", eachCPU(remove), without("cache"), "no cache with processors 3"},
		{"empty cache level", "cpu3/cache/index3/level", write(""), without("cache"), "caches of NUMA node 1 are unreadable: runtime error"},
		{"garbage in a cache level", "cpu*/cache/index3/level", eachCPU(write("deep\n")), all, "Unable to parse int"},
		{"empty cache sizes", "cpu*/cache/index3/size", eachCPU(write("")), without("cache"), "caches of NUMA node 1 are unreadable: runtime error"},
		{"cache unreadable", "cpu3/cache", func(t *testing.T, path string) { remove(t, path); write("x")(t, path) }, without("cache"), "not a directory"},
		{"no distances", "distance", remove, all, "distances of NUMA node 1 are unreadable: open"},
		{"garbage in distances", "distance", write("10 far\n"), all, `distances of NUMA node 1 are unreadable: "far" is not a distance`},
		{"distances unreadable", "distance", unreadable, all, "is a directory"},
		{"too few distances", "distance", write("10\n"), all, ""},
		{"an offline processor", "cpu3/online", write("0\n"), without("group", "numa", "core"), "no group, numa, core with processors 3"},
		{"only the list of processors", "cpu*", eachCPU(remove), without("cache", "core"), "no cache, core with processors 3"},
		{"no processors", "", func(t *testing.T, path string) { remove(t, path); unreadable(t, path) }, without("group", "numa", "cache", "core"), "no group, numa, cache, core with processors 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := recorded(t, "server")
			c.damage(t, filepath.Join(root, node+c.path))
			p, err := discover.Local(discover.Options{Root: root, CPUs: "3"})
			require.NoError(t, err)
			require.Equal(t, c.want, p.Inside)
			if c.note == "" {
				return
			}
			require.Contains(t, strings.Join(p.Notes, "\n"), c.note)
			tree := build(t, p)
			require.Contains(t, strings.Join(tree.Notes(), "\n"), c.note, "kept in the topology")
		})
	}
}

func TestListOfProcessorsAlone(t *testing.T) {
	root := recorded(t, "server")
	node := filepath.Join(root, "sys/devices/system/node/node1")
	for _, cpu := range []string{"cpu1", "cpu3", "cpu5", "cpu7"} {
		require.NoError(t, os.RemoveAll(filepath.Join(node, cpu)))
	}
	for text, note := range map[string]string{
		"garbage\n":   `processors of NUMA node 1 are unreadable: topo: list "garbage": "garbage" is neither`,
		"0-9999999\n": "cpulist has 10000000 processors",
		"\x00":        "is neither a number nor a range",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(node, "cpulist"), []byte(text), 0o644))
		p, err := discover.Local(discover.Options{Root: root, CPUs: "3"})
		require.NoError(t, err)
		require.Equal(t, []topo.Span{{Level: "group", IDs: ""}, {Level: "numa", IDs: ""}, {Level: "cache", IDs: ""}, {Level: "core", IDs: ""}}, p.Inside)
		require.Contains(t, strings.Join(p.Notes, "\n"), note)
	}
}

func TestProcessorInTwoNUMANodes(t *testing.T) {
	root := layOut(t, "numa 0 10 20\ncore 0 0 0\nnuma 1 20 10\ncore 0 0 0\ncore 1 1 0\n")
	p, err := discover.Local(discover.Options{Root: root, CPUs: "0"})
	require.NoError(t, err)
	require.Equal(t, topo.Set("0"), p.Inside[1].IDs)
	require.Contains(t, p.Notes, "processor 0 is listed in NUMA nodes 0 and 1: counted for the first")
}

// TestDamagedMachines damages one file after the other, until little is left.
func TestDamagedMachines(t *testing.T) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		root := layOut(t, "numa 0 10 20\ncore 0 0,1 0\nnuma 1 20 10\ncore 0 2 1\ncore 1 3 1\n")
		var files []string
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if path != root {
				files = append(files, path)
			}
			return err
		}))
		for range 40 {
			f := files[rnd.IntN(len(files))]
			text := []string{"", "\n", "-1\n", "x", "99999999999999999999\n", "0-1,3\n", "7\n", "\x00\xff"}[rnd.IntN(8)]
			if info, err := os.Stat(f); err == nil && (info.IsDir() || rnd.IntN(4) == 0) {
				require.NoError(t, os.RemoveAll(f))
			}
			_ = os.WriteFile(f, []byte(text), 0o644) // unless its directory is gone
			var places []topo.Place
			for _, mask := range []topo.Set{"0", "1", "2", "3", "1-2"} {
				p, err := discover.Local(discover.Options{Root: root, CPUs: mask})
				require.NoError(t, err)
				places = append(places, p)
			}
			build(t, places...)
		}
	}
}
