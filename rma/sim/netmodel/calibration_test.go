package netmodel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/rmalock/rmalock/rma"
)

// The calibration tests compare what the model does with what was measured. Each row
// has the measured figure, its source, and how far the model may be from it. A row with
// a reason in unmet is one that a model as small as this does not reach: it must then
// give the value it is known to give, so that no change goes unseen.
type row struct {
	machine, what string
	source        string
	measured      float64
	unit          string
	model         float64
	tolerance     float64 // relative
	fit           bool    // a constant was set by this figure; else the figure follows from others
	atMost        bool    // measured is a bound
	atLeast       bool    // and so here
	known         float64 // of an unmet row: the model's value
	unmet         string
}

func (r *row) deviation() float64 { return r.model/r.measured - 1 }

func check(t *testing.T, rows []row) {
	t.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "machine\ttest\tmeasured\tmodel\tdeviation\tallowed\tconstants\tsource")
	for _, r := range rows {
		d, bound, note, fit := r.deviation(), "", "", "others"
		if r.fit {
			fit = "set by it"
		}
		if r.atMost {
			bound = "< "
		}
		if r.atLeast {
			bound = "> "
		}
		if r.unmet != "" {
			note = " NOT MET: " + r.unmet
		}
		fmt.Fprintf(w, "%s\t%s\t%s%.4g %s\t%.4g\t%+.0f %%\t%.0f %%\t%s\t%s%s\n",
			r.machine, r.what, bound, r.measured, r.unit, r.model, 100*d, 100*r.tolerance, fit, r.source, note)
		met := math.Abs(d) <= r.tolerance
		if r.atMost {
			met = d <= 0
		}
		if r.atLeast {
			met = d >= 0
		}
		switch {
		case r.unmet != "" && met:
			t.Errorf("%s %s: the model now gives %.4g for %.4g %s; the note that it does not is out of date", r.machine, r.what, r.model, r.measured, r.unit)
		case r.unmet != "" && math.Abs(r.model/r.known-1) > 0.02:
			t.Errorf("%s %s: %.4g %s, known to give %.4g for %.4g", r.machine, r.what, r.model, r.unit, r.known, r.measured)
		case r.unmet == "" && !met:
			t.Errorf("%s %s: %.4g %s, not %.4g within %.0f %% (%s)", r.machine, r.what, r.model, r.unit, r.measured, 100*r.tolerance, r.source)
		}
	}
	w.Flush()
	t.Logf("\n%s", text.String())
}

func load1(t *testing.T, name string) *Machine {
	t.Helper()
	m, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func with(t *testing.T, m *Machine, name string, v float64) *Machine {
	t.Helper()
	m, err := m.With(name, v)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func network(t testing.TB, m *Machine, p Placement) *Net {
	t.Helper()
	n, err := New(m, p)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// at is a placement of so many ranks on each node.
func at(ranks ...int) Placement {
	var p Placement
	for node, n := range ranks {
		for range n {
			p.Node = append(p.Node, node)
		}
	}
	return p
}

// ping is the time from the issue of one operation in an idle network to its effect
// and to its answer, in microseconds.
func ping(t *testing.T, m *Machine, p Placement, to int, kind rma.Kind, bytes int) (effect, done float64) {
	n := network(t, m, p)
	_, at := n.Issue(0, 0, to, kind, bytes/8, true)
	e := n.Serve(at, 0, to, kind, bytes/8, 0)
	return float64(e) / 1e3, float64(n.Reply(e, 0, to, kind, bytes/8)) / 1e3
}

// toWord is a client that always goes for one word.
func toWord(rank, to int, word uint64, kind rma.Kind, window int) *client {
	return &client{rank: rank, kind: kind, words: 1, window: window,
		next: func(*rand.Rand) (int, uint64) { return to, word }}
}

// T1: two ranks, one operation. Round trips of small operations hold by construction:
// flights are what a round trip leaves beside its other parts.
func TestCalibrationTwoRanks(t *testing.T) {
	two := at(1, 1)
	var rows []row
	add := func(r row) { rows = append(rows, r) }
	set := func(machine, what, source string, measured, model, tolerance float64) {
		add(row{machine: machine, what: what, source: source, measured: measured, unit: "us", model: model, tolerance: tolerance, fit: true})
	}
	us := func(machine, what, source string, measured, model, tolerance float64) {
		add(row{machine: machine, what: what, source: source, measured: measured, unit: "us", model: model, tolerance: tolerance})
	}
	done := func(m *Machine, kind rma.Kind, bytes int) float64 {
		_, d := ping(t, m, two, 1, kind, bytes)
		return d
	}
	effect := func(m *Machine, kind rma.Kind, bytes int) float64 {
		e, _ := ping(t, m, two, 1, kind, bytes)
		return e
	}

	m := load1(t, "cx3")
	set("cx3", "READ 8 B", "C3 S", 1.79, done(m, rma.KindGet, 8), 0.05)
	us("cx3", "READ 64 B", "I", 1.8, done(m, rma.KindGetBulk, 64), 0.05)
	us("cx3", "READ 4 KB", "I", 2.5, done(m, rma.KindGetBulk, 4096), 0.05)
	set("cx3", "WRITE 8 B", "RB S, I", 1.7, done(m, rma.KindPut, 8), 0.05)
	set("cx3", "CAS", "I", 2.2, done(m, rma.KindCompareAndSwap, 8), 0.05)
	set("cx3", "FAA", "I", 2.2, done(m, rma.KindFetchAndOp, 8), 0.05)
	set("cx3", "SEND one way", "I", 1.0, effect(m, Send, 8), 0.05)
	_, loop := ping(t, m, at(2), 1, rma.KindGet, 8)
	set("cx3", "READ, loopback", "TC S, weak: 0.8 x RTT", 0.8*1.79, loop, 0.05)

	m = load1(t, "aries")
	us("aries", "Put 8 B one way", "PPT S", 0.8, effect(m, rma.KindPut, 8), 0.05)
	set("aries", "Put 8 B and flush", "I", 1.4, done(m, rma.KindPut, 8), 0.05)
	set("aries", "Get 8 B", "PPT S", 1.6, done(m, rma.KindGet, 8), 0.05)
	us("aries", "Get 64 B, as 8 B", "PPT S, I", 1.6, done(m, rma.KindGetBulk, 64), 0.05)
	set("aries", "FAO", "R", 1.8, done(m, rma.KindFetchAndOp, 8), 0.05)
	// Node 0 with its router, its group, another group.
	far := at(1, 1, 1, 1)
	far.Groups = [][]int{{0, 0, 1, 2}, {0, 0, 0, 1}}
	worst := 0.0
	for to := 1; to < 4; to++ {
		e, _ := ping(t, m, far, to, rma.KindPut, 8)
		worst = max(worst, e)
	}
	add(row{machine: "aries", what: "Put one way, any pair", source: "PPT S", measured: 2, unit: "us", model: worst, atMost: true})
	_, d := ping(t, m, far, 3, rma.KindGet, 8)
	us("aries", "Get, other group", "PPT S: Austin, operation not said", 2.2, d, 0.15)

	m = load1(t, "cx4")
	set("cx4", "READ 8 B", "P", 2.5, done(m, rma.KindGet, 8), 0.05)
	us("cx4", "READ 4 KB", "PF S, I", 3.0, done(m, rma.KindGetBulk, 4096), 0.07)
	set("cx4", "CAS", "I", 2.9, done(m, rma.KindCompareAndSwap, 8), 0.05)
	set("cx4", "SEND one way", "C5 S, I", 1.2, effect(m, Send, 8), 0.05)

	m = load1(t, "cx6")
	set("cx6", "READ 8 B", "I, R", 2.2, done(m, rma.KindGet, 8), 0.05)
	set("cx6", "CAS", "I, R", 2.7, done(m, rma.KindCompareAndSwap, 8), 0.05)
	us("cx6", "WRITE one way", "I, R", 1.1, effect(m, rma.KindPut, 8), 0.15)

	m = load1(t, "tcp")
	set("tcp", "small, both ways", "TC S", 25.3, done(m, rma.KindGet, 8), 0.05)
	_, loop = ping(t, m, at(2), 1, rma.KindGet, 8)
	set("tcp", "small, loopback", "TC S", 12.2, loop, 0.05)
	set("tcp", "FAO", "FN S", 27, done(m, rma.KindFetchAndOp, 8), 0.05)
	set("tcp", "CAS", "FN S", 31, done(m, rma.KindCompareAndSwap, 8), 0.05)
	us("tcp", "4 KB one way", "C3 S", 15.8, effect(m, Send, 4096), 0.1)
	us("tcp", "16 KB one way", "C3 S", 22.6, effect(m, Send, 16384), 0.1)
	set("tcp", "64 KB one way", "C3 S", 59, effect(m, Send, 65536), 0.1)
	add(row{machine: "tcp", what: "Put 8 B and flush", source: "FN S, one host", measured: 16, unit: "us", model: done(m, rma.KindPut, 8), tolerance: 0.2,
		known: 25, unmet: "FN's hosts are namespaces of one; between hosts nothing that is acknowledged beats the RTT"})
	check(t, rows)
}

// oneWord is the rate and latency of n clients, each on a node of its own, that add to
// one word.
func oneWord(t *testing.T, m *Machine, n, window int, big bool) (rate, latency float64) {
	ranks := make([]int, n+1)
	for i := range ranks {
		ranks[i] = 1
	}
	p := at(ranks...)
	p.BigFootprint = big
	l := load{net: network(t, m, p)}
	for r := range n {
		l.clients = append(l.clients, toWord(r, n, 7, rma.KindFetchAndOp, window))
	}
	return l.run(2e6)
}

// T2: N clients on one word: the plateau, the knee, and what follows it.
func TestCalibrationOneWord(t *testing.T) {
	var rows []row
	plateau := func(machine, what, source string, measured, tolerance float64, big bool) {
		rate, _ := oneWord(t, load1(t, machine), 32, 1, big)
		rows = append(rows, row{machine: machine, what: what, source: source, measured: measured, unit: "M/s", model: rate, tolerance: tolerance, fit: true})
	}
	plateau("cx3", "FAA, one word", "RB S", 2.7, 0.05, false)
	plateau("cx3", "FAA, one word, large memory", "RB S", 1.8, 0.05, true)
	plateau("cx6", "FAA, one word", "C6 S", 2.17, 0.05, false)
	plateau("cx4", "FAA, one word", "I, weak", 2.3, 0.05, false)
	plateau("tcp", "FAO, one word", "I", 0.2, 0.05, false)
	aries, _ := oneWord(t, load1(t, "aries"), 64, 1, false)
	rows = append(rows, row{machine: "aries", what: "FAO, one word", source: "no figure found; 3-100, weak", measured: 20, unit: "M/s", model: aries, tolerance: 0.05, fit: true})

	for _, name := range []string{"cx3", "cx4", "cx6"} {
		m := load1(t, name)
		rtt, word := m.Value("rttNs.FAA"), m.Value("wordNs")
		full, _ := oneWord(t, m, 40, 1, false)
		knee, latency := 0, [4]float64{}
		for n := 1; knee == 0; n++ {
			if rate, _ := oneWord(t, m, n, 1, false); rate > 0.95*full {
				knee = n
			}
		}
		rows = append(rows, row{machine: name, what: "knee, clients", source: "rtt / wordNs", measured: rtt / word, unit: "", model: float64(knee), tolerance: 0.2})
		for i, n := range []int{20, 40} {
			_, latency[i] = oneWord(t, m, n, 1, false)
		}
		rows = append(rows, row{machine: name, what: "latency a client beyond it", source: "wordNs", measured: word, unit: "ns", model: (latency[1] - latency[0]) / 20, tolerance: 0.05})
	}
	check(t, rows)
}

// T3: N clients, a word for each.
func TestCalibrationWordEach(t *testing.T) {
	// threads of one node go for words of another, one word each.
	threads := func(m *Machine, n, window int, kind rma.Kind) float64 {
		l := load{net: network(t, m, at(n, 1))}
		for r := range n {
			l.clients = append(l.clients, toWord(r, n, 1000+uint64(r), kind, window))
		}
		rate, _ := l.run(1e6)
		return rate
	}
	var rows []row
	m := load1(t, "cx3")
	for _, n := range []int{8, 32} {
		rows = append(rows, row{machine: "cx3", what: fmt.Sprint("FAA, distinct words, clients: ", n), source: "RB S", measured: 2.7, unit: "M/s", model: threads(m, n, 1, rma.KindFetchAndOp), tolerance: 0.05, fit: true})
	}
	m = load1(t, "cx4")
	for _, x := range []struct {
		kind     rma.Kind
		verb     string
		threads  int
		measured float64
		known    float64
		unmet    string
	}{
		{rma.KindCompareAndSwap, "CAS", 12, 25, 0, ""},
		{rma.KindCompareAndSwap, "CAS", 24, 44, 0, ""},
		{rma.KindCompareAndSwap, "CAS", 36, 48, 0, ""},
		{rma.KindFetchAndOp, "FAA", 12, 20, 27.6, "a thread's FAA are slower than its CAS (1.7 against 2.1 M/s), for a reason unknown; the model has one wordNs"},
		{rma.KindFetchAndOp, "FAA", 24, 40, 48.3, "as with 12"},
		{rma.KindFetchAndOp, "FAA", 36, 48, 0, ""},
	} {
		rows = append(rows, row{machine: "cx4", what: fmt.Sprintf("%s, distinct words, threads: %d", x.verb, x.threads), source: "DB S",
			measured: x.measured, unit: "M/s", model: threads(m, x.threads, 16, x.kind), tolerance: 0.15, fit: x.threads == 36, known: x.known, unmet: x.unmet})
	}
	rows = append(rows, row{machine: "cx4", what: "CAS, threads: 1", source: "DB S", measured: 2.1, unit: "M/s", model: threads(m, 1, 16, rma.KindCompareAndSwap), tolerance: 0.15})
	rows = append(rows, row{machine: "cx6", what: "FAA, distinct words, threads: 36", source: "I from CX-4", measured: 48, unit: "M/s", model: threads(load1(t, "cx6"), 36, 16, rma.KindFetchAndOp), tolerance: 0.05, fit: true})

	m = load1(t, "aries")
	blocking := threads(m, 28, 1, rma.KindFetchAndOp)
	slow := with(t, m, "rttNs.FAA", 2800)
	rows = append(rows,
		row{machine: "aries", what: "FAO blocking, 28 cores", source: "CH S", measured: 10, unit: "M/s", model: blocking, tolerance: 0.15, known: 15.5,
			unmet: "at the start value of the weak rttNs.FAA; see the next row"},
		row{machine: "aries", what: "the same, rttNs.FAA at 2.8 us", source: "CH S", measured: 10, unit: "M/s", model: threads(slow, 28, 1, rma.KindFetchAndOp), tolerance: 0.05, fit: true},
		row{machine: "aries", what: "FAO chained, 28 cores", source: "CH S", measured: 45, unit: "M/s", model: threads(m, 28, 64, rma.KindFetchAndOp), tolerance: 0.15})
	check(t, rows)
}

// T4: saturation by READs, and the connections of a NIC.
func TestCalibrationReads(t *testing.T) {
	var rows []row
	// Six nodes with four ranks each, all to all, so that a NIC has 40 connections for
	// each that a rank opens to a node; rates are of one NIC, one way.
	m := load1(t, "cx3")
	allToAll := func(qps, words int) float64 {
		p := at(4, 4, 4, 4, 4, 4)
		p.QPs = qps
		l := load{net: network(t, m, p)}
		for r := range p.Node {
			l.clients = append(l.clients, &client{rank: r, kind: rma.KindGetBulk, words: words, window: 16,
				next: func(rng *rand.Rand) (int, uint64) {
					to := rng.IntN(20)
					if to >= r/4*4 {
						to += 4
					}
					return to, 0
				}})
		}
		rate, _ := l.run(2e6)
		if got := l.net.Live(0); got != 40*qps {
			t.Errorf("%d connections at a NIC, want %d", got, 40*qps)
		}
		return rate / 6
	}
	rows = append(rows, row{machine: "cx3", what: "READ 8 B, out and as many in", source: "RB S", measured: 11, unit: "M/s", model: allToAll(1, 1), tolerance: 0.05, fit: true})
	for _, x := range []struct {
		bytes    int
		measured float64
		known    float64
		unmet    string
	}{{200, 10.3, 0, ""}, {264, 7.1, 11.1, "the NIC has a step above 256 B that the model has not"}, {392, 6.6, 11.1, "as with 264 B"}} {
		rows = append(rows, row{machine: "cx3", what: fmt.Sprintf("READ %d B", x.bytes), source: "RB S", measured: x.measured, unit: "M/s", model: allToAll(1, x.bytes/8), tolerance: 0.2, known: x.known, unmet: x.unmet})
	}
	for _, x := range []struct {
		qps      int
		measured float64
	}{{40, 11.0}, {80, 7.7}, {120, 3.2}, {160, 2.7}, {200, 2.1}, {280, 1.8}, {360, 1.6}, {520, 1.4}, {600, 1.3}, {720, 1.2}} {
		rows = append(rows, row{machine: "cx3", what: fmt.Sprint("READ, QPs: ", x.qps), source: "RB S", measured: x.measured, unit: "M/s", model: allToAll(x.qps/40, 1), tolerance: 0.2, fit: true})
	}

	// Threads of one node read from another, each a line of its own.
	threads := func(m *Machine, n, qps int, kind rma.Kind) float64 {
		p := at(n, 1)
		p.QPs = qps
		l := load{net: network(t, m, p)}
		for r := range n {
			l.clients = append(l.clients, toWord(r, n, uint64(8*r), kind, 16))
		}
		rate, _ := l.run(1e6)
		return rate
	}
	m = load1(t, "cx4")
	for _, x := range []struct {
		kind     rma.Kind
		verb     string
		threads  int
		measured float64
	}{{rma.KindGet, "READ", 1, 5.5}, {rma.KindGet, "READ", 12, 66}, {rma.KindGet, "READ", 24, 132}, {rma.KindGet, "READ", 36, 135}, {rma.KindPut, "WRITE", 1, 4.75}, {rma.KindPut, "WRITE", 36, 123}} {
		tolerance := 0.1
		if x.kind == rma.KindPut {
			tolerance = 0.2
		}
		rows = append(rows, row{machine: "cx4", what: fmt.Sprintf("%s, threads: %d", x.verb, x.threads), source: "DB S", measured: x.measured, unit: "M/s", model: threads(m, x.threads, 1, x.kind), tolerance: tolerance, fit: x.threads == 36 || x.kind == rma.KindGet && x.threads == 1})
	}
	m = load1(t, "cx6")
	for _, x := range []struct {
		kind     rma.Kind
		verb     string
		qps      int
		measured float64
		known    float64
		unmet    string
	}{
		{rma.KindGet, "READ", 32, 83, 0, ""}, {rma.KindGet, "READ", 64, 55, 0, ""}, {rma.KindGet, "READ", 512, 42, 0, ""},
		{rma.KindGet, "READ", 4096, 21, 41.8, "one cache and one miss; the NIC has another level. A band over qpMissNs.READ, see the next row"},
		{rma.KindPut, "WRITE", 32, 123, 0, ""}, {rma.KindPut, "WRITE", 512, 122, 0, ""}, {rma.KindPut, "WRITE", 4096, 111, 0, ""}, {rma.KindPut, "WRITE", 16384, 105, 0, ""},
	} {
		rows = append(rows, row{machine: "cx6", what: fmt.Sprintf("%s, QPs: %d", x.verb, x.qps), source: "C6 S", measured: x.measured, unit: "M/s", model: threads(m, 32, x.qps/32, x.kind), tolerance: 0.2, fit: x.unmet == "" && x.qps < 4096 && (x.kind == rma.KindGet || x.qps == 32) || x.qps == 16384, known: x.known, unmet: x.unmet})
	}
	slow := with(t, m, "qpMissNs.READ", 36)
	rows = append(rows, row{machine: "cx6", what: "READ, QPs: 4096, qpMissNs.READ at 36", source: "C6 S", measured: 21, unit: "M/s", model: threads(slow, 32, 128, rma.KindGet), tolerance: 0.05, fit: true})

	// All threads read one line.
	for _, x := range []struct {
		machine  string
		measured float64
		known    float64
		unmet    string
	}{{"cx6", 21.3, 0, ""}, {"cx6", 4.6, 20, "C6's figure, which its author doubts: the low end of the band"}} {
		l := load{net: network(t, load1(t, x.machine), at(32, 1))}
		for r := range 32 {
			l.clients = append(l.clients, toWord(r, 32, 0, rma.KindGet, 16))
		}
		rate, _ := l.run(1e6)
		rows = append(rows, row{machine: x.machine, what: "READ, one line", source: "C6 S, CX-5", measured: x.measured, unit: "M/s", model: rate, tolerance: 0.1, fit: true, known: x.known, unmet: x.unmet})
	}

	// One core of an Aries node.
	m = load1(t, "aries")
	for _, x := range []struct {
		bytes    int
		measured float64
	}{{8, 1.76}, {4096, 1.08}} {
		l := load{net: network(t, m, at(1, 1))}
		c := toWord(0, 1, 0, rma.KindPutBulk, 64)
		c.words = x.bytes / 8
		l.clients = []*client{c}
		rate, _ := l.run(1e6)
		rows = append(rows, row{machine: "aries", what: fmt.Sprintf("Put %d B, one core", x.bytes), source: "OM S", measured: x.measured, unit: "M/s", model: rate, tolerance: 0.2, fit: x.bytes == 8})
	}
	check(t, rows)
}
