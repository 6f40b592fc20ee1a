package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/topo"
)

// layout is the placement of ranks on nodes, of the backends inproc and sim.
type layout struct {
	ranks    []int
	nodes    int
	perNode  int
	topology string
	machine  string
	band     bool
	poll     []time.Duration

	memoryNodes int
	colocated   bool
	verbs       bool
	maskedSwap  bool
	qps         string
	coroutines  int
	loopback    []string
	servers     int
	messages    []string
	rankDelay   time.Duration
	stopNode    []time.Duration
	stopMemory  []time.Duration

	tree  *topo.Topology
	model bench.Machine
}

// simulatedPerNode is the number of ranks of a node in rma-rw, section 5.
const simulatedPerNode = 16

func (l *layout) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntSliceVar(&l.ranks, "ranks", []int{defaultRanks()}, "numbers of ranks of the inproc and sim backends")
	f.IntVar(&l.nodes, "nodes", 0, "number of nodes, with --per-node, instead of --ranks")
	f.IntVar(&l.perNode, "per-node", 0, "ranks of each node; fewer ranks than that are one node (default: all ranks for inproc, 16 for sim)")
	f.StringVar(&l.topology, "topology", "", "sim: the machine in words instead, such as \"rack:2 node:4 core:16\"; see rmalock topo")
	f.StringVar(&l.machine, "machine", "aries", "sim: the machine that is simulated: "+strings.Join(bench.Machines(), ", "))
	f.BoolVar(&l.band, "band", false, "sim: sweep the weak constants of the machine (default with --figure: true)")
	f.DurationSliceVar(&l.poll, "poll", nil, "sim: `first,longest` pause between polls of a far word (default 1us,100us, as in MPI jobs)")
	f.Lookup("poll").DefValue = "" // the text has it
	f.BoolVar(&l.colocated, "colocated", false, "sim: memory nodes lie on the nodes of the ranks, the first on the first")
	f.BoolVar(&l.verbs, "verbs", false, "sim: windows are on InfiniBand verbs and not on MPI, and polls have no pauses")
	f.BoolVar(&l.maskedSwap, "masked-swap", false, "sim: with --verbs a swap, whole or masked, is one operation of the card, and no loop")
	f.StringVar(&l.qps, "qps", string(bench.PerThread), "sim: connections to a node are of each thread, or shared per core or process; thread-pair: towards each thread there")
	f.IntVar(&l.coroutines, "coroutines", 0, "sim: ranks that are coroutines of one core (default: each has a core)")
	f.IntVar(&l.servers, "servers", 0, "sim: ranks, the last ones, whose CPU takes time for each message, as with --lock traditional:servers=N")
	f.StringSliceVar(&l.messages, "messages", nil, "sim: windows whose Puts into other ranks' words are messages, such as those of --lock traditional")
	f.StringSliceVar(&l.loopback, "loopback", nil, "sim: with --verbs, locks whose ranks reach the words of their own node through the NIC")
	f.DurationVar(&l.rankDelay, "rank-delay", 0, "sim: `time` by which operations on ranks of other nodes take longer, each way, than those on memory nodes")
	f.DurationSliceVar(&l.stopNode, "stop-node", nil, "sim: `times` at which the ranks of the last node stop, and for how long, as in 10ms,20ms")
	f.DurationSliceVar(&l.stopMemory, "stop-memory", nil, "sim: the same for memory nodes, where operations wait")
	complete(cmd, "machine", bench.Machines()...)
	complete(cmd, "qps", qpsNames()...)
	cmd.MarkFlagsMutuallyExclusive("ranks", "nodes", "topology")
	cmd.MarkFlagsMutuallyExclusive("per-node", "topology")
}

// simulatedFlags go with the backend sim alone.
var simulatedFlags = []string{"topology", "machine", "band", "poll", "colocated", "verbs", "masked-swap", "qps", "coroutines", "loopback", "servers", "messages", "rank-delay", "stop-node", "stop-memory"}

func qpsNames() (names []string) {
	for _, q := range bench.AllQPs() {
		names = append(names, string(q))
	}
	return names
}

// check reports what is wrong with the flags, and lists the numbers of ranks.
func (l *layout) check(cmd *cobra.Command, b *backend, figure bool) ([]int, error) {
	given, backend := cmd.Flags().Changed, b.name
	l.memoryNodes = b.memoryNodes
	for _, name := range simulatedFlags {
		if given(name) && backend != simulated {
			return nil, fmt.Errorf("--%s goes with --backend %s", name, simulated)
		}
	}
	for _, name := range []string{"nodes", "per-node"} {
		if given(name) && b.several() {
			return nil, fmt.Errorf("--%s goes with --backend %s or %s; in a job of several processes the launcher says where ranks are", name, goroutines, simulated)
		}
		if n, _ := cmd.Flags().GetInt(name); given(name) && n < 1 {
			return nil, fmt.Errorf("--%s is %d, want at least 1", name, n)
		}
	}
	if backend == processes {
		return []int{2}, nil // replaced by the size of the job
	}
	if b.several() {
		if len(l.ranks) != 1 {
			return nil, fmt.Errorf("--ranks has %d values, want one: the number of each process", len(l.ranks))
		}
		b.ranks = l.ranks[0]
	}
	if backend == simulated {
		if !given("band") {
			l.band = figure
		}
		if err := l.checkSimulated(); err != nil {
			return nil, err
		}
		if l.tree != nil {
			return []int{l.tree.Size()}, nil
		}
	}
	if l.nodes > 0 {
		if l.perNode == 0 {
			return nil, errors.New("--nodes wants --per-node too")
		}
		return []int{l.nodes * l.perNode}, nil
	}
	for _, n := range l.ranks {
		if n < 1 {
			return nil, fmt.Errorf("--ranks is %d, want at least 1", n)
		}
	}
	return l.ranks, nil
}

// checkSimulated reports what is wrong with the flags of a job in virtual time, and reads what they
// name.
func (l *layout) checkSimulated() (err error) {
	if l.perNode == 0 {
		l.perNode = simulatedPerNode
	}
	if l.model, err = bench.LoadMachine(l.machine); err != nil {
		return err
	}
	for name, times := range map[string][]time.Duration{"stop-node": l.stopNode, "stop-memory": l.stopMemory} {
		if times != nil && (len(times) != 2 || times[0] < 0 || times[1] <= 0) {
			return fmt.Errorf("--%s wants two durations, when and for how long, such as 10ms,20ms", name)
		}
	}
	v := l.setting()
	if err := v.Validate(); err != nil {
		return err
	}
	switch {
	case l.poll != nil && (len(l.poll) != 2 || l.poll[0] < 0 || l.poll[1] < max(l.poll[0], 1)):
		return errors.New("--poll wants two durations, the first pause and the longest, such as 1us,100us")
	case l.topology != "":
		tree, err := topo.Parse(l.topology)
		if err != nil {
			return err
		}
		if _, ok := tree.Find("node"); !ok {
			return fmt.Errorf("--topology %q has no level node, which says who shares memory", l.topology)
		}
		l.tree = tree
	}
	return nil
}

// fits reports whether a number of ranks fills its nodes.
func (l *layout) fits(ranks int) error {
	if l.tree == nil && l.perNode > 0 && ranks > l.perNode && ranks%l.perNode != 0 {
		return fmt.Errorf("%d ranks do not fill nodes of %d; see --per-node", ranks, l.perNode)
	}
	return nil
}

// nodesOf is the number of nodes for ranks.
func (l *layout) nodesOf(ranks int) int {
	if l.tree != nil {
		return l.tree.Elements(slices.IndexFunc(l.tree.Levels(), func(level topo.Level) bool { return level.Name == "node" })) // check has found it
	}
	if l.perNode == 0 || ranks <= l.perNode {
		return 1
	}
	return ranks / l.perNode
}

// where names the backend and the machine, as in the reports.
func (l *layout) where(backend string) string {
	text := "goroutines"
	if backend == simulated {
		text = l.model.Name() + ", simulated"
	}
	if backend == rdma {
		text += " on verbs"
	}
	switch {
	case l.tree != nil:
		text += ", " + l.topology
	case l.perNode > 0:
		text += fmt.Sprintf(", %d ranks a node", l.perNode)
	default:
		text += ", one node"
	}
	if l.poll != nil {
		text += fmt.Sprintf(", polls after %v to %v", l.poll[0], l.poll[1])
	}
	if l.memoryNodes > 0 {
		text += fmt.Sprintf(", memory nodes: %d", l.memoryNodes)
	}
	if l.colocated {
		text += " on the ranks' nodes"
	}
	if l.verbs {
		text += ", verbs"
	}
	if l.maskedSwap {
		text += " with masked swaps"
	}
	if q := bench.QPs(l.qps); q != bench.PerThread && q != "" {
		text += ", connections per " + l.qps
	}
	if l.servers > 0 {
		text += fmt.Sprintf(", servers: %d", l.servers)
	}
	if len(l.messages) > 0 {
		text += ", messages of " + strings.Join(l.messages, " and ")
	}
	if len(l.loopback) > 0 {
		text += ", loopback of " + strings.Join(l.loopback, " and ")
	}
	if l.rankDelay > 0 {
		text += fmt.Sprintf(", other nodes' ranks %v farther", l.rankDelay)
	}
	if l.stopNode != nil {
		text += fmt.Sprintf(", the last node stops at %v for %v", l.stopNode[0], l.stopNode[1])
	}
	if l.stopMemory != nil {
		text += fmt.Sprintf(", memory nodes stop at %v for %v", l.stopMemory[0], l.stopMemory[1])
	}
	if l.coroutines > 0 {
		text += fmt.Sprintf(", coroutines a core: %d", l.coroutines)
	}
	return text
}

// virtual is a job in virtual time.
func (l *layout) virtual(ranks int) (bench.Virtual, error) {
	tree := l.tree
	if tree == nil {
		var err error
		nodes := l.nodesOf(ranks)
		if tree, err = topo.Parse(fmt.Sprintf("node:%d rank:%d", nodes, ranks/nodes)); err != nil {
			return bench.Virtual{}, err
		}
	}
	v := l.setting()
	v.Topology = tree
	for r := ranks - l.servers; r < ranks; r++ {
		v.Servers = append(v.Servers, r)
	}
	if l.poll != nil {
		v.PauseFirst, v.PauseLast = l.poll[0], l.poll[1]
	}
	return v, nil
}

// setting is a job in virtual time but for its ranks.
func (l *layout) setting() bench.Virtual {
	return bench.Virtual{
		Machine: l.model, Band: l.band, MemoryNodes: l.memoryNodes, Colocated: l.colocated,
		Verbs: l.verbs, MaskedSwap: l.maskedSwap, QPs: bench.QPs(l.qps), Coroutines: l.coroutines, Loopback: l.loopback,
		Messages: l.messages, RankDelay: l.rankDelay, NodeStop: stop(l.stopNode), MemoryStop: stop(l.stopMemory),
	}
}

// stop reads the two times of a stop; none is no stop.
func stop(times []time.Duration) bench.Stop {
	if times == nil {
		return bench.Stop{}
	}
	return bench.Stop{At: times[0], For: times[1]}
}

// simBar is a progress bar over the runs of a sweep in virtual time; nil is none.
type simBar struct {
	p     *progress
	total int
}

// newSimBar returns nil unless out is a terminal and a bar is wanted: a job in real time lasts as
// long as the flags say.
func newSimBar(out io.Writer, wanted bool, runs int) *simBar {
	p := newProgress(out)
	if p == nil || !wanted {
		return nil
	}
	return &simBar{p, runs}
}

// next begins a run, the i-th, and returns what shows its progress.
func (b *simBar) next(i int, point bench.Point) func(float64) {
	if b == nil {
		return nil
	}
	const steps = 1000
	b.p.bar = progressbar.NewOptions64(steps,
		progressbar.OptionSetWriter(b.p.out),
		progressbar.OptionSetDescription(fmt.Sprintf("%d/%d %s %s P=%d", i+1, b.total, point.Config.Mode, point.Config.Lock, point.Ranks)),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	_ = b.p.bar.RenderBlank()
	return func(done float64) { _ = b.p.bar.Set64(int64(done * steps)) } // the run goes on without a bar
}

func (b *simBar) clear() {
	if b != nil {
		b.p.clear()
	}
}
