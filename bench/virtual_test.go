package bench_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
	_ "github.com/rmalock/rmalock/rmamcs"
	"github.com/rmalock/rmalock/topo"
)

// steady is a machine with one weak constant: what a far operation takes on its way,
// each way, in ns.
type steady struct{ wire float64 }

func (s steady) Name() string  { return "steady" }
func (s steady) About() string { return "takes the same time always" }
func (s steady) Weak() []bench.Constant {
	return []bench.Constant{{Name: "wire", Unit: "ns", Low: 500, Value: s.wire, High: 2000}}
}
func (s steady) With(name string, v float64) (bench.Machine, error) {
	if name != "wire" {
		return nil, fmt.Errorf("no constant %q", name)
	}
	return steady{v}, nil
}
func (s steady) Model(*bench.Virtual, uint64) (sim.Model, error) { return model{s}, nil }

type model struct{ steady }

func (m model) Issue(now int64, from, to int, _ rma.Kind, _ int, _ bool) (free, arrives int64) {
	return now + 10, now + 10 + int64(m.wire)
}
func (m model) Serve(now int64, _, _ int, _ rma.Kind, _ int, _ uint64) int64 { return now + 50 }
func (m model) Reply(now int64, _, _ int, _ rma.Kind, _ int) int64           { return now + int64(m.wire) }
func (m model) Connection(_, _ int) (id, limit int)                          { return 0, 0 }

func (m model) Near(owner, rank int) int64 {
	if owner == rank {
		return 5
	}
	return 50
}
func (m model) Woken(_, _ int) int64 { return 50 }
func (m model) Barrier(n int) int64  { return 2000 }

// uneven is a machine of ever other times.
type uneven uint64

func (u uneven) Name() string                                    { return "uneven" }
func (u uneven) About() string                                   { return "" }
func (u uneven) Weak() []bench.Constant                          { return nil }
func (u uneven) With(string, float64) (bench.Machine, error)     { return nil, errors.New("no constants") }
func (u uneven) Model(*bench.Virtual, uint64) (sim.Model, error) { return sim.Uneven(uint64(u)), nil }

func nodes(ranks, perNode int) *topo.Topology {
	t, err := topo.Parse(fmt.Sprintf("node:%d rank:%d", ranks/perNode, perNode))
	if err != nil {
		panic(err)
	}
	return t
}

func virtual(t *testing.T, v bench.Virtual, cfg bench.Config) *bench.Result {
	t.Helper()
	r, err := v.Run(cfg)
	if err != nil {
		t.Fatalf("%+v: %v", cfg, err)
	}
	return r
}

func TestVirtualInEveryMode(t *testing.T) {
	for _, mode := range bench.Modes() {
		for _, cfg := range []bench.Config{
			{Lock: "dmcs", Mode: mode}, {Lock: "dmcs", Mode: mode, Acquires: 50}, {Lock: "fompi-rw", Mode: mode, Readers: 0.9, Acquires: 50},
		} {
			r := virtual(t, bench.Virtual{Topology: nodes(8, 4), Machine: steady{1000}}, cfg)
			r.GOGC = "-" // there is none
			sane(t, r)
			if !r.Simulated || r.Machine != "steady" || len(r.Weak) != 1 || r.Weak[0].Value != 1000 || r.Operations == 0 || r.Oversubscribed || r.NumGC != 0 {
				t.Errorf("%s: %+v", mode, r)
			}
			if mode != bench.DHT && cfg.Acquires == 0 && (r.Seconds < 4e-3 && r.Acquires < 8000 || r.Seconds > 20e-3 || r.Acquires > 8*1128) {
				t.Errorf("%s: measured %v virtual seconds and %d acquires, want nine tenths of 5 ms or 8,000, and the end of what was begun", mode, r.Seconds, r.Acquires)
			}
			if len(r.Ops) == 0 || r.RemoteOps == 0 && mode != bench.Latency && mode != bench.LB && len(r.PerRank) > 1 {
				t.Errorf("%s: operations %v, %v remote", mode, r.Ops, r.RemoteOps)
			}
		}
	}
}

// A run is a function of its configuration, the seed in it, and the machine.
func TestVirtualIsDeterministic(t *testing.T) {
	text := func(machine bench.Machine, seed uint64, mode bench.Mode) string {
		r := virtual(t, bench.Virtual{Topology: nodes(12, 4), Machine: machine}, bench.Config{Lock: "fompi-rw", Mode: mode, Readers: 0.8, Acquires: 60, Seed: seed})
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Replace(string(b), fmt.Sprintf(`"seed":%d`, seed), `"seed":0`, 1)
	}
	for _, mode := range []bench.Mode{bench.WCSB, bench.WARB, bench.DHT} {
		one := text(uneven(1), 1, mode)
		if again := text(uneven(1), 1, mode); again != one {
			t.Errorf("%s: the same seed gives\n%s and\n%s", mode, one, again)
		}
		if other := text(uneven(1), 2, mode); other == one {
			t.Errorf("%s: another seed gives the same: %s", mode, other)
		}
	}
}

// One acquire of a far lock in an empty job takes two round trips: swap and
// compare-and-swap. The model says what these take; the benchmark must not add to it.
func TestVirtualLatencyIsTheModels(t *testing.T) {
	// Lock 1 of the table is at home at rank 1, on another node; of two locks, taken at
	// random, the other is at home here and costs nearly nothing.
	r := virtual(t, bench.Virtual{Topology: nodes(2, 1), Machine: steady{1000}}, bench.Config{Lock: "dmcs", Mode: bench.LB, Acquires: 1000, Locks: 2})
	trip := 10 + 2*1000 + 50.0
	if got := r.Max; math.Abs(got-2*trip) > 0.1*trip && got < 2*trip {
		t.Errorf("slowest acquire took %v ns, want two round trips of %v ns or more", got, trip)
	}
	alone := virtual(t, bench.Virtual{Topology: nodes(1, 1), Machine: steady{1000}}, bench.Config{Lock: "dmcs", Mode: bench.LB, Acquires: 1000})
	if alone.Mean > 100 {
		t.Errorf("mean of a rank alone is %v ns; no operation is far", alone.Mean)
	}
}

// Closed loops obey Little's law: what is in the loop is throughput times latency.
func TestVirtualMeanFitsThroughput(t *testing.T) {
	for _, lock := range []string{"dmcs", "fompi-spin"} {
		r := virtual(t, bench.Virtual{Topology: nodes(32, 8), Machine: steady{1000}}, bench.Config{Lock: lock, Mode: bench.LB, Duration: 10 * time.Millisecond})
		if inLoop := r.PerSecond * r.Mean / 1e9; inLoop < 28 || inLoop > 33 {
			t.Errorf("%s: %v acquires per second of %v ns each are %.1f ranks at once, want nearly 32", lock, r.PerSecond, r.Mean, inLoop)
		}
	}
}

// The critical section of wcsb takes 2.5 us on average, and ranks do not overlap.
func TestVirtualWorkTakesTime(t *testing.T) {
	r := virtual(t, bench.Virtual{Topology: nodes(16, 16), Machine: steady{1000}}, bench.Config{Lock: "dmcs", Mode: bench.WCSB, Acquires: 300})
	if each := 1e9 / r.PerSecond; each < 2500 || each > 3200 {
		t.Errorf("a turn of wcsb takes %v ns, want 2,500 and a hand-over", each)
	} else if r.Inside < 2400 || r.Inside > each {
		t.Errorf("of %v ns, %v are inside the critical section, want 2,500 and what it takes to read and write", each, r.Inside)
	}
	r = virtual(t, bench.Virtual{Topology: nodes(1, 1), Machine: steady{1000}}, bench.Config{Lock: "dmcs", Mode: bench.WARB, Acquires: 1000})
	if each := 1e9 / r.PerSecond; each < 2400 || each > 2800 || r.Mean > 100 {
		t.Errorf("a turn of warb takes %v ns and its acquire %v ns, want 2,500 and little", each, r.Mean)
	}
}

func TestVirtualBand(t *testing.T) {
	var last float64
	v := bench.Virtual{Topology: nodes(8, 2), Machine: steady{1000}, Band: true, Progress: func(done float64) {
		if done < last || done > 1 {
			t.Errorf("progress went from %v to %v", last, done)
		}
		last = done
	}}
	cfg := bench.Config{Lock: "dmcs", Mode: bench.ECSB, Duration: 20 * time.Millisecond}
	r := virtual(t, v, cfg)
	b := r.Band
	if b == nil {
		t.Fatal("no band")
	}
	if !(b.PerSecond.Min < r.PerSecond && r.PerSecond < b.PerSecond.Max && b.Mean.Min < r.Mean && r.Mean < b.Mean.Max) {
		t.Errorf("band %+v around %v per second, mean %v", b, r.PerSecond, r.Mean)
	}
	slow := virtual(t, bench.Virtual{Topology: nodes(8, 2), Machine: steady{2000}}, cfg)
	if slow.PerSecond != b.PerSecond.Min || slow.Band != nil {
		t.Errorf("the band ends at %v per second, and the slow machine has %v", b.PerSecond.Min, slow.PerSecond)
	}
	if last < 0.5 {
		t.Errorf("progress was last %v", last)
	}
}

// A lock gets its parameters, and in virtual time the machine.
func TestVirtualSetting(t *testing.T) {
	settings = nil
	where := nodes(4, 2)
	r := virtual(t, bench.Virtual{Topology: where, Machine: steady{1000}}, bench.Config{Lock: "testrw:wait=2 per node:start=7", Mode: bench.ECSB, Acquires: 20, Locks: 3})
	if len(settings) != 4 {
		t.Fatalf("opened %d times, want once by each of 4 ranks", len(settings))
	}
	for _, s := range settings {
		if s.Topology != where || s.Locks != 3 || s.Home != 0 || len(s.Params) != 2 || s.Params["wait"] != "2 per node" || s.Params["start"] != "7" {
			t.Errorf("opened with %+v", s)
		}
	}
	if r.Lock != "testrw:wait=2 per node:start=7" || !r.Shared {
		t.Errorf("result of lock %q, shared mode %v", r.Lock, r.Shared)
	}
}

func TestVirtualErrors(t *testing.T) {
	v := bench.Virtual{Topology: nodes(4, 2), Machine: steady{1000}}
	if _, err := v.Run(bench.Config{Lock: "testopen", Mode: bench.WCSB, Acquires: 100}); !errors.Is(err, bench.ErrExclusion) {
		t.Errorf("a lock that does not exclude: error %v", err)
	}
	if _, err := v.Run(bench.Config{Lock: "testopen", Mode: bench.DHT, Acquires: 100}); !errors.Is(err, bench.ErrExclusion) {
		t.Errorf("a hashtable under a lock that does not exclude: error %v", err)
	}
	if _, err := v.Run(bench.Config{Lock: "testfail", Mode: bench.ECSB}); !errors.Is(err, errOpen) {
		t.Errorf("a lock that does not open: error %v", err)
	}
	if _, err := (bench.Virtual{Topology: nodes(1, 1), Machine: steady{1000}}).Run(bench.Config{Lock: bench.Atomic, Mode: bench.DHT}); !errors.Is(err, bench.ErrConfig) {
		t.Errorf("a hashtable that nobody visits: error %v", err)
	}
	big := bench.Config{Lock: bench.Atomic, Mode: bench.DHT, Acquires: 1 << 20}
	if _, err := (bench.Virtual{Topology: nodes(1024, 16), Machine: steady{1000}}).Run(big); !errors.Is(err, bench.ErrConfig) || !strings.Contains(err.Error(), "GiB") {
		t.Errorf("a hashtable for 2^30 inserts at each of 1024 ranks: error %v", err)
	}
}

// Thousands of ranks: in seconds, with memory that does not grow as their square.
func TestVirtualThousands(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	r := virtual(t, bench.Virtual{Topology: nodes(4096, 16), Machine: steady{1000}}, bench.Config{Lock: "dmcs", Mode: bench.ECSB})
	if r.Ranks != 4096 || r.Nodes != 256 || slices.Min(r.PerRank) == 0 || r.ShareDeviation > 0.5 {
		t.Errorf("%d ranks on %d nodes, shares %v to %v, deviation %v", r.Ranks, r.Nodes, slices.Min(r.PerRank), slices.Max(r.PerRank), r.ShareDeviation)
	}
	t.Logf("%d operations", r.Operations)
}

// TestSOBLeavesLittle: each acquire of sob makes one access, to the home of the word, and
// they come one after the other. On four nodes of two ranks, on any of the machines, they
// alone take so long that no lock at all is 5 times as fast as foMPI-Spin or D-MCS. RMA-MCS
// makes four fifths and more of what a lock would that takes no time.
func TestSOBLeavesLittle(t *testing.T) {
	for _, name := range bench.Machines() {
		m, err := bench.LoadMachine(name)
		if err != nil {
			t.Fatal(err)
		}
		v := bench.Virtual{Topology: nodes(8, 2), Machine: m}
		sob := func(lock string) *bench.Result { return virtual(t, v, bench.Config{Lock: lock, Mode: bench.SOB}) }
		tree, spin, mcs := sob("rmamcs"), sob("fompi-spin").PerSecond, sob("dmcs").PerSecond
		got, most := tree.PerSecond, 1e9/tree.Inside
		t.Logf("%s: a lock that takes no time %.3g and %.3g times, RMA-MCS %.3g and %.3g times foMPI-Spin and D-MCS; inside %.4g of %.4g ns",
			name, most/spin, most/mcs, got/spin, got/mcs, tree.Inside, 1e9/got)
		if most > 5*spin || most > 5*mcs || got > most || got < 0.8*most {
			t.Errorf("%s: acquires a second: RMA-MCS %.4g, a lock that takes no time %.4g, foMPI-Spin %.4g, D-MCS %.4g", name, got, most, spin, mcs)
		}
	}
}
