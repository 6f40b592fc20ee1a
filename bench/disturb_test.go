package bench_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rmalock/rmalock/bench"
	_ "github.com/rmalock/rmalock/declock"
)

// disturbed runs clients of DecLock on four nodes of two ranks and a memory node, for 2 ms.
func disturbed(t *testing.T, v bench.Virtual, lock string) *bench.Result {
	t.Helper()
	v.Topology, v.Machine, v.Verbs, v.MemoryNodes = nodes(8, 2), steady{1000}, true, 1
	return virtual(t, v, bench.Config{Lock: lock, Mode: bench.Clients, Locks: 2, Duration: 2 * time.Millisecond, Workload: bench.Mix{Accesses: 1}})
}

// TestCounts: a result of mode clients has what the locks have counted, and the times in Unlock. An
// acquire that waits gets one message; a queue that is too short is reset.
func TestCounts(t *testing.T) {
	r := disturbed(t, bench.Virtual{}, "declock")
	if m := r.Counts["messages"]; m < 0.2 || m > 1 || r.Counts["resets"] != 0 {
		t.Errorf("counts per acquire: %v", r.Counts)
	}
	if r.Release == nil || r.Release.Median <= 2000 || r.Release.Median >= r.Median {
		t.Errorf("release %+v of visits of %v ns", r.Release, r.Median)
	}
	short := disturbed(t, bench.Virtual{}, "declock:CAPACITY=2")
	if short.Counts["resets"] <= 0 || short.Counts["reset ns"] <= 2000*short.Counts["resets"] || short.Counts["aborts"] < short.Counts["resets"] {
		t.Errorf("counts per acquire with a short queue: %v", short.Counts)
	}
	if r := disturbed(t, bench.Virtual{}, "testmemory"); r.Counts != nil {
		t.Errorf("a lock that counts nothing: %v", r.Counts)
	}
}

// TestRankDelay: ranks that are farther from each other than from the memory node slow down a lock
// that sends messages, and no other.
func TestRankDelay(t *testing.T) {
	far := bench.Virtual{RankDelay: 5 * time.Microsecond}
	if a, b := disturbed(t, bench.Virtual{}, "declock"), disturbed(t, far, "declock"); b.Mean < a.Mean+2000 {
		t.Errorf("declock: mean %v ns, with a delay %v", a.Mean, b.Mean)
	}
	if a, b := disturbed(t, bench.Virtual{}, "testmemory"), disturbed(t, far, "testmemory"); a.Mean != b.Mean {
		t.Errorf("a lock without messages: mean %v ns, with a delay %v", a.Mean, b.Mean)
	}
}

// TestStops: while memory nodes stand still no visit ends, and afterwards they go on. When a node
// stops, the others go on without its ranks, after two leases.
func TestStops(t *testing.T) {
	ms := func(r *bench.Result, from, to int) (n int64) {
		for _, v := range r.PerMs[from:to] {
			n += v
		}
		return n
	}
	at := func(v bench.Virtual) *bench.Result {
		v.Topology, v.Machine, v.Verbs, v.MemoryNodes = nodes(8, 2), steady{1000}, true, 1
		return virtual(t, v, bench.Config{Lock: "declock:LEASE=1ms", Mode: bench.Clients, Locks: 2, Duration: 30 * time.Millisecond, Workload: bench.Mix{Accesses: 1}})
	}
	if r := at(bench.Virtual{MemoryStop: bench.Stop{At: 10 * time.Millisecond, For: 500 * time.Microsecond}}); ms(r, 11, 29) < 18*ms(r, 5, 9)/5 || r.PerMs[10] > r.PerMs[9]*3/4 {
		t.Errorf("a memory node that stops: visits by ms %v", r.PerMs)
	}
	if r := at(bench.Virtual{NodeStop: bench.Stop{At: 10 * time.Millisecond, For: 30 * time.Millisecond}}); ms(r, 20, 29) < ms(r, 0, 9)/2 {
		t.Errorf("a node that stops: visits by ms %v", r.PerMs)
	}
	many := virtual(t, bench.Virtual{
		Topology: nodes(64, 8), Machine: steady{1000}, Verbs: true, MemoryNodes: 1, NodeStop: bench.Stop{At: 8 * time.Millisecond, For: 60 * time.Millisecond},
	}, bench.Config{Lock: "declock:POLICY=ts-pf:CAPACITY=8:LEASE=500us", Mode: bench.Clients, Locks: 40, Duration: 30 * time.Millisecond, Workload: bench.Mix{Accesses: 1}})
	if ms(many, 24, 30) < ms(many, 3, 8)/2 {
		t.Errorf("a node of eight that stops, with a queue of eight entries: visits by ms %v, counts %v", many.PerMs[:30], many.Counts)
	}
	if r := at(bench.Virtual{}); r.PerMs != nil {
		t.Errorf("nothing stops: visits by ms %v", r.PerMs)
	}
	bad := bench.Virtual{NodeStop: bench.Stop{At: -1}}
	if err := bad.Validate(); !errors.Is(err, bench.ErrConfig) {
		t.Errorf("error %v", err)
	}
}
