package bench_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rmalock/rmalock/bench"
	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
)

// measure runs a Config on ranks of one node and returns rank 0's Result.
func measure(t *testing.T, nodes, perNode int, cfg bench.Config) *bench.Result {
	t.Helper()
	var res *bench.Result
	err := inproc.RunNodes(nodes, perNode, func(c rma.Comm) error {
		r, err := bench.Run(c, cfg)
		if (r != nil) != (c.Rank() == 0 && err == nil) {
			t.Errorf("rank %d: result %v", c.Rank(), r)
		}
		if r != nil {
			res = r
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// sane checks what holds for every Result.
func sane(t *testing.T, r *bench.Result) {
	t.Helper()
	sum := int64(0)
	for _, n := range r.PerRank {
		sum += n
	}
	if sum != r.Acquires || sum == 0 || len(r.PerRank) != r.Ranks {
		t.Errorf("%d acquires, by rank %v", r.Acquires, r.PerRank)
	}
	for name, v := range map[string]float64{
		"seconds": r.Seconds, "per second": r.PerSecond, "median": r.Median, "min": r.Min, "p99": r.P99, "p99.9": r.P999, "max": r.Max,
	} {
		if !(v > 0) || math.IsInf(v, 0) {
			t.Errorf("%s is %v", name, v)
		}
	}
	if !(r.Min <= r.Median && r.Median <= r.P99 && r.P99 <= r.P999 && r.P999 <= r.Max*1.001) {
		t.Errorf("quantiles not in order: min %v, median %v, 99 %% %v, 99.9 %% %v, max %v", r.Min, r.Median, r.P99, r.P999, r.Max)
	}
	if !(r.ShareDeviation >= 0) {
		t.Errorf("share deviation is %v", r.ShareDeviation)
	}
	if got := float64(r.Acquires) / r.Seconds; math.Abs(got-r.PerSecond) > got/1e6 && (r.Mode != bench.Clients || r.PerSecond < got || r.PerSecond > 2*got) {
		t.Errorf("%v per second, want %v", r.PerSecond, got)
	}
	if r.Cores < 1 || r.Transport == "" || r.GOGC == "" {
		t.Errorf("cores %d, transport %q, GOGC %q", r.Cores, r.Transport, r.GOGC)
	}
}

func TestAcquiresInEveryMode(t *testing.T) {
	for _, mode := range bench.Modes() {
		t.Run(string(mode), func(t *testing.T) {
			r := measure(t, 1, 3, bench.Config{Lock: "dmcs", Mode: mode, Acquires: 300})
			sane(t, r)
			want := int64(3 * 270) // the first tenth is warm-up
			if mode == bench.DHT {
				want = 2 * 270
				if r.PerRank[0] != 0 {
					t.Errorf("rank 0 worked: %v", r.PerRank)
				}
			}
			if mode == bench.Latency {
				want = 270
				if r.PerRank[1] != 0 || r.PerRank[2] != 0 {
					t.Errorf("ranks other than 0 acquired: %v", r.PerRank)
				}
			}
			if r.Acquires != want {
				t.Errorf("%d acquires, want %d", r.Acquires, want)
			}
			if r.ShareDeviation != 0 {
				t.Errorf("share deviation %v with equal shares %v", r.ShareDeviation, r.PerRank)
			}
		})
	}
}

func TestDurationInEveryMode(t *testing.T) {
	for _, mode := range bench.Modes() {
		if mode == bench.DHT {
			continue // has none
		}
		t.Run(string(mode), func(t *testing.T) {
			r := measure(t, 1, 2, bench.Config{Lock: "dmcs", Mode: mode, Duration: 40 * time.Millisecond})
			sane(t, r)
			if r.Seconds < 0.035 {
				t.Errorf("measured for %v s, want 0.036 or a little more", r.Seconds)
			}
		})
	}
}

func TestManyLocks(t *testing.T) {
	for _, mode := range []bench.Mode{bench.Latency, bench.SOB, bench.WCSB} {
		r := measure(t, 2, 2, bench.Config{Lock: "dmcs", Mode: mode, Acquires: 200, Locks: 7})
		sane(t, r)
		if r.Locks != 7 || r.Nodes != 2 {
			t.Errorf("%s: %d locks on %d nodes, want 7 on 2", mode, r.Locks, r.Nodes)
		}
	}
}

func TestOneAcquire(t *testing.T) {
	for _, mode := range bench.Modes() {
		r := measure(t, 1, 2, bench.Config{Lock: "dmcs", Mode: mode, Acquires: 1})
		sane(t, r)
	}
}

func TestOversubscribed(t *testing.T) {
	one := measure(t, 1, 1, bench.Config{Lock: "dmcs", Mode: bench.ECSB, Acquires: 10})
	if one.Oversubscribed {
		t.Errorf("one rank on %d cores counts as oversubscribed", one.Cores)
	}
	many := measure(t, 1, one.Cores+1, bench.Config{Lock: "dmcs", Mode: bench.ECSB, Acquires: 10})
	if !many.Oversubscribed || many.Cores != one.Cores {
		t.Errorf("%d ranks on %d cores do not count as oversubscribed", many.Ranks, many.Cores)
	}
	// Nodes of pretence are one host.
	if r := measure(t, 2, 1, bench.Config{Lock: "dmcs", Mode: bench.ECSB, Acquires: 10}); r.Cores != one.Cores {
		t.Errorf("two nodes of pretence have %d cores, want %d", r.Cores, one.Cores)
	}
}

// Rank 0 of the D-MCS paper's cost table: uncontended, one FAO and one CAS at the home.
func TestOperationsPerAcquire(t *testing.T) {
	r := measure(t, 1, 2, bench.Config{Lock: "dmcs", Mode: bench.Latency, Acquires: 500})
	if r.Ops["FetchAndOp.own"] != 1 || r.Ops["CompareAndSwap.own"] != 1 || r.RemoteOps != 0 {
		t.Errorf("operations per acquire %v, %v remote; want 1 FetchAndOp and 1 CompareAndSwap at the home, rank 0 itself", r.Ops, r.RemoteOps)
	}
	// The home is at rank 0, so that the other rank's FAO is far from it.
	r = measure(t, 2, 1, bench.Config{Lock: "dmcs", Mode: bench.ECSB, Acquires: 500})
	if r.Ops["FetchAndOp.own"] != 0.5 || r.Ops["FetchAndOp.far"] != 0.5 || r.RemoteOps < 0.5 {
		t.Errorf("operations per acquire %v, %v remote; want half of the FetchAndOps far", r.Ops, r.RemoteOps)
	}
}

// A rank that waits idle leaves the processor to rank 0.
func TestLatencyLeavesOthersIdle(t *testing.T) {
	alone := measure(t, 1, 1, bench.Config{Lock: "dmcs", Mode: bench.Latency, Acquires: 20000})
	among := measure(t, 1, 16, bench.Config{Lock: "dmcs", Mode: bench.Latency, Acquires: 20000})
	if among.Min > 5*alone.Min {
		t.Errorf("uncontended acquire takes %v ns alone and %v ns among 15 idle ranks", alone.Min, among.Min)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  bench.Config
		want string
		is   error
	}{
		{bench.Config{Lock: "nope", Mode: bench.ECSB}, "dmcs", lock.ErrConfig},
		{bench.Config{Lock: "dmcs", Mode: "nope"}, "latency, lb, ecsb, sob, wcsb, warb, dht", bench.ErrConfig},
		{bench.Config{Lock: "dmcs", Mode: bench.ECSB, Duration: -1}, "duration", bench.ErrConfig},
		{bench.Config{Lock: "dmcs", Mode: bench.ECSB, Acquires: -1}, "acquires", bench.ErrConfig},
		{bench.Config{Lock: "dmcs", Mode: bench.ECSB, Acquires: 1, Duration: 1}, "both", bench.ErrConfig},
		{bench.Config{Lock: "dmcs", Mode: bench.ECSB, Locks: -1}, "locks", bench.ErrConfig},
		{bench.Config{Lock: "dmcs", Mode: bench.ECSB, Readers: 1.5}, "0 to 1", bench.ErrConfig},
		{bench.Config{Lock: "dmcs", Mode: bench.ECSB, Readers: math.NaN()}, "0 to 1", bench.ErrConfig},
		{bench.Config{Lock: "dmcs", Mode: bench.ECSB, Readers: 0.5}, "no shared mode", bench.ErrConfig},
		{bench.Config{Lock: bench.Atomic, Mode: bench.ECSB}, `"atomic"`, lock.ErrConfig},
		{bench.Config{Lock: "dmcs", Mode: bench.DHT, Duration: 1}, "no duration", bench.ErrConfig},
		{bench.Config{Lock: "dmcs", Mode: bench.DHT, Locks: 2}, "one volume", bench.ErrConfig},
		{bench.Config{Lock: "dmcs:", Mode: bench.ECSB}, "name=value", lock.ErrConfig},
		{bench.Config{Lock: "dmcs:tr", Mode: bench.ECSB}, "name=value", lock.ErrConfig},
		{bench.Config{Lock: "dmcs:tr=1:tr=2", Mode: bench.ECSB}, "twice", lock.ErrConfig},
		{bench.Config{Lock: "testrw:tr=1", Mode: bench.ECSB}, `no parameter "tr"; it has: wait, start`, lock.ErrConfig},
		{bench.Config{Lock: "dmcs:tr=1", Mode: bench.ECSB}, `no parameter "tr"; it has: none`, lock.ErrConfig},
	} {
		err := c.cfg.Validate()
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.cfg, err, c.want)
		}
	}
	cfg := bench.Config{Lock: "dmcs", Mode: bench.ECSB}
	if err := cfg.Validate(); err != nil || cfg.Duration != time.Second || cfg.Locks != 1 {
		t.Errorf("defaults %+v, error %v; want 1 s and 1 lock", cfg, err)
	}
	cfg = bench.Config{Lock: "dmcs", Mode: bench.LB}
	if err := cfg.Validate(); err != nil || cfg.Duration != 0 || cfg.Acquires != 100_000 {
		t.Errorf("defaults of LB %+v, error %v; want the paper's 100,000 acquires", cfg, err)
	}
}

func TestReports(t *testing.T) {
	r := measure(t, 1, 2, bench.Config{Lock: "testrw", Mode: bench.ECSB, Acquires: 200, Readers: 0.75, Locks: 3})
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(r); err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	keys := strings.Fields(`mode lock ranks nodes cores oversubscribed transport duration_seconds acquires acquires_per_second
		ns_per_acquire_median ns_per_acquire_min ns_per_acquire_p99 ns_per_acquire_p999 acquires_per_rank share_deviation
		ops_per_acquire num_gc gogc`)
	for _, k := range keys {
		if _, ok := m[k]; !ok {
			t.Errorf("JSON has no %q", k)
		}
	}
	if m["writers"] != 0.25 || m["locks"] != 3.0 {
		t.Errorf("JSON has writers %v and locks %v, want 0.25 and 3", m["writers"], m["locks"])
	}

	b.Reset()
	if err := r.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("CSV of %d rows, error %v; want 2", len(rows), err)
	}
	column := map[string]string{}
	for i, name := range rows[0] {
		column[name] = rows[1][i]
	}
	if column["lock"] != "testrw" || column["acquires"] != "360" || column["acquires_per_rank"] != "180 180" {
		t.Errorf("CSV says %v", column)
	}
	for _, k := range keys {
		if _, ok := column[k]; !ok && k != "ops_per_acquire" {
			t.Errorf("CSV has no %q", k)
		}
	}

	b.Reset()
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"testrw, ecsb: 2 ranks on 1 node", "writers     25 %", "locks       3,", "360 in", "median", "FetchAndOp", "collector"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("text does not contain %q:\n%s", want, &b)
		}
	}
}

// A lock that does not exclude is found out by the counter.
func TestLostUpdatesAreFound(t *testing.T) {
	err := inproc.Run(4, func(c rma.Comm) error {
		_, err := bench.Run(c, bench.Config{Lock: "testopen", Mode: bench.WCSB, Acquires: 2000})
		return err
	})
	if !errors.Is(err, bench.ErrExclusion) || !strings.Contains(err.Error(), "testopen") {
		t.Fatalf("error %v, want ErrExclusion that names the lock", err)
	}
}

// Errors of one rank are errors of all: no rank is left waiting.
func TestOpenFailsAtOneRank(t *testing.T) {
	err := inproc.Run(3, func(c rma.Comm) error {
		_, err := bench.Run(c, bench.Config{Lock: "testfail", Mode: bench.ECSB, Acquires: 10})
		if err == nil {
			t.Errorf("rank %d: no error", c.Rank())
		}
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "rank 1: "+errOpen.Error()) {
		t.Fatalf("error %v, want that of rank 1", err)
	}
}

func TestTimedLoopsDoNotAllocate(t *testing.T) {
	if rmatest.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, mode := range []bench.Mode{bench.Latency, bench.ECSB, bench.SOB} {
		allocations := func(acquires int) float64 {
			return testing.AllocsPerRun(1, func() { measure(t, 1, 1, bench.Config{Lock: "dmcs", Mode: mode, Acquires: acquires}) })
		}
		// Opening, counting and reporting do allocate, about the same for both.
		if few, many := allocations(30_000), allocations(130_000); many > few+1000 {
			t.Errorf("%s: %v allocations for 30,000 acquires and %v for 130,000", mode, few, many)
		}
	}
}

// TestMemory: a run takes no more than it may, all of its windows together.
func TestMemory(t *testing.T) {
	for _, c := range []struct {
		memory int64
		refuse bool
	}{{0, false}, {1 << 20, false}, {3 * 8 * 500, true}, {8 * 499, true}} {
		cfg := bench.Config{Lock: "dmcs", Mode: bench.ECSB, Locks: 1000, Acquires: 10, Memory: c.memory}
		err := inproc.Run(2, func(comm rma.Comm) error {
			_, err := bench.Run(comm, cfg)
			return err
		})
		if refused := errors.Is(err, bench.ErrConfig); refused != c.refuse || err != nil && !refused {
			t.Errorf("%d bytes: %v", c.memory, err)
		}
	}
	// Locks and data of one memory node, for the timed and the counted pass: a quarter of it
	// counts for each rank.
	for memory, refuse := range map[int64]bool{2 * 2 * 8 * 1000 / 4: false, 2*2*8*1000/4 - 1: true} {
		err := inproc.Job{Nodes: 1, PerNode: 4, MemoryNodes: 1}.Run(func(comm rma.Comm) error {
			_, err := bench.Run(comm, bench.Config{Lock: "testmemory", Mode: bench.SOB, Locks: 1000, Acquires: 10, Memory: memory})
			return err
		})
		if errors.Is(err, bench.ErrConfig) != refuse || err != nil && !refuse {
			t.Errorf("%d bytes of a memory node: %v", memory, err)
		}
	}
}
