package bench_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/lock"
)

// TestTraces: transactions have at most 16 locks, each once, in order, of the table; shares of
// exclusive locks and of transactions without any are those of the mixes.
func TestTraces(t *testing.T) {
	const n = 50_000
	for _, k := range []struct {
		of       string
		locks    int
		inside   time.Duration
		readOnly float64 // share of transactions
		most     int     // locks of one
	}{
		{"tatp", 980_000, 2800 * time.Nanosecond, 0.80, 6},
		{"tpcc", 8 * 1200 * 121, 7 * time.Microsecond, 0.08, 16},
	} {
		w := bench.Trace{Of: k.of}
		if w.Table(1) != k.locks {
			t.Errorf("%s: %d locks, want %d", k.of, w.Table(1), k.locks)
		}
		c, err := w.Client(bench.Site{Rank: 3, Rand: rand.New(rand.NewPCG(1, 2))})
		if err != nil {
			t.Fatal(err)
		}
		reads, most := 0, 0
		v := bench.Visit{}
		for range n {
			v.Locks = v.Locks[:0]
			c.Next(&v)
			ids := []int{}
			for _, a := range v.Locks {
				ids = append(ids, a.Lock)
			}
			if len(ids) == 0 || !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) || ids[0] < 0 || ids[len(ids)-1] >= k.locks {
				t.Fatalf("%s: locks %v of %d", k.of, ids, k.locks)
			}
			most = max(most, len(ids))
			if !slices.ContainsFunc(v.Locks, func(a bench.Acquire) bool { return a.Mode == lock.Exclusive }) {
				reads++
			}
		}
		if got := float64(reads) / n; got < k.readOnly-0.01 || got > k.readOnly+0.01 || most != k.most || v.Inside != k.inside || v.Words != 8 {
			t.Errorf("%s: %.3f of transactions read alone, want %.2f; at most %d locks, want %d; inside %v", k.of, got, k.readOnly, most, k.most, v.Inside)
		}
	}
	for _, of := range bench.Traces() { // the same locks, all exclusive; what is only read is not written
		var with, alone bench.Visit
		for w, v := range map[bench.Trace]*bench.Visit{{Of: of}: &with, {Of: of, Alone: true}: &alone} {
			c, err := w.Client(bench.Site{Rank: 3, Rand: rand.New(rand.NewPCG(1, 2))})
			if err != nil {
				t.Fatal(err)
			}
			for range 100 {
				c.Next(v)
			}
		}
		for i, a := range with.Locks {
			want := bench.Acquire{Lock: a.Lock, Mode: lock.Exclusive, Reads: a.Mode == lock.Shared}
			if b := alone.Locks[i]; b != want {
				t.Errorf("%s: lock %d is %+v, want %+v", of, i, b, want)
			}
		}
	}
	if err := (bench.Trace{Of: "tpce"}).Check(1); err == nil {
		t.Error("tpce is taken for a trace")
	}
}
