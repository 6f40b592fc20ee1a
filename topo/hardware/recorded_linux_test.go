package hardware

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
	"github.com/rmalock/rmalock/topo/discover"
)

// recorded lays a machine of testdata out as the sysfs of a system of its kind.
func recorded(t *testing.T, name string) (root string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".machine"))
	require.NoError(t, err)
	return layOut(t, string(text))
}

// layOut makes a sysfs of lines "numa ID DISTANCES..." and, after the NUMA node
// that they are in, "core ID PROCESSORS LAST-LEVEL-CACHE".
func layOut(t testing.TB, text string) (root string) {
	t.Helper()
	root = t.TempDir()
	type coreLine struct{ id, cpus, cache, node string }
	var cores []coreLine
	shares := map[string][]int{} // last-level cache -> processors
	node := ""
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0] == "#" || line[0] == '#':
		case f[0] == "numa":
			node = "sys/devices/system/node/node" + f[1]
			put(t, root, node+"/distance", strings.Join(f[2:], " "))
			put(t, root, node+"/cpulist", "")
		case f[0] == "core":
			c := coreLine{f[1], f[2], f[3], node}
			cores = append(cores, c)
			shares[c.cache] = append(shares[c.cache], members(t, c.cpus)...)
		default:
			t.Fatalf("machine line %q", line)
		}
	}
	lists := map[string][]int{}
	for i, c := range cores {
		lists[c.node] = append(lists[c.node], members(t, c.cpus)...)
		for _, cpu := range members(t, c.cpus) {
			dir := fmt.Sprintf("%s/cpu%d", c.node, cpu)
			put(t, root, dir+"/topology/core_id", c.id)
			for k, x := range []struct{ level, kind, id, share string }{
				{"1", "Data", strconv.Itoa(i), c.cpus},
				{"1", "Instruction", strconv.Itoa(i), c.cpus},
				{"2", "Unified", strconv.Itoa(i), c.cpus},
				{"3", "Unified", c.cache, string(topo.MakeSet(shares[c.cache]...))},
			} {
				index := fmt.Sprintf("%s/cache/index%d", dir, k)
				put(t, root, index+"/level", x.level)
				put(t, root, index+"/type", x.kind)
				put(t, root, index+"/id", x.id)
				put(t, root, index+"/size", "32K")
				put(t, root, index+"/shared_cpu_list", x.share)
			}
		}
	}
	for node, cpus := range lists {
		put(t, root, node+"/cpulist", string(topo.MakeSet(cpus...)))
	}
	return root
}

func members(t testing.TB, list string) []int {
	t.Helper()
	s, err := topo.ParseSet(list)
	require.NoError(t, err)
	return slices.Collect(s.All())
}

func put(t testing.TB, root, path, text string) {
	t.Helper()
	path = filepath.Join(root, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
}

// replay is the topology of ranks on nodes that are all the machine under root;
// masks are the affinities of the ranks of each node in turn.
func replay(t *testing.T, root string, nodes int, masks ...topo.Set) *topo.Topology {
	t.Helper()
	var places []topo.Place
	for n := range nodes {
		for _, m := range masks {
			p, err := discover.Local(discover.Options{Root: root, Host: fmt.Sprintf("n%d", n+1), CPUs: m})
			require.NoError(t, err)
			p.Node = n
			places = append(places, p)
		}
	}
	return build(t, places...)
}

// build is topo.Build without errors.
func build(t *testing.T, places ...topo.Place) *topo.Topology {
	t.Helper()
	tree, err := topo.Build(places)
	require.NoError(t, err)
	return tree
}

// elements lists the elements of all ranks at a level.
func elements(tree *topo.Topology, level int) (out []int) {
	for r := range tree.Size() {
		out = append(out, tree.Element(r, level))
	}
	return out
}

// golden compares what is printed of a topology with a file.
func golden(t *testing.T, name string, tree *topo.Topology) {
	t.Helper()
	var b strings.Builder
	require.NoError(t, tree.WriteTree(&b))
	b.WriteString("\n")
	require.NoError(t, tree.WriteRanks(&b))
	want, err := os.ReadFile(filepath.Join("testdata", name+".golden"))
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

// told is what a lock on a topology would be made with when nothing is set.
func told(t *testing.T, tree *topo.Topology) string {
	t.Helper()
	tree = tree.DefaultView()
	th := rmarw.Defaults(tree)
	c, err := rmarw.NewCounters(tree, th.TDC)
	require.NoError(t, err)
	var names []string
	for _, l := range tree.Levels() {
		names = append(names, l.Name)
	}
	return fmt.Sprintf("%s: T_DC %s at %v, T_L %v, T_R %d, T_W %d", strings.Join(names, " "), th.TDC, topo.MakeSet(c.Hosts()...), th.TL, th.TR, th.TW())
}

// inside says where one rank of the machine under root is.
func inside(t *testing.T, root string, mask topo.Set) []topo.Span {
	t.Helper()
	p, err := discover.Local(discover.Options{Root: root, CPUs: mask})
	require.NoError(t, err)
	require.Empty(t, p.Notes)
	return p.Inside
}

func TestLaptop(t *testing.T) {
	root := recorded(t, "laptop")
	// Threads of a core are one place; all processors are none.
	require.Equal(t, []topo.Span{{Level: "group", IDs: "0"}, {Level: "numa", IDs: "0"}, {Level: "cache", IDs: "0"}, {Level: "core", IDs: "1"}}, inside(t, root, "5"))
	require.Equal(t, []topo.Span{{Level: "group", IDs: "0"}, {Level: "numa", IDs: "0"}, {Level: "cache", IDs: "0"}, {Level: "core", IDs: "1"}}, inside(t, root, "1,5"))
	require.Equal(t, []topo.Span{{Level: "group", IDs: "0"}, {Level: "numa", IDs: "0"}, {Level: "cache", IDs: "0"}, {Level: "core", IDs: "0-3"}}, inside(t, root, ""))
	tree := replay(t, root, 1, "0", "4", "1", "2,6")
	require.Equal(t, []topo.Level{{Name: "machine", Elements: 1}, {Name: "node", Elements: 1}, {Name: "core", Elements: 3}}, tree.Levels())
	require.Equal(t, []int{0, 0, 1, 2}, elements(tree, 2))
	require.Equal(t, []string{"left out group, numa, cache: splits nothing that another level does not"}, tree.Notes())
}

func TestServer(t *testing.T) {
	root := recorded(t, "server")
	// Socket 1's core 0 is not socket 0's, though the system numbers both 0.
	require.Equal(t, []topo.Span{{Level: "group", IDs: "0"}, {Level: "numa", IDs: "1"}, {Level: "cache", IDs: "1"}, {Level: "core", IDs: "1"}}, inside(t, root, "1"))
	require.Equal(t, []topo.Span{{Level: "group", IDs: "0"}, {Level: "numa", IDs: "0-1"}, {Level: "cache", IDs: "0-1"}, {Level: "core", IDs: "0-7"}}, inside(t, root, "0-7"))
	require.Equal(t, []topo.Span{{Level: "group", IDs: "0"}, {Level: "numa", IDs: "0"}, {Level: "cache", IDs: "0"}, {Level: "core", IDs: "0,2,4,6"}}, inside(t, root, "0,2,4,6"))

	tree := replay(t, root, 2, "0", "1", "2", "3")
	require.Equal(t, []topo.Level{{Name: "machine", Elements: 1}, {Name: "node", Elements: 2}, {Name: "numa", Elements: 4}, {Name: "core", Elements: 8}}, tree.Levels())
	require.Equal(t, []int{0, 1, 0, 1, 2, 3, 2, 3}, elements(tree, 2))

	// Bound to sockets, as Open MPI does from three ranks on.
	tree = replay(t, root, 1, "0,2,4,6", "1,3,5,7", "0,2,4,6", "1,3,5,7")
	require.Equal(t, []topo.Level{{Name: "machine", Elements: 1}, {Name: "node", Elements: 1}, {Name: "numa", Elements: 2}}, tree.Levels())
	require.Equal(t, []int{0, 2}, tree.Ranks(2, 0))

	// Not bound, as MPICH leaves them.
	tree = replay(t, root, 1, "0-7", "0-7")
	require.Equal(t, []topo.Level{{Name: "machine", Elements: 1}, {Name: "node", Elements: 1}}, tree.Levels())
}

func TestFourNUMANodes(t *testing.T) {
	root := recorded(t, "numa4")
	require.Equal(t, []topo.Span{{Level: "group", IDs: "2"}, {Level: "numa", IDs: "3"}, {Level: "cache", IDs: "14"}, {Level: "core", IDs: "15"}}, inside(t, root, "15"))
	require.Equal(t, []topo.Span{{Level: "group", IDs: "2"}, {Level: "numa", IDs: "2-3"}, {Level: "cache", IDs: "10,12"}, {Level: "core", IDs: "11-12"}}, inside(t, root, "11-12"))
	var masks []topo.Set
	for c := range 16 {
		masks = append(masks, topo.MakeSet(c))
	}
	tree := replay(t, root, 2, masks...)
	require.Equal(t, []topo.Level{
		{Name: "machine", Elements: 1}, {Name: "node", Elements: 2}, {Name: "group", Elements: 4}, {Name: "numa", Elements: 8}, {Name: "cache", Elements: 16}, {Name: "core", Elements: 32},
	}, tree.Levels())
	require.Equal(t, "node:2 group:2 numa:2 cache:2 core:2", tree.String())
	require.Empty(t, tree.Notes())
	golden(t, "numa4", tree)
}

func TestOneNUMANodeOfTwoSockets(t *testing.T) {
	root := recorded(t, "interleaved")
	var cores []topo.Set
	for c := range 8 {
		cores = append(cores, inside(t, root, topo.MakeSet(c))[3].IDs)
	}
	require.Equal(t, []topo.Set{"0", "1", "2", "3", "0", "1", "2", "3"}, cores, "told apart by their first-level caches")
	tree := replay(t, root, 1, "0", "1", "2", "3")
	require.Equal(t, []topo.Level{{Name: "machine", Elements: 1}, {Name: "node", Elements: 1}, {Name: "cache", Elements: 2}, {Name: "core", Elements: 4}}, tree.Levels())
}

func TestCachesOfOneCoreAreNoLevel(t *testing.T) {
	// As some virtual machines show them: each core with a last-level cache of its own.
	root := layOut(t, "numa 0 10\ncore 0 0,1 0\ncore 1 2,3 1\n")
	require.Equal(t, []topo.Span{{Level: "group", IDs: "0"}, {Level: "numa", IDs: "0"}, {Level: "cache", IDs: "0"}, {Level: "core", IDs: "2"}}, inside(t, root, "3"))
	tree := replay(t, root, 1, "0", "2")
	require.Equal(t, []topo.Level{{Name: "machine", Elements: 1}, {Name: "node", Elements: 1}, {Name: "core", Elements: 2}}, tree.Levels())
}

func TestElevenNUMANodes(t *testing.T) {
	root := recorded(t, "eleven")
	for cpu, group := range map[int]topo.Set{0: "0", 1: "1", 2: "2", 3: "2", 4: "4", 6: "6", 7: "7", 8: "7", 9: "9", 10: "1"} {
		require.Equal(t, group, inside(t, root, topo.MakeSet(cpu))[0].IDs, "processor %d", cpu)
	}
}

func TestDistancesThatMakeNoGroups(t *testing.T) {
	ring := []numaNode{
		{id: 0, cpus: []int{0}, distances: []int{10, 15, 20, 15}}, {id: 1, cpus: []int{1}, distances: []int{15, 10, 15, 20}},
		{id: 2, cpus: []int{2}, distances: []int{20, 15, 10, 15}}, {id: 3, cpus: []int{3}, distances: []int{15, 20, 15, 10}},
	}
	require.Equal(t, map[int]int{0: 0, 1: 0, 2: 0, 3: 0}, groups(ring).Part)
	ring[2].distances = nil
	require.Equal(t, map[int]int{0: 0, 1: 0, 2: 0, 3: 0}, groups(ring).Part)
}

// TestThresholdsOfRecordedMachines is section 6 of rma-rw for jobs on machines as
// their systems describe them.
func TestThresholdsOfRecordedMachines(t *testing.T) {
	each := func(n int) (masks []topo.Set) {
		for c := range n {
			masks = append(masks, topo.MakeSet(c))
		}
		return masks
	}
	for _, c := range []struct {
		machine string
		nodes   int
		masks   []topo.Set
		want    string
	}{
		{"laptop", 1, each(4), "machine: T_DC 1 per core at 0-3, T_L [1000], T_R 4096, T_W 1000"},
		{"server", 1, each(8), "machine numa: T_DC 1 per core at 0-7, T_L [50 20], T_R 4096, T_W 1000"},
		{"server", 4, each(8), "machine node numa: T_DC 1 per node at 0,8,16,24, T_L [10 20 5], T_R 4096, T_W 1000"},
		{"server", 4, []topo.Set{"0-7", "0-7"}, "machine node: T_DC 1 per node at 0,2,4,6, T_L [20 50], T_R 4096, T_W 1000"}, // not bound
		{"numa4", 2, each(16), "machine node group: T_DC 1 per node at 0,16, T_L [10 20 5], T_R 4096, T_W 1000"},
		{"numa4", 100, []topo.Set{"0"}, "machine: T_DC 1 per node at 0-99, T_L [1000], T_R 6400, T_W 1000"}, // a rank each
	} {
		tree := replay(t, recorded(t, c.machine), c.nodes, c.masks...)
		require.Equal(t, c.want, told(t, tree), "%s, %d nodes", c.machine, c.nodes)
	}
}

// TestDefaultTDCOnOneNode has as many counters as cores that readers run on, as far as the
// machine and the ranks' binding tell, and at most 16.
func TestDefaultTDCOnOneNode(t *testing.T) {
	large := "numa 0 10\n" // 64 cores of two threads, eight of them to a cache
	for c := range 64 {
		large += fmt.Sprintf("core %d %d,%d %d\n", c, c, 64+c, c/8)
	}
	times := func(n int, masks ...topo.Set) (out []topo.Set) {
		for range n {
			out = append(out, masks...)
		}
		return out
	}
	each := func(from, to int) (out []topo.Set) {
		for c := from; c < to; c++ {
			out = append(out, topo.MakeSet(c))
		}
		return out
	}
	roots := map[string]string{"laptop": recorded(t, "laptop"), "server": recorded(t, "server"), "numa4": recorded(t, "numa4"), "interleaved": recorded(t, "interleaved"), "large": layOut(t, large)}
	for _, c := range []struct {
		machine string
		masks   []topo.Set
		tdc     string
		hosts   topo.Set
	}{
		{"laptop", each(0, 8), "1 per core", "0-3"},                      // two threads of each of four cores
		{"laptop", times(3, "1", "3"), "1 per core", "0-1"},              // more ranks than cores
		{"laptop", []topo.Set{"0,4"}, "1 per node", "0"},                 // one rank
		{"laptop", times(3, "0-7"), "3 per node", "0-2"},                 // not bound: a counter each
		{"laptop", times(16, "0-7"), "8 per node", "0,2,4,6,8,10,12,14"}, // at most one per processor
		{"laptop", times(16, "0-1"), "2 per node", "0,8"},
		{"server", times(4, "0,2,4,6", "1,3,5,7"), "4 per numa", "0-7"}, // bound to NUMA nodes
		{"server", times(8, "0,2,4,6", "1,3,5,7"), "4 per numa", "0-1,4-5,8-9,12-13"},
		{"numa4", each(0, 16), "1 per core", "0-15"},
		{"interleaved", each(0, 4), "1 per core", "0-3"},
		{"large", each(0, 16), "1 per core", "0-15"},
		{"large", each(0, 64), "2 per cache", "0,4,8,12,16,20,24,28,32,36,40,44,48,52,56,60"},
		{"large", each(0, 128), "2 per cache", "0,4,8,12,16,20,24,28,32,36,40,44,48,52,56,60"},
		{"large", times(64, "0-127"), "16 per node", "0,4,8,12,16,20,24,28,32,36,40,44,48,52,56,60"},
		{"large", append(each(0, 3), "4-5"), "4 per node", "0-3"}, // one that is not bound to a core
	} {
		tree := replay(t, roots[c.machine], 1, c.masks...)
		counters, err := rmarw.NewCounters(tree.DefaultView(), rmarw.TDC{})
		require.NoError(t, err)
		require.Equal(t, c.tdc, counters.TDC().String(), "%s %q", c.machine, c.masks)
		require.Equal(t, c.hosts, topo.MakeSet(counters.Hosts()...), "%s %q", c.machine, c.masks)
	}
	// On several nodes it is section 6's.
	tree := replay(t, roots["laptop"], 2, each(0, 4)...)
	require.Equal(t, "1 per node", rmarw.Defaults(tree).TDC.String())
}

// BenchmarkLocal reads a machine of 256 hardware threads.
func BenchmarkLocal(b *testing.B) {
	var text strings.Builder
	for n := range 8 {
		fmt.Fprintf(&text, "numa %d 10 12 12 12 32 32 32 32\n", n)
		for c := range 16 {
			cpu := n*16 + c
			fmt.Fprintf(&text, "core %d %d,%d %d\n", c, cpu, 128+cpu, cpu/8)
		}
	}
	root := layOut(b, text.String())
	for b.Loop() {
		if _, err := discover.Local(discover.Options{Root: root}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestEveryRecordedMachineIsRead fails on a machine that no test reads.
func TestEveryRecordedMachineIsRead(t *testing.T) {
	files, err := fs.Glob(os.DirFS("testdata"), "*.machine")
	require.NoError(t, err)
	require.Equal(t, []string{"eleven.machine", "interleaved.machine", "laptop.machine", "numa4.machine", "server.machine"}, files)
}

// TestThisMachine has the affinity and the hardware of the test's own process.
func TestThisMachine(t *testing.T) {
	if _, err := os.Stat("/sys/devices/system/node"); os.IsNotExist(err) {
		t.Skip("no NUMA nodes in this machine's sysfs")
	}
	p, err := discover.Local(discover.Options{})
	require.NoError(t, err)
	require.NotEmpty(t, p.CPUs)
	require.NotEmpty(t, p.Inside[1].IDs, "notes: %v", p.Notes)
}
