package papers

import (
	"fmt"
	"math"
)

// On DSLR's testbed: 16 nodes with locks and 16 with 4 workers each, at TPC-C.
const (
	dslrBed   = "--backend sim --machine cx3 --verbs --per-node 4"
	dslrNodes = dslrBed + " --memory-nodes 16 --ranks 64"
	dslrTPCC  = dslrNodes + " --mode tpcc"
)

// dslrRivals are what DSLR is compared with in section 6.1, and the limits of tries of which the
// best counts.
var dslrRivals = []struct{ name, title, locks string }{
	{"retry-on-fail", "Retry-on-Fail", "retry-on-fail:r=10us:retries=3,retry-on-fail:r=10us:retries=20"},
}

// dslrAll are the locks of section 6.1.
func dslrAll() string {
	text := "dslr:omega=5us"
	for _, r := range dslrRivals {
		text += "," + r.locks
	}
	return text
}

// versus makes a claim of each rival.
func versus(claim func(name, title string) Claim) (out []Claim) {
	for _, r := range dslrRivals {
		out = append(out, claim(r.name, r.title))
	}
	return out
}

var dslr = Paper{
	Name:  "dslr",
	Title: "DSLR",
	Testbed: "ConnectX-3, 32 nodes, of which 16 have locks and 16 have 4 workers each; " +
		"here the model cx3 with verbs, and memory nodes in place of the lock servers. " +
		"The lock sets are those of the authors' trace generator; of the limits of tries of each rival the best counts.",
	Experiments: []Experiment{
		{
			ID: "DS-cost", Figure: "4.4", What: "Operations of an acquire and a release of a free lock",
			Flags: "--backend sim --machine cx3 --verbs --memory-nodes 1 --ranks 1 --lock dslr --mode ecsb", Quick: "--acquires 100",
			Claims: []Claim{
				{What: "operations on the memory node per acquire and release", Paper: Exactly(2), Class: E, Of: func(r Runs) float64 { return r.Of(OnMemory) }},
			},
		},
		{
			ID: "DF9", Figure: "9", What: "TPC-C with 10 warehouses a node, 2 to 32 nodes",
			Flags: dslrBed + " --mode tpcc --warehouses 10 --lock dslr:omega=5us", Quick: "--duration 30ms", Full: "--duration 1s",
			Each: []string{"--memory-nodes 1 --ranks 4", "--memory-nodes 4 --ranks 16", "--memory-nodes 16 --ranks 64"},
			Claims: []Claim{
				{What: "throughput of 32 nodes over 2", Paper: Exactly(14.5), Unit: "x", Class: R,
					Of: func(r Runs) float64 { return r.Ranks(64).Of(Throughput) / r.Ranks(4).Of(Throughput) }},
				{What: "mean latency stays level: 32 nodes over 2", Class: S, Holds: func(r Runs) (bool, string) {
					v := r.Ranks(64).Of(Mean) / r.Ranks(4).Of(Mean)
					return v < 1.5, number(v) + "x"
				}},
			},
		},
		{
			ID: "DF16", Figure: "16", What: "TPC-C, one warehouse for 31 nodes, with the paper's reset and with ours; COUNT_MAX is 256 and not 32,768, so that there are resets in a short run",
			Flags: dslrBed + " --memory-nodes 1 --ranks 124 --mode tpcc",
			Quick: "--duration 100ms --lock " + sweep("dslr:omega=5us:countmax=256:reset=exact:backoff=%s", "100us", "10ms"),
			Full: "--duration 2s --lock " + sweep("dslr:omega=5us:countmax=256:reset=exact:backoff=%s", "10us", "100us", "1ms", "10ms") + "," +
				sweep("dslr:omega=5us:countmax=256:reset=drained:backoff=%s", "10us", "100us", "1ms", "10ms"),
			Claims: []Claim{
				{What: "throughput with L = 100 µs over that with 10 ms, at most half", Class: A, Holds: func(r Runs) (bool, string) {
					v := r.Lock("dslr:omega=5us:countmax=256:reset=exact:backoff=100us").Of(Throughput) / r.Lock("dslr:omega=5us:countmax=256:reset=exact:backoff=10ms").Of(Throughput)
					return v < 0.5, number(v)
				}},
			},
		},
		{
			ID: "DF17-18", Figure: "17, 18", What: "TPC-C, attempts that keep their locks for ever; throughput and aborts by lease",
			Flags: dslrTPCC, Quick: "--duration 50ms --fails 1 --lock " + dslrLeases, Full: "--duration 1s --fails 0.1,1,10 --lock " + dslrLeases,
			Claims: []Claim{
				{What: "the best lease is from 50 to 500 µs", Class: A, Holds: func(r Runs) (bool, string) {
					best := r.Workload("fails 1 %").best()
					return best.Lock == "dslr:omega=5us:lease=50us" || best.Lock == "dslr:omega=5us:lease=100us" || best.Lock == "dslr:omega=5us:lease=500us", best.Lock
				}},
				{What: "throughput with a lease of 500 µs and of 10 ms, over the best: falls", Class: S, Holds: func(r Runs) (bool, string) {
					r = r.Workload("fails 1 %")
					best := r.Of(Throughput)
					a, b := r.Lock("dslr:omega=5us:lease=500us").Of(Throughput)/best, r.Lock("dslr:omega=5us:lease=10ms").Of(Throughput)/best
					return b < a && a < 1, fmt.Sprintf("%s, %s", number(a), number(b))
				}},
				{What: "aborts with leases of 10 and 50 µs are many, beside 100 µs", Class: A, Holds: func(r Runs) (bool, string) {
					share := func(lease string) float64 {
						return r.Workload("fails 1 %").Lock("dslr:omega=5us:lease=" + lease).Of(AbortShare)
					}
					a, b, c := share("10us"), share("50us"), share("100us")
					return a > 1.5*c && b > 1.5*c, fmt.Sprintf("%s, %s, %s %%", number(a), number(b), number(c))
				}},
			},
		},
		{
			ID: "DF19", Figure: "19", What: "TPC-C, polling by READs without a pause and at intervals by the queue ahead; capacity is 11 million READs a second of each of the 16 nodes",
			Flags: dslrTPCC + " --lock dslr,dslr:omega=5us", Quick: "--duration 40ms --think 0s,1ms", Full: "--duration 1s --think 0s,100us,1ms,10ms,100ms",
			Claims: []Claim{
				{What: "capacity used by busy polling, at most", Paper: Range{0, 15}, Unit: "%", Class: A, Of: func(r Runs) float64 { return capacity(r.exactly("dslr")) },
					Gap: fasterTransactions, Known: Range{15, 25}},
				{What: "capacity used by dynamic intervals, at most", Paper: Range{0, 7}, Unit: "%", Class: A, Of: func(r Runs) float64 { return capacity(r.Lock("dslr:omega=5us")) },
					Gap: fasterTransactions, Known: Range{7, 9}},
				{What: "throughput by dynamic intervals over busy polling, without a pause: at least 0.98", Class: A, Holds: func(r Runs) (bool, string) {
					if len(r.Workload("think 100ms")) == 0 {
						return false, "" // deadlocks are too few in a short run
					}
					v := r.exactly("dslr:omega=5us").Of(Throughput) / r.exactly("dslr").Of(Throughput)
					return v >= 0.98, number(v)
				}},
			},
		},
	},
}

// fasterTransactions is why the network is busier here.
const fasterTransactions = "The paper's workers need 0.58 ms for a transaction without a pause, " +
	"most of it software, and ours 0.26 ms: the model has no transaction's own work. " +
	"The capacity used goes with the transactions."

// dslrLeases are the leases of appendix A.6.
var dslrLeases = sweep("dslr:omega=5us:lease=%s", "10us", "50us", "100us", "500us", "1ms", "10ms")

// sweep lists a lock with values.
func sweep(format string, values ...string) string {
	text := ""
	for i, v := range values {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(format, v)
	}
	return text
}

// capacity is the greatest share of the NICs' READs that runs use, in percent.
func capacity(r Runs) float64 {
	most := math.NaN()
	for _, run := range r {
		share := 100 * OnMemory(run) * run.PerSecond / (11e6 * float64(run.MemoryNodes))
		if !(share <= most) {
			most = share
		}
	}
	return most
}
