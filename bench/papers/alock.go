package papers

import (
	"fmt"
	"math"
)

var alock = Paper{
	Name:  "alock",
	Title: "ALock",
	Testbed: "ConnectX-3, up to 20 nodes with 12 threads each, every thread connected to every thread; here the model cx3 with verbs. " +
		"The MCS lock is D-MCS, and both rivals reach the words of their own node by loopback. " +
		"A thread of the model takes no time but that of its memory accesses, so ALock at 100 % locality is faster than any program.",
	Experiments: []Experiment{
		{
			ID: "AF1", Figure: "1", What: "The spin lock on one machine through loopback, 1,000 locks, 1 to 16 threads",
			Flags: "--backend sim --machine cx3 --verbs --qps thread-pair --lock rdma-spin --loopback rdma-spin --mode ecsb --locks 1000 --per-node 16 --ranks 1,2,4,6,8,12,16",
			Quick: "--acquires 200", Full: "--acquires 2000",
			Claims: []Claim{
				{What: "throughput peaks at 2 to 8 threads, and falls to less than three quarters of that at 16", Class: S, Holds: func(r Runs) (bool, string) {
					peak, most := 0, 0.0
					for _, n := range []int{1, 2, 4, 6, 8, 12, 16} {
						if v := r.Ranks(n).Of(Throughput); v > most {
							peak, most = n, v
						}
					}
					last := r.Ranks(16).Of(Throughput)
					return peak >= 2 && peak <= 8 && last < 0.75*most, fmt.Sprintf("%.1f M/s with %d threads, %.1f with 16", most/1e6, peak, last/1e6)
				}},
			},
		},
		{
			ID: "AF4", Figure: "4", What: "Remote budgets of 5, 10 and 20 with a local one of 5, 100 locks, 20 nodes; means over 95, 90 and 85 % locality",
			Flags: alockRun + " --lock alock:REMOTE=5,alock:REMOTE=10,alock:REMOTE=20 --locks 100 --locality 85,90,95 " + alockNodes(20),
			Quick: "--duration 300us", Full: "--duration 2ms",
			Claims: []Claim{
				{What: "a budget of 20 over one of 5, gain", Paper: UpTo(23), Unit: "%", Class: T, Of: func(r Runs) float64 { return budgets(r, 20) },
					Gap: "A remote budget pays where it is used up. Of 100 remote acquires at 85 % locality 56 look at the other cohort with a budget of 5 and 54 with one of 20: " +
						"all but 3 of these found their queue empty. 240 threads at 100 locks cannot do much else: as a closed network of servers they find 29 of 100 queues empty at least, " +
						"and use up a budget of 5 in 6 of 100 acquires at most. " +
						"With 20 locks 26 of 100 look with a budget of 5 and 17 with one of 20, and a run of 2 ms gains 4.0, 3.8 and 2.9 % at 85, 90 and 95 %. " +
						"The paper does not say how often its program competes.",
					Known: Range{-5, 8}},
				{What: "a budget of 20 is not slower than one of 5", Class: S, Holds: func(r Runs) (bool, string) {
					ten, twenty := budgets(r, 10), budgets(r, 20)
					return twenty > -3, fmt.Sprintf("10: %+.1f %%, 20: %+.1f %%", ten, twenty)
				}},
			},
		},
		{
			ID: "AF5-20", Figure: "5i to 5l, 6", What: "The lock table on 20 nodes with 12 threads each: 20, 100 and 1,000 locks at 85, 95 and 100 % locality",
			Flags: alockRun + " --lock alock,dmcs,rdma-spin --loopback dmcs,rdma-spin --locks 20,100,1000 --locality 85,95,100 " + alockNodes(20),
			Quick: "--duration 300us", Full: "--duration 5ms",
			Claims: []Claim{
				{What: "20 locks, 100 % local, over MCS", Paper: UpTo(24), Unit: "x", Class: O, Of: overMost(20, "dmcs", 100)},
				{What: "20 locks, 100 % local, over spin", Paper: UpTo(22), Unit: "x", Class: O, Of: overMost(20, "rdma-spin", 100)},
				{What: "20 locks, mixed, over MCS", Paper: UpTo(29), Unit: "x", Class: K, Of: overMost(20, "dmcs", 85, 95)},
				{What: "20 locks, mixed, over spin", Paper: UpTo(24), Unit: "x", Class: K, Of: overMost(20, "rdma-spin", 85, 95)},
				{What: "100 locks, mixed, over spin", Paper: UpTo(4), Unit: "x", Class: O, Of: overMost(100, "rdma-spin", 85, 95)},
				{What: "1,000 locks, 85 % local, over MCS", Paper: UpTo(3.8), Unit: "x", Class: R, Of: overMost(1000, "dmcs", 85)},
				{What: "1,000 locks, 85 % local, over spin", Paper: UpTo(3.3), Unit: "x", Class: R, Of: overMost(1000, "rdma-spin", 85)},
				{What: "1,000 locks, mixed, over MCS, one-sided", Paper: UpTo(3.8), Unit: "x", Class: O, Of: overMost(1000, "dmcs", 85, 95), Note: alockTooFast},
				{What: "100 locks, 95 % local: mean latency of MCS over ALock's, the same in the paper, one-sided", Paper: Exactly(1), Unit: "x", Class: O, Of: latency(100, 95, "dmcs"),
					Note: "MCS makes 5.3 CAS for an acquire here, and the card's unit for atomics is full: its swap is a loop of CAS, which begins again where another rank came first. " +
						"With 1,000 locks it makes 2.2, and with a swap in one operation it would make 2; ALock makes 0.13. " +
						"In the paper ALock gets slower from 20 to 100 locks, as hand-overs get rarer (6.2), and so meets MCS; in the model it gets twice as fast, " +
						"as a free lock costs a local rank no more than a hand-over."},
				{What: "20 locks, 100 % local: mean latency of MCS over ALock's", Paper: UpTo(17), Unit: "x", Class: O, Of: latency(20, 100, "dmcs")},
				{What: "20 locks, 100 % local: mean latency of spin over ALock's", Paper: UpTo(33), Unit: "x", Class: O, Of: latency(20, 100, "rdma-spin")},
				{What: "1,000 locks, 100 % local: mean latency of MCS over ALock's", Paper: Exactly(13), Unit: "x", Class: O, Of: latency(1000, 100, "dmcs")},
				{What: "1,000 locks, 100 % local: mean latency of spin over ALock's", Paper: Exactly(10), Unit: "x", Class: O, Of: latency(1000, 100, "rdma-spin")},
				{What: "1,000 locks, 95 % local: mean latency of MCS over ALock's", Paper: Exactly(2.1), Unit: "x", Class: O, Of: latency(1000, 95, "dmcs")},
				{What: "1,000 locks, 85 % local: mean latency of MCS over ALock's", Paper: Exactly(1.35), Unit: "x", Class: O, Of: latency(1000, 85, "dmcs")},
			},
		},
		{
			ID: "AF5-5", Figure: "5c", What: "The lock table on 5 nodes with 12 threads each, 1,000 locks",
			Flags: alockRun + " --lock alock --locks 1000 --locality 85,90,95 " + alockNodes(5),
			Quick: "--duration 500us", Full: "--duration 10ms",
			Claims: []Claim{
				{What: "from 85 to 90 % locality, gain", Paper: Exactly(40), Unit: "%", Class: T, Of: gain(85, 90)},
				{What: "from 90 to 95 % locality, gain, one-sided", Paper: Exactly(75), Unit: "%", Class: O, Of: gain(90, 95), Note: alockTooFast},
			},
		},
	},
}

const (
	alockRun     = "--backend sim --machine cx3 --verbs --qps thread-pair --mode clients"
	alockTooFast = "At 95 % locality the model's local acquires cost nothing but memory, 0.2 us a pair, and the remote ones decide alone: " +
		"ALock then gains what locality gives, nearly 1/0.05 of a remote acquire. The paper's program takes longer for each local pair, " +
		"so the model can only be ahead here: the row is one-sided."
)

// alockNodes is nodes of 12 threads each. Ranks go round the nodes, and so do the locks.
func alockNodes(n int) string { return fmt.Sprintf("--topology 'node:%d core:12 by:node'", n) }

// local keeps the runs with a percentage of local acquires.
func (r Runs) local(percent int) Runs { return r.Workload(fmt.Sprintf("local %d %%", percent)) }

// overMost is the greatest ratio of ALock's throughput and another's with a number of locks.
func overMost(locks int, other string, locality ...int) func(Runs) float64 {
	return func(r Runs) float64 {
		most := math.NaN()
		for _, percent := range locality {
			if v := Over(Throughput, "alock", other)(r.Locks(locks).local(percent)); !(v <= most) {
				most = v
			}
		}
		return most
	}
}

// latency is the ratio of mean latencies of a lock and ALock.
func latency(locks, percent int, other string) func(Runs) float64 {
	return func(r Runs) float64 { return Over(Mean, other, "alock")(r.Locks(locks).local(percent)) }
}

// gain is by how much ALock's throughput grows with locality, %.
func gain(from, to int) func(Runs) float64 {
	return func(r Runs) float64 { return 100 * (r.local(to).Of(Throughput)/r.local(from).Of(Throughput) - 1) }
}

// budgets is by how much throughput grows with a remote budget in place of 5, the mean over
// localities, %.
func budgets(r Runs, remote int) float64 {
	sum := 0.0
	for _, percent := range []int{85, 90, 95} {
		sum += Over(Throughput, fmt.Sprintf("alock:REMOTE=%d", remote), "alock:REMOTE=5")(r.local(percent)) - 1
	}
	return 100 * sum / 3
}
