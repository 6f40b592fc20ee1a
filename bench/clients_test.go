package bench_test

import (
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/topo"
)

// virtually runs mode clients in virtual time, on two nodes.
func virtually(t *testing.T, perNode int, cfg bench.Config) *bench.Result {
	t.Helper()
	m, err := bench.LoadMachine("aries")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := topo.Build(places(2*perNode, perNode))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Mode = bench.Clients
	r, err := bench.Virtual{Topology: tree, Machine: m}.Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEveryMix: each choice of a Mix works in real and in virtual time, and the lock excludes.
func TestEveryMix(t *testing.T) {
	for _, m := range []bench.Mix{
		{},
		{Keys: bench.Keys{Theta: 0.99}, Accesses: 3},
		{Keys: bench.Keys{Theta: 1.2, Scrambled: true}, Think: 2 * time.Microsecond},
		{Keys: bench.Keys{HotSet: 0.1, HotShare: 0.9}, Together: 3, Inside: time.Microsecond},
		{Local: 0.9, Together: 2, Accesses: 1},
	} {
		for _, rate := range []float64{0, 2e5} {
			cfg := bench.Config{Lock: "testrw", Mode: bench.Clients, Workload: m, Rate: rate, Locks: 40, Readers: 0.5, Acquires: 100}
			for where, r := range map[string]*bench.Result{"inproc": measure(t, 2, 2, cfg), "sim": virtually(t, 2, cfg)} {
				if where == "inproc" {
					sane(t, r)
				}
				if r.Visits != 4*90 || r.Acquires != r.Visits*int64(max(1, m.Together)) {
					t.Errorf("%s, %v: %d visits and %d acquires of 4 ranks with 90", where, m, r.Visits, r.Acquires)
				}
				if len(r.RankTimes) != 4 || len(r.Busiest) == 0 || len(r.CDF) == 0 || r.Workload != m.String() || r.Offered != rate {
					t.Errorf("%s, %v: result %+v", where, m, r)
				}
				for _, f := range [][]bench.Step{r.CDF, r.ShareCDF, r.Busiest[0].CDF} {
					rises(t, f)
				}
			}
		}
	}
}

// rises fails if f is no distribution function.
func rises(t *testing.T, f []bench.Step) {
	t.Helper()
	for i, s := range f {
		if s.Share <= 0 || s.Share > 1 || i > 0 && (s.At < f[i-1].At || s.Share < f[i-1].Share) {
			t.Fatalf("step %d of %v", i, f)
		}
	}
	if f[len(f)-1].Share != 1 {
		t.Errorf("the last step is %v", f[len(f)-1])
	}
}

// TestClientsTwice: equal seeds make equal visits, in equal virtual times.
func TestClientsTwice(t *testing.T) {
	run := func(seed uint64) *bench.Result {
		return virtually(t, 8, bench.Config{Lock: "dmcs", Seed: seed, Rate: 1e6, Locks: 100, Acquires: 200,
			Workload: bench.Mix{Keys: bench.Keys{Theta: 0.9}, Together: 2}})
	}
	one := run(1)
	if again := run(1); !reflect.DeepEqual(one, again) {
		t.Errorf("one seed gives\n%+v and\n%+v", one, again)
	}
	if other := run(2); other.Mean == one.Mean {
		t.Errorf("two seeds give a mean of %v ns", one.Mean)
	}
}

// TestBusiestLocks: the locks that a Zipf distribution draws most are found with their shares,
// in real time and in virtual time.
func TestBusiestLocks(t *testing.T) {
	cfg := bench.Config{Lock: "dmcs", Mode: bench.Clients, Locks: 1000, Acquires: 3000, Rate: 1e9, Workload: bench.Mix{Keys: bench.Keys{Theta: 1.2}}}
	zeta := 0.0
	for k := 1; k <= cfg.Locks; k++ {
		zeta += math.Pow(float64(k), -1.2)
	}
	for where, r := range map[string]*bench.Result{"inproc": measure(t, 1, 4, cfg), "sim": virtually(t, 2, cfg)} {
		for id := range 2 { // whose shares are exact
			want := math.Pow(float64(id+1), -1.2) / zeta
			if b := r.Busiest[id]; b.Lock != id || math.Abs(b.Share-want) > 0.03 {
				t.Errorf("%s: the busiest lock number %d is %d with %.3f of the acquires, want %.3f", where, id, b.Lock, b.Share, want)
			}
		}
		if r.LocksTaken < 100 || r.LocksTaken > 1000 || len(r.Busiest) != 16 {
			t.Errorf("%s: %d locks taken, %d shown", where, r.LocksTaken, len(r.Busiest))
		}
	}
}

// TestLateVisitsCount: a visit that begins late, for the one before it took long, counts from
// when it was to begin. Each visit takes 10 us and visits are to begin every 5 us: in a closed
// loop none is late, in an open one the last of 1,000 is late by 5 ms.
func TestLateVisitsCount(t *testing.T) {
	cfg := bench.Config{Lock: "dmcs", Acquires: 1000, Workload: bench.Mix{Inside: 10 * time.Microsecond}, Locks: 64}
	cfg.Workload = bench.Mix{Think: 10 * time.Microsecond}
	closed := virtually(t, 1, cfg)
	cfg.Rate = 2 / 5e-6
	open := virtually(t, 1, cfg)
	if closed.Max > 100e3 || open.Max < 4e6 || open.Median < 1e6 {
		t.Errorf("max %v ns in the closed loop; median %v and max %v ns in the open one", closed.Max, open.Median, open.Max)
	}
	cfg.Rate = 2 / 50e-6
	if rested := virtually(t, 1, cfg); rested.Median > 100e3 || math.Abs(rested.VisitsPerSecond/cfg.Rate-1) > 0.15 {
		t.Errorf("at %v visits per second: %v, median %v ns", cfg.Rate, rested.VisitsPerSecond, rested.Median)
	}
}

// TestClientsFindLostUpdates: locks that do not exclude are found, by their writers and by
// their readers.
func TestClientsFindLostUpdates(t *testing.T) {
	for name, readers := range map[string]float64{"testopen": 0, "testblind": 0.99} {
		err := inproc.Run(4, func(c rma.Comm) error {
			_, err := bench.Run(c, bench.Config{Lock: name, Mode: bench.Clients, Locks: 4, Readers: readers, Acquires: 20000, Workload: bench.Mix{Together: 2}})
			return err
		})
		if !errors.Is(err, bench.ErrExclusion) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want ErrExclusion that names the lock", name, err)
		}
	}
}

// TestWrongMix: what cannot be is refused, and said.
func TestWrongMix(t *testing.T) {
	for _, c := range []struct {
		cfg  bench.Config
		want string
	}{
		{bench.Config{Mode: bench.ECSB, Workload: bench.Mix{}}, "mode ecsb has a workload of its own"},
		{bench.Config{Mode: bench.SOB, Rate: 1}, "want mode clients"},
		{bench.Config{Rate: -1}, "rate is -1"},
		{bench.Config{Rate: math.NaN()}, "rate is NaN"},
		{bench.Config{Workload: bench.Mix{Keys: bench.Keys{Theta: 5}}}, "theta of keys is 5, want 0 to 3"},
		{bench.Config{Workload: bench.Mix{Keys: bench.Keys{HotSet: 2}}}, "hot set"},
		{bench.Config{Workload: bench.Mix{Keys: bench.Keys{HotSet: 0.1, HotShare: 2}}}, "hot share"},
		{bench.Config{Workload: bench.Mix{Keys: bench.Keys{HotSet: 0.1, HotShare: 1, Theta: 1}}}, "one of them"},
		{bench.Config{Workload: bench.Mix{Local: 1.5}}, "share of local locks is 1.5"},
		{bench.Config{Workload: bench.Mix{Together: 2}}, "2 locks together of 1 with keys uniform, want 1 to 1"},
		{bench.Config{Locks: 100, Workload: bench.Mix{Together: 11, Keys: bench.Keys{HotSet: 0.1, HotShare: 1}}}, "want 1 to 10"},
		{bench.Config{Workload: bench.Mix{Accesses: -1}}, "accesses is -1"},
		{bench.Config{Workload: bench.Mix{Think: -1}}, "time after"},
	} {
		c.cfg.Lock = "dmcs"
		if c.cfg.Mode == "" {
			c.cfg.Mode = bench.Clients
		}
		if err := c.cfg.Validate(); !errors.Is(err, bench.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.cfg, err, c.want)
		}
	}
	// Two locks on two nodes: one is local to each, so that two together cannot be.
	err := inproc.RunNodes(2, 1, func(c rma.Comm) error {
		_, err := bench.Run(c, bench.Config{Lock: "dmcs", Mode: bench.Clients, Locks: 2, Acquires: 10, Workload: bench.Mix{Local: 1, Together: 2}})
		return err
	})
	if !errors.Is(err, bench.ErrConfig) || !strings.Contains(err.Error(), "the homes of 1 locks are on the node of rank 0") {
		t.Errorf("two local locks of one: error %v", err)
	}
}

// TestTenMillionLocks: a run takes memory for the locks that it acquires, and not for all.
func TestTenMillionLocks(t *testing.T) {
	if rmatest.RaceEnabled {
		t.Skip("the race detector allocates by itself")
	}
	m, err := bench.LoadMachine("cx4")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := topo.Build(places(256, 32))
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := bench.Virtual{Topology: tree, Machine: m, Verbs: true, MemoryNodes: 4, Coroutines: 2}.Run(bench.Config{
		Lock: "testmemory", Mode: bench.Clients, Locks: 10_000_000, Acquires: 20, Readers: 0.5,
		Workload: bench.Mix{Keys: bench.Keys{Theta: 0.99}, Accesses: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 200 || r.Visits != 256*18 {
		t.Errorf("%d visits allocate %d MiB, want at most 200", r.Visits, mib)
	} else {
		t.Logf("%d visits allocate %d MiB", r.Visits, mib)
	}
	if r.Retries <= 0 || r.Network["CompareAndSwap.memory"] <= r.Network["Accumulate.memory"] {
		t.Errorf("%v retries, operations %v", r.Retries, r.Network)
	}
}

// sequence is a Workload of its own: ids in turn.
type sequence struct{ ids []int }

func (s sequence) String() string                          { return "sequence" }
func (s sequence) Check(int) error                         { return nil }
func (s sequence) Client(bench.Site) (bench.Client, error) { return &sequenceClient{s.ids, 0}, nil }

type sequenceClient struct {
	ids []int
	at  int
}

func (s *sequenceClient) Next(v *bench.Visit) {
	v.Locks = append(v.Locks, bench.Acquire{Lock: s.ids[s.at%len(s.ids)], Mode: lock.Exclusive})
	s.at++
}

// TestOwnWorkload: a Workload from outside is run as it says. All visits are timed: of a sample,
// one in 50 since these take so little, some locks would be missing.
func TestOwnWorkload(t *testing.T) {
	tree, err := topo.Build(places(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	m, err := bench.LoadMachine("aries")
	if err != nil {
		t.Fatal(err)
	}
	r, err := bench.Virtual{Topology: tree, Machine: m}.Run(bench.Config{Lock: "dmcs", Mode: bench.Clients, Locks: 9, Acquires: 1000, Workload: sequence{[]int{3, 5, 5, 7}}})
	if err != nil {
		t.Fatal(err)
	}
	if r.LocksTaken != 3 || r.Busiest[0].Lock != 5 || math.Abs(r.Busiest[0].Share-0.5) > 0.01 || r.Workload != "sequence" {
		t.Errorf("%d locks taken, busiest %+v", r.LocksTaken, r.Busiest)
	}
}

// TestVisitsDoNotAllocate: twice as many visits allocate no more.
func TestVisitsDoNotAllocate(t *testing.T) {
	if rmatest.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, m := range []bench.Mix{{}, {Keys: bench.Keys{Theta: 0.99}, Together: 3, Accesses: 1, Local: 1}} {
		allocations := func(visits int) float64 {
			return testing.AllocsPerRun(1, func() {
				measure(t, 1, 1, bench.Config{Lock: "testrw", Mode: bench.Clients, Readers: 0.5, Locks: 20, Acquires: visits, Workload: m})
			})
		}
		few, many := allocations(20000), allocations(60000)
		if many > few+1000 { // buckets of the histograms, here and there
			t.Errorf("%v: %v allocations with 20,000 visits, %v with 60,000", m, few, many)
		}
	}
}

// TestShares: the distribution function of the ranks' shares is that of their acquires.
func TestShares(t *testing.T) {
	r := virtually(t, 2, bench.Config{Lock: "dmcs", Locks: 8, Acquires: 100})
	if !slices.Equal(r.ShareCDF, []bench.Step{{At: 1, Share: 1}}) {
		t.Errorf("equal shares have the distribution %v", r.ShareCDF)
	}
	r = virtually(t, 2, bench.Config{Lock: "fompi-spin", Locks: 1, Duration: time.Millisecond})
	rises(t, r.ShareCDF)
}
