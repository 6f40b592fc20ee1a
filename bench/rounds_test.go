package bench_test

import (
	"strings"
	"testing"

	"github.com/rmalock/rmalock/bench"
)

// TestRounds: a ratio is that of a round, not of medians of different moments. The time inside is a
// median.
func TestRounds(t *testing.T) {
	var results []*bench.Result
	for seed, moment := range []float64{1, 10, 2, 5, 4} { // "slow" has half of what "fast" has in each round
		for _, lock := range []string{"fast", "slow"} {
			speed := map[string]float64{"fast": 2e6, "slow": 1e6}[lock]
			results = append(results, &bench.Result{
				Mode: bench.ECSB, Lock: lock, Ranks: 2, Writers: 1, Seed: uint64(seed),
				PerSecond: moment * speed, Inside: 1500 * moment, Acquires: 10, PerRank: []int64{4, 6},
			})
		}
	}
	results = append(results, &bench.Result{Mode: bench.Latency, Lock: "fast", Ranks: 2, Writers: 1, PerSecond: 7, Mean: 50})
	var b strings.Builder
	if err := bench.WriteRounds(&b, results); err != nil {
		t.Fatal(err)
	}
	want := []string{"ecsb 2 100 5 8 1 1 1 80 6 fast", "ecsb 2 100 5 4 0.5 0.5 0.5 80 6 slow", "latency 2 100 1 20 1 1 1 0 0 fast"}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for i, line := range lines[1:] {
		if got := strings.Join(strings.Fields(line), " "); len(lines) != 4 || got != want[i] {
			t.Errorf("line %q, want %q", got, want[i])
		}
	}
}
