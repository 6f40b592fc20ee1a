package netmodel

import (
	"slices"
	"testing"

	"github.com/rmalock/rmalock/rma"
)

// serve has operations arrive at node 1 at one time, one after the other, and returns when they
// take effect.
func serve(n *Net, kinds []rma.Kind, word func(i int) uint64) []int64 {
	var out []int64
	for i, k := range kinds {
		out = append(out, n.Serve(10_000, 0, 1, k, 1, word(i)))
	}
	return out
}

func times(k rma.Kind, n int) []rma.Kind { return slices.Repeat([]rma.Kind{k}, n) }

// READs of one line follow each other by lineReadNs, those of others do not, and a quiet READ
// takes no longer for it.
func TestHotLine(t *testing.T) {
	m := load1(t, "cx4")
	line := int64(m.Value("lineReadNs"))
	last := func(m *Machine, word func(i int) uint64) int64 {
		return serve(network(t, m, at(1, 1)), times(rma.KindGet, 100), word)[99]
	}
	spread := func(i int) uint64 { return uint64(8 * i) }
	hot := func(i int) uint64 { return uint64(i % 8) }
	cold := last(m, spread)
	if got := last(m, hot); got < 10_000+99*line || got > cold+99*line {
		t.Errorf("the last of 100 READs of a line at %d, and of 100 lines at %d; %d ns between two of a line", got, cold, line)
	}
	if got := last(load1(t, "cx3"), hot); got != last(load1(t, "cx3"), spread) {
		t.Errorf("cx3: a line is read last at %d", got)
	}
	_, quiet := ping(t, m, at(1, 1), 1, rma.KindGet, 8)
	if quiet != m.Value("rttNs.READ")/1e3 {
		t.Errorf("a quiet READ takes %g us", quiet)
	}
	// A line is as good as new when nobody has read it for that long.
	n := network(t, m, at(1, 1))
	first := n.Serve(10_000, 0, 1, rma.KindGet, 1, 0)
	n.Serve(10_010, 0, 1, rma.KindGet, 1, 64)
	if got := n.Serve(20_000, 0, 1, rma.KindGet, 1, 0); got-20_000 != first-10_000 {
		t.Errorf("a READ of a line that rested takes effect %d after it came, the first %d", got-20_000, first-10_000)
	}
}

// With holBlocking a READ waits while the atomics before it wait for a lane, and not while they
// are at work; without, never.
func TestHeadOfLine(t *testing.T) {
	m := load1(t, "cx4")
	lanes, word := int(m.Value("atomicLanes")), int64(m.Value("wordNs"))
	free := with(t, m, "holBlocking", 0)
	for _, x := range []struct {
		m           *Machine
		atomics     int
		least, most int64
	}{
		{m, lanes, 10_000, 10_000 + word}, // as many as lanes: all are at work
		{m, lanes + 1, 10_000 + word, 10_000 + 2*word},
		{m, 3 * lanes, 10_000 + 2*word, 10_000 + 3*word},
		{free, 3 * lanes, 10_000, 10_500}, // their slots
	} {
		kinds := append(times(rma.KindCompareAndSwap, x.atomics), rma.KindGet)
		got := serve(network(t, x.m, at(1, 1)), kinds, func(i int) uint64 { return uint64(100 * i) })
		if read := got[len(got)-1]; read < x.least || read >= x.most {
			t.Errorf("a READ behind %d atomics, holBlocking %g, takes effect at %d, want %d to %d",
				x.atomics, x.m.Value("holBlocking"), read, x.least, x.most)
		}
	}
}

// Words in the NIC's memory have an atomic unit as quick as C6 measured, where there is such
// memory.
func TestDeviceMemory(t *testing.T) {
	for name, want := range map[string]int64{"cx6": 115, "cx4": 435} {
		n := network(t, load1(t, name), at(1, 1))
		got := serve(n, times(rma.KindFetchAndOp, 51), func(int) uint64 { return Device + 5 })
		if each := (got[50] - got[0]) / 50; each != want {
			t.Errorf("%s: %d ns between atomics on a word in NIC memory, want %d", name, each, want)
		}
	}
}

// Coroutines of a core share its CPU: what one posts delays the others, and each change takes
// switchNs. Threads of a core do not.
func TestCoroutinesShareACore(t *testing.T) {
	m := load1(t, "cx4")
	post, change := int64(m.Value("postNs")+m.Value("doorbellNs")), int64(m.Value("switchNs"))
	p := at(4, 1)
	p.Core = []int{0, 0, 1, 1, 0}
	p.Coroutines = true
	post3 := func(p Placement) [3]int64 {
		n := network(t, m, p)
		var free [3]int64
		for i, r := range []int{0, 1, 2} {
			free[i], _ = n.Issue(0, r, 4, rma.KindGet, 1, true)
		}
		return free
	}
	if got, want := post3(p), [3]int64{post, 2*post + change, post}; got != want {
		t.Errorf("three post at once, two of a core: CPUs free at %v, want %v", got, want)
	}
	n := network(t, m, p)
	if got, want := n.Woken(0, 1), change; got != want {
		t.Errorf("a coroutine is woken by another in %d, want %d", got, want)
	}
	if got, want := n.Near(0, 1), int64(m.Value("ownAtomicNs")); got != want {
		t.Errorf("a word of another coroutine's cache takes %d, want %d", got, want)
	}
	p.Coroutines = false
	if got, want := post3(p), [3]int64{post, post, post}; got != want {
		t.Errorf("three threads post at once: CPUs free at %v, want %v", got, want)
	}
}

// A server takes one message after the other.
func TestServer(t *testing.T) {
	m := load1(t, "cx3")
	p := at(2, 2)
	p.Servers = []int{2}
	n := network(t, m, p)
	var got [2][3]int64
	for to := range got {
		for i := range got[to] {
			got[to][i] = n.Serve(10_000, 0, 2+to, Send, 1, 0)
		}
	}
	each := int64(m.Value("pollNs") + m.Value("serverNs"))
	if d := got[0][2] - got[0][1]; d != each {
		t.Errorf("%d ns between two messages at a server, want %d", d, each)
	}
	if d := got[1][2] - got[1][1]; d != int64(m.Value("pollNs")) {
		t.Errorf("%d ns between two messages at a client", d)
	}
}

// Connections are those of pairs: of a thread towards a node or towards each thread there, of
// the coroutines of a core, of a process.
func TestPairs(t *testing.T) {
	m := load1(t, "cx3")
	process, core := at(4, 4, 1), at(4, 4, 1)
	process.Pair = []int{0, 0, 0, 0, 1, 1, 1, 1, 2}
	core.Pair = []int{0, 0, 1, 1, 2, 2, 3, 3, 4}
	each := at(4, 4, 1)
	each.EachRank = true
	for _, x := range []struct {
		name       string
		p          Placement
		here, last int // at the nodes 0 and 2, when all ranks of 0 and 1 have reached all nodes
	}{
		{"thread", at(4, 4, 1), 2*4 + 4 + 4 + 4, 8},
		{"core", core, 2*2 + 2 + 2 + 2, 4},
		{"process", process, 2*1 + 1 + 1 + 1, 2},
		{"thread pair", each, 2*16 + 16 + 16 + 4, 8},
	} {
		n := network(t, m, x.p)
		for range 2 {
			for r := range 8 {
				for _, to := range []int{0, 4, 8} {
					n.Issue(0, r, to, rma.KindGet, 1, true)
				}
			}
		}
		if a, b := n.Live(0), n.Live(2); a != x.here || b != x.last {
			t.Errorf("%s: %d and %d connections, want %d and %d", x.name, a, b, x.here, x.last)
		}
		one, limit := n.Connection(0, 4)
		two, _ := n.Connection(1, 4)
		if shared := one == two; shared != (x.p.Pair != nil) || limit != 16*int(n.qps[1]) {
			t.Errorf("%s: ranks 0 and 1 share a connection: %v, with %d outstanding", x.name, shared, limit)
		}
	}
	for why, p := range map[string]Placement{
		"a pair on two nodes": {Node: []int{0, 1}, Pair: []int{0, 0}},
		"a pair too high":     {Node: []int{0, 1}, Pair: []int{0, 2}},
		"too few pairs":       {Node: []int{0, 1}, Pair: []int{0}},
		"no such server":      {Node: []int{0, 1}, Servers: []int{2}},
	} {
		if _, err := New(m, p); err == nil {
			t.Errorf("%s: no error", why)
		}
	}
}

// Jitter spreads flights evenly about what they were, and follows its seed.
func TestJitter(t *testing.T) {
	m := load1(t, "cx6")
	flights := func(seed uint64) []int64 {
		n := network(t, m, at(1, 1))
		n.Jitter(0.1, seed)
		var out []int64
		for i := range int64(2000) {
			free, arrives := n.Issue(i*10_000, 0, 1, rma.KindGet, 1, true)
			out = append(out, arrives-free)
		}
		return out
	}
	n := network(t, m, at(1, 1))
	free, arrives := n.Issue(0, 0, 1, rma.KindGet, 1, true)
	still := float64(arrives - free)
	got := flights(1)
	sum := int64(0)
	for _, f := range got {
		sum += f
	}
	least, most := float64(slices.Min(got))/still, float64(slices.Max(got))/still
	if mean := float64(sum) / 2000 / still; mean < 0.99 || mean > 1.01 || least < 0.89 || least > 0.92 || most < 1.08 || most > 1.11 {
		t.Errorf("flights of %.3f to %.3f, mean %.3f of the quiet one", least, most, mean)
	}
	if !slices.Equal(got, flights(1)) || slices.Equal(got, flights(2)) {
		t.Error("flights do not follow their seed")
	}
}
