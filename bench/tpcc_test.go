package bench_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rmalock/rmalock/bench"
	_ "github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/topo"
)

// tpccSite is a client of 2 hosts with w warehouses each.
func tpccSite(w bench.TPCC) bench.Site {
	return bench.Site{Ranks: 1, Locks: w.Table(2), Homes: 2, Rand: rand.New(rand.NewPCG(1, 2))}
}

// TestTPCC: the shares of the transactions, told apart by how many locks they have in which
// modes, are TPC-C's; a transaction has each lock once; and its locks are rows of its warehouse,
// but for the customers of another one in 15 % of the payments.
func TestTPCC(t *testing.T) {
	const n, per = 40_000, 700_000
	w := bench.TPCC{Warehouses: 2, Think: time.Second}
	c, err := w.Client(tpccSite(w))
	if err != nil {
		t.Fatal(err)
	}
	var kinds [5]int // new order, payment, order status, delivery, stock level
	remote := 0
	for range n {
		var v bench.Visit
		c.Next(&v)
		seen := map[int]bool{}
		warehouses := map[int]int{}
		exclusive := 0
		for _, a := range v.Locks {
			if seen[a.Lock] || a.Lock < 0 || a.Lock >= w.Table(2) {
				t.Fatalf("lock %d is there twice, or none of %d", a.Lock, w.Table(2))
			}
			seen[a.Lock] = true
			host, number := a.Lock%2, a.Lock/2
			warehouses[number/per*2+host]++
			if number %= per; number < 10 || number >= 620_021 {
				t.Fatalf("lock %d is no row", number)
			}
			if a.Mode == lock.Exclusive {
				exclusive++
			}
		}
		first := v.Locks[0].Lock / 2 % per
		kind := 4 // the first lock is a shared district
		switch {
		case first == 10 && v.Locks[0].Mode == lock.Shared:
			kind = 0
			if len(v.Locks) < 5+2*7+10 || exclusive != len(v.Locks)-2-(len(v.Locks)-5-10)/2 {
				t.Fatalf("a new order has %d locks, %d exclusive", len(v.Locks), exclusive)
			}
		case first == 10:
			kind = 1
			if l := len(v.Locks); l != exclusive || l != 4 && l != 6 {
				t.Fatalf("a payment has %d locks, %d exclusive", l, exclusive)
			}
			remote += len(warehouses) - 1
		case exclusive == 0 && first >= 21:
			kind = 2
		case exclusive == len(v.Locks):
			if kind = 3; exclusive != 13 {
				t.Fatalf("a delivery has %d locks", exclusive)
			}
		}
		if kind != 1 && len(warehouses) != 1 {
			t.Fatalf("transaction %d is at warehouses %v", kind, warehouses)
		}
		kinds[kind]++
	}
	for i, want := range []float64{0.45, 0.43, 0.04, 0.04, 0.04} {
		if got := float64(kinds[i]) / n; math.Abs(got-want) > 0.01 {
			t.Errorf("transaction %d has %.3f of all, want %.2f", i, got, want)
		}
	}
	if got := float64(remote) / float64(kinds[1]); math.Abs(got-0.15) > 0.01 {
		t.Errorf("%.3f of the payments are of customers elsewhere, want 0.15", got)
	}
}

// TestScans: scans have the table's lock for as many leases as they take.
func TestScans(t *testing.T) {
	w := bench.TPCC{Scans: 0.5, Hold: 20 * time.Millisecond, Lease: time.Millisecond, Fails: 0.5}
	c, err := w.Client(tpccSite(w))
	if err != nil {
		t.Fatal(err)
	}
	scans, fails, sum := 0, 0, time.Duration(0)
	for range 10_000 {
		var v bench.Visit
		c.Next(&v)
		table := false
		for _, a := range v.Locks {
			table = table || a.Lock/2 == 2
		}
		if v.Inside == 0 {
			fails += v.Fails
			continue
		}
		scans++
		sum += v.Inside
		if !table || len(v.Locks) != 1 || v.Inside < 10*time.Millisecond || v.Inside > 40*time.Millisecond ||
			time.Duration(v.Leases-1)*time.Millisecond < v.Inside || v.Fails > 0 {
			t.Fatalf("scan %+v", v)
		}
	}
	if mean := sum / time.Duration(scans); scans < 4800 || scans > 5200 || mean < 20*time.Millisecond || mean > 23*time.Millisecond {
		t.Errorf("%d scans of 10,000, of %v each", scans, mean)
	}
	if fails < 4500 || fails > 5500 {
		t.Errorf("%d failures of some 5,000 transactions, want one each", fails)
	}
}

// TestPower: the first lock of each host has the share that the power law gives it.
func TestPower(t *testing.T) {
	for alpha, want := range map[float64]float64{1.5: 0.293, 2: 0.5, 3: 0.75} {
		m := bench.Mix{Keys: bench.Keys{Power: alpha}}
		c, err := m.Client(bench.Site{Locks: 16_000_000, Homes: 16, Rand: rand.New(rand.NewPCG(3, 4))})
		if err != nil {
			t.Fatal(err)
		}
		const n = 100_000
		first, at := 0, [16]int{}
		for range n {
			var v bench.Visit
			c.Next(&v)
			at[v.Locks[0].Lock%16]++
			if v.Locks[0].Lock < 16 {
				first++
			}
		}
		if got := float64(first) / n; math.Abs(got-want) > 0.01 {
			t.Errorf("alpha %v: the first locks have %.3f of the draws, want %.3f", alpha, got, want)
		}
		for host, k := range at {
			if math.Abs(float64(k)/n-1./16) > 0.005 {
				t.Errorf("alpha %v: host %d has %d of %d draws", alpha, host, k, n)
			}
		}
	}
}

// crossing is a Workload of visits to two locks, by half of the ranks in the other order.
type crossing struct{ fails int }

func (c crossing) String() string  { return "crossing" }
func (c crossing) Check(int) error { return nil }
func (c crossing) Client(s bench.Site) (bench.Client, error) {
	return crossingClient{s.Rank % 2, c.fails}, nil
}

type crossingClient struct{ first, fails int }

func (c crossingClient) Next(v *bench.Visit) {
	v.Locks = append(v.Locks, bench.Acquire{Lock: c.first}, bench.Acquire{Lock: 1 - c.first})
	v.Fails = c.fails
}

// TestAborts: clients that would wait for each other for ever give way, begin again, and the
// locks exclude. In real time the deadlocks are few, and end by lease.
func TestAborts(t *testing.T) {
	cfg := bench.Config{Lock: "dslr:lease=100us", Workload: crossing{}, Locks: 2, Acquires: 50}
	r := virtually(t, 2, cfg)
	if r.Aborts == 0 || r.Visits != 4*45 {
		t.Errorf("in virtual time %.2f aborts a visit, %d visits", r.Aborts, r.Visits)
	}
	cfg.Lock, cfg.Mode = "dslr:lease=50ms", bench.Clients
	if r := measure(t, 1, 2, cfg); r.Visits != 2*45 {
		t.Errorf("in real time %d visits", r.Visits)
	}
}

// TestFails: locks that a client keeps for ever are taken over, and each failure is an abort. A
// lock that cannot be kept is refused.
func TestFails(t *testing.T) {
	cfg := bench.Config{Lock: "dslr:lease=100us", Workload: crossing{fails: 2}, Locks: 2, Acquires: 20}
	if r := virtually(t, 1, cfg); r.Aborts < 2 || r.Visits != 2*18 {
		t.Errorf("%.2f aborts a visit, %d visits", r.Aborts, r.Visits)
	}
	cfg.Lock, cfg.Mode = "testrw", bench.Clients
	err := inproc.Job{Nodes: 1, PerNode: 1}.Run(func(c rma.Comm) error {
		_, err := bench.Run(c, cfg)
		return err
	})
	if !errors.Is(err, bench.ErrConfig) {
		t.Errorf("a lock without Abandon: %v", err)
	}
}

// TestTPCCEverywhere: the transactions run verified on memory nodes and on ranks, in real time
// and in virtual time.
func TestTPCCEverywhere(t *testing.T) {
	cfg := bench.Config{Lock: "dslr", Mode: bench.Clients, Workload: bench.TPCC{}, Acquires: 40}
	var res *bench.Result
	if err := (inproc.Job{Nodes: 1, PerNode: 2, MemoryNodes: 1}).Run(func(c rma.Comm) error {
		r, err := bench.Run(c, cfg)
		if c.Rank() == 0 {
			res = r
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if res.Locks != 700_000 || res.Visits != 2*36 {
		t.Errorf("%d locks, %d visits", res.Locks, res.Visits)
	}
	m, err := bench.LoadMachine("cx3")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := topo.Parse("node:2 rank:2")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Workload = bench.TPCC{Scans: 0.05, Hold: 100 * time.Microsecond}
	r, err := bench.Virtual{Topology: tree, Machine: m, MemoryNodes: 2, Verbs: true}.Run(cfg)
	if err != nil || r.Visits != 4*36 || r.Locks != 1_400_000 {
		t.Errorf("%v: %+v", err, r)
	}
}
