package netmodel

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/rma"
)

// What the simulator asks of a network.
var _ interface {
	Name() string
	Issue(now int64, from, to int, kind rma.Kind, words int, first bool) (free, arrives int64)
	Serve(now int64, from, to int, kind rma.Kind, words int, word uint64) (effect int64)
	Reply(now int64, from, to int, kind rma.Kind, words int) (done int64)
	Near(owner, rank int) int64
	Woken(writer, waiter int) int64
	Barrier(n int) int64
} = (*Net)(nil)

func TestPlacementRefused(t *testing.T) {
	m := load1(t, "cx3")
	for want, p := range map[string]Placement{
		"no ranks":               {},
		"rank 1 is on node -1":   {Node: []int{0, -1}},
		"level 1 has groups":     {Node: []int{0, 1}, Groups: [][]int{{0, 0}, {0}}},
		"cores of 1 of 2 ranks":  {Node: []int{0, 1}, Core: []int{0}},
		"sockets of 3 of 2":      {Node: []int{0, 1}, Socket: []int{0, 0, 0}},
		"-1 connections":         {Node: []int{0, 1}, QPs: -1},
		"rank 0 is on node 1677": {Node: []int{1 << 24}},
	} {
		if _, err := New(m, p); !errors.Is(err, ErrPlacement) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// A server gives calls in the order of time what first come, first served gives, and
// one out of order no longer a wait than what was there.
func TestServerIsFirstComeFirstServed(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var s server
	var now, free int64
	for range 10000 {
		now += rng.Int64N(200)
		work := rng.Int64N(190)
		free = max(free, now) + work
		if got := s.take(now, work); got != free {
			t.Fatalf("at %d, %d long: done at %d, want %d", now, work, got, free)
		}
	}
	s = server{}
	for _, at := range []int64{100, 300, 500} { // a rank posts ahead of the clock
		s.take(at, 45)
	}
	if got := s.take(110, 45); got != 110+45+45 {
		t.Errorf("one that came between is done at %d", got)
	}
}

// An atomic unit's lanes against a plain account of every word and every lane.
func TestAtomicUnit(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, lanes := range []int{1, 3, 21} {
		for _, words := range []uint64{1, 5, 40, 1000} {
			u := unit{span: 100, lanes: lanes, lane: make([]lane, 2*lanes), busy: make([]int32, 2)}
			word := map[uint64]int64{}
			free := make([]int64, lanes)
			now := int64(1)
			for i := range 5000 {
				if i%500 > 400 {
					now += 50 // let it run dry
				}
				now += rng.Int64N(2 * 100 / int64(lanes))
				w := rng.Uint64N(words)
				if rng.IntN(3) == 0 {
					w = 0 // hot
				}
				slices.Sort(free)
				want := max(now, free[0], word[w]) + 100
				free[0], word[w] = want, want
				if _, got := u.take(1, now, w, u.span); got != want {
					t.Fatalf("%d lanes, %d words, operation %d: done at %d, want %d", lanes, words, i, got, want)
				}
			}
			if u.lane[0] != (lane{}) {
				t.Error("another node's unit worked")
			}
		}
	}
}

// A hot word blocks others: by hash those of its lane, else all once it fills the
// lanes.
func TestHotWordBlocks(t *testing.T) {
	const lanes = 4
	for _, byHash := range []bool{false, true} {
		u := unit{span: 100, lanes: lanes, byHash: byHash, lane: make([]lane, lanes), busy: make([]int32, 1)}
		hot := uint64(77)
		for range lanes {
			u.take(0, 0, hot, u.span)
		}
		blocked := 0
		for w := uint64(1000); w < 1200; w++ {
			v := u
			v.lane, v.busy = slices.Clone(u.lane), slices.Clone(u.busy)
			if _, done := v.take(0, 1, w, v.span); done > 101 {
				blocked++
			}
		}
		if byHash && (blocked < 25 || blocked > 75) || !byHash && blocked != 200 {
			t.Errorf("by hash %v: %d of 200 words are blocked", byHash, blocked)
		}
	}
}

// Both sides of a NIC draw on one server, and a loopback takes both slots of it.
func TestLoopbackTakesBothSlots(t *testing.T) {
	m := load1(t, "cx3")
	slot := m.Value("slotNs.READ.initiator")
	serve := func(busy func(n *Net)) int64 {
		n := network(t, m, at(2, 1))
		busy(n)
		return n.Serve(10000, 2, 0, rma.KindGet, 1, 0)
	}
	idle := serve(func(*Net) {})
	if idle != 10000+int64(slot) {
		t.Errorf("idle NIC: %d", idle)
	}
	if got := serve(func(n *Net) { n.Serve(10000, 2, 1, rma.KindGet, 1, 0) }); got != idle+int64(slot) {
		t.Errorf("after a responder: %d, want a slot after %d", got, idle)
	}
	cpu := int64(m.Value("postNs"))
	if got := serve(func(n *Net) { n.Issue(10000-cpu, 0, 2, rma.KindGet, 1, false) }); got != idle+int64(slot) {
		t.Errorf("after an initiator: %d, want a slot after %d", got, idle)
	}
	n := network(t, m, at(2))
	_, a := n.Issue(0, 0, 1, rma.KindGet, 1, true)
	n.Serve(a, 0, 1, rma.KindGet, 1, 0)
	n.nic[0].slots.take(in(a), 0)
	if left := n.nic[0].slots.left; left != ticks(slot) {
		t.Errorf("loopback left %d, want the responder's slot %d", left, ticks(slot))
	}
}

// Hops by the lowest common level: two for each level above the first, each way.
func TestHopsByCommonLevel(t *testing.T) {
	m := load1(t, "aries")
	p := at(1, 1, 1, 1, 1)
	p.Groups = [][]int{{0, 0, 1, 2, 3}, {0, 0, 0, 1, 2}, {0, 0, 0, 0, 1}}
	_, base := ping(t, m, p, 1, rma.KindGet, 8)
	hop := m.Value("hopNs") / 1e3
	for to, hops := range map[int]float64{1: 0, 2: 2, 3: 4, 4: 6} {
		if _, d := ping(t, m, p, to, rma.KindGet, 8); math.Abs(d-base-2*hops*hop) > 0.002 {
			t.Errorf("to node %d: %.3f us, want %.3f and %g hops each way", to, d, base, hops)
		}
	}
}

// Of L live connections C are cached: 1 - C/L of the operations miss, on either side,
// and in whatever pattern they come.
func TestConnectionsBeyondTheCacheMiss(t *testing.T) {
	for _, live := range []int64{10, 77, 78, 100, 154, 770} {
		n := network(t, load1(t, "cx3"), at(1, 1))
		n.add(0, live)
		want := max(0, 1-77/float64(live))
		var missed [2]int
		const calls = 20000
		for i := range calls {
			if n.nic[0].missed() {
				missed[i%2]++
			}
		}
		for side, got := range missed {
			if rate := float64(got) / (calls / 2); math.Abs(rate-want) > 0.005 {
				t.Errorf("%d live: every second call from %d on misses by %.4f, want %.4f", live, side, rate, want)
			}
		}
	}
}

func TestConnections(t *testing.T) {
	m := load1(t, "cx3")
	for _, qps := range []int{0, 1, 8} {
		p := at(2, 2, 1)
		p.QPs = qps
		n := network(t, m, p)
		q := max(qps, 1)
		expect := func(what string, a, b, c int) {
			t.Helper()
			if n.Live(0) != a || n.Live(1) != b || n.Live(2) != c {
				t.Errorf("%d QPs, %s: %d %d %d, want %d %d %d", q, what, n.Live(0), n.Live(1), n.Live(2), a, b, c)
			}
		}
		issue := func(from, to int, kind rma.Kind) { n.Issue(0, from, to, kind, 1, true) }
		issue(0, 2, rma.KindPut)
		issue(0, 3, rma.KindGet) // the same node
		expect("one rank, one node", q, q, 0)
		issue(0, 4, rma.KindGet)
		issue(0, 2, rma.KindGet) // as before
		expect("one rank, two nodes", 2*q, q, q)
		issue(1, 2, rma.KindGet)
		expect("two ranks", 3*q, 2*q, q)
		issue(2, 3, rma.KindGet)
		expect("loopback has two ends", 3*q, 4*q, q)
		issue(0, 4, Send)
		issue(1, 4, Send)
		issue(1, 2, Send)
		expect("datagrams need one", 3*q+1, 4*q+1, q+1)
	}
}

// Bandwidth: what one node sends or takes in is bound by its link, either way by
// itself.
func TestBandwidth(t *testing.T) {
	m := load1(t, "cx4")
	link := 1 / m.Value("byteNs") // GB/s
	rate := func(p Placement, kind rma.Kind, to func(r int) int) float64 {
		l := load{net: network(t, m, p)}
		for r := range p.Node {
			if to(r) >= 0 {
				c := toWord(r, to(r), 0, kind, 16)
				c.words = 512
				l.clients = append(l.clients, c)
			}
		}
		ops, _ := l.run(1e6)
		return ops * 4096 / 1e3
	}
	near := func(what string, got, want float64) {
		if math.Abs(got/want-1) > 0.03 {
			t.Errorf("%s: %.2f GB/s, want %.2f", what, got, want)
		}
	}
	toLast := func(r int) int {
		if r < 4 {
			return 4
		}
		return -1
	}
	near("four read from one", rate(at(1, 1, 1, 1, 1), rma.KindGetBulk, toLast), link)
	near("four write to one", rate(at(1, 1, 1, 1, 1), rma.KindPutBulk, toLast), link)
	near("one reads from four", rate(at(4, 1, 1, 1, 1), rma.KindGetBulk, func(r int) int {
		if r < 4 {
			return 4 + r
		}
		return -1
	}), link)
	near("one writes to four", rate(at(4, 1, 1, 1, 1), rma.KindPutBulk, func(r int) int {
		if r < 4 {
			return 4 + r
		}
		return -1
	}), link)
	near("two write to each other", rate(at(4, 4), rma.KindPutBulk, func(r int) int { return (r + 4) % 8 }), 2*link)
}

// An operation of several packets takes as many slots, of either side.
func TestPackets(t *testing.T) {
	m := load1(t, "aries")
	for words, packets := range map[int]float64{1: 1, 8: 1, 9: 2, 512: 64} {
		n := network(t, m, at(1, 1))
		_, a := n.Issue(0, 0, 1, rma.KindPutBulk, words, true)
		n.Serve(a, 0, 1, rma.KindPutBulk, words, 0)
		want := ticks(packets * m.Value("slotNs.WRITE.initiator"))
		if i, r := n.nic[0].slots.left, n.nic[1].slots.left; i != want || r != want {
			t.Errorf("%d words: %d and %d of work, want %d", words, i, r, want)
		}
	}
}

func TestNearAccessesByPlace(t *testing.T) {
	m := load1(t, "cx4")
	p := at(5, 1)
	p.Core = []int{0, 0, 1, 2, 3, 0}
	p.Socket = []int{0, 0, 0, 1, 1, 0}
	n := network(t, m, p)
	own, sibling, socket, other := int64(10), int64(8), int64(50), int64(118)
	for _, x := range []struct {
		a, b       int
		near, woke int64
	}{
		{0, 0, own, own}, {-1, 0, own, own}, {0, 1, own + sibling, sibling}, {0, 2, own + socket, socket},
		{2, 3, own + other, other}, {3, 4, own + socket, socket}, {5, 0, own + socket, socket},
	} {
		if near, woke := n.Near(x.a, x.b), n.Woken(x.a, x.b); near != x.near || woke != x.woke {
			t.Errorf("from %d to %d: touched in %d, woken in %d, want %d, %d", x.a, x.b, near, woke, x.near, x.woke)
		}
	}
	plain := network(t, m, at(2))
	if got := plain.Woken(0, 1); got != socket {
		t.Errorf("cores not known: %d", got)
	}
	for ranks, rounds := range map[int]int64{0: 0, 1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 1024: 10} {
		if got := n.Barrier(ranks); got != rounds*1200 {
			t.Errorf("barrier of %d: %d ns, want %d messages of 1200", ranks, got, rounds)
		}
	}
}

// A doorbell is rung once a list, and a rank's CPU posts one operation after the other.
func TestOneDoorbellAList(t *testing.T) {
	m := load1(t, "cx6")
	n := network(t, m, at(1, 1))
	post, bell, poll := int64(m.Value("postNs")), int64(m.Value("doorbellNs")), int64(m.Value("pollNs"))
	now, last := int64(0), int64(0)
	for i := range 8 {
		free, arrives := n.Issue(now, 0, 1, rma.KindGet, 1, i == 0)
		if want := now + post + bell*int64(b2i(i == 0)); free != want {
			t.Errorf("operation %d: CPU free at %d, want %d", i, free, want)
		}
		if now = free; arrives <= last {
			t.Errorf("operation %d arrives at %d, after %d", i, arrives, last)
		}
		last = arrives
	}
	// Two answers at once are polled one after the other.
	a, b := n.Reply(50000, 0, 1, rma.KindGet, 1), n.Reply(50000, 0, 1, rma.KindGet, 1)
	if b != a+poll {
		t.Errorf("answers seen at %d and %d", a, b)
	}
	if got := n.Reply(60000, 0, 1, Send, 1); got != 60000 {
		t.Errorf("a message has an answer, seen at %d", got)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Times go forward, whatever comes.
func TestTimesGoForward(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, name := range Names() {
		p := at(16, 16, 1, 1)
		p.Groups = [][]int{{0, 0, 1, 2}, {0, 0, 0, 1}}
		p.QPs = 16
		n := network(t, load1(t, name), p)
		now := int64(0)
		for range 20000 {
			now += rng.Int64N(100)
			from, to := rng.IntN(34), rng.IntN(34)
			kind, words := rma.Kind(rng.IntN(int(rma.Kinds)+1)), 1
			if kind == rma.Kinds {
				kind = Send
			}
			if kind == rma.KindPutBulk || kind == rma.KindGetBulk {
				words = 1 + rng.IntN(3000)
			}
			free, arrives := n.Issue(now, from, to, kind, words, rng.IntN(2) == 0)
			effect := n.Serve(arrives, from, to, kind, words, rng.Uint64N(10))
			done := n.Reply(effect, from, to, kind, words)
			if free < now || arrives < free || effect < arrives || done < effect {
				t.Fatalf("%s: %v from %d to %d: %d, free %d, arrives %d, effect %d, done %d", name, kind, from, to, now, free, arrives, effect, done)
			}
		}
	}
}

func TestDeterministic(t *testing.T) {
	run := func() []int64 {
		p := at(4, 4, 4)
		p.QPs = 30
		var log []int64
		l := load{net: network(t, load1(t, "cx6"), p), log: func(at int64, stage, rank int) { log = append(log, at, int64(stage), int64(rank)) }}
		for r := range p.Node {
			l.clients = append(l.clients, &client{rank: r, kind: rma.KindCompareAndSwap, words: 1, window: 4,
				next: func(rng *rand.Rand) (int, uint64) { return rng.IntN(12), rng.Uint64N(6) }})
		}
		l.run(1e5)
		return log
	}
	a, b := run(), run()
	if len(a) < 1000 || !slices.Equal(a, b) {
		t.Errorf("%d and %d times, or not the same", len(a), len(b))
	}
}

// 65,536 ranks fit.
func TestManyRanksFit(t *testing.T) {
	if testing.Short() {
		t.Skip("a large network")
	}
	p := Placement{Node: make([]int, 65536)}
	for r := range p.Node {
		p.Node[r] = r / 16
	}
	m := load1(t, "cx6")
	var before, empty, used runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := network(t, m, p)
	runtime.ReadMemStats(&empty)
	for r := range p.Node {
		for home := range 8 {
			n.Issue(0, r, home*8000, rma.KindGet, 1, true)
		}
	}
	runtime.ReadMemStats(&used)
	if got := empty.TotalAlloc - before.TotalAlloc; got > 16<<20 {
		t.Errorf("%d bytes", got)
	}
	if got := used.TotalAlloc - before.TotalAlloc; got > 64<<20 {
		t.Errorf("%d bytes when all have connections", got)
	}
	if got := n.Live(0); got != 65536+16*8 {
		t.Errorf("%d live connections at a home", got)
	}
	runtime.KeepAlive(n)
}
