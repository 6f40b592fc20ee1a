package papers

import (
	"fmt"
	"math"
)

// Figure 17: an object store and a B+tree. Up to 32 clients of the store are on one compute node,
// and 16 of the tree, as where the paper has four compute nodes on a machine.
const (
	treeLock = "declock:POLICY=ts-pf:CAPACITY=32" // 32 compute nodes
	appsBed  = "--backend sim --machine cx4 --verbs --masked-swap --qps core --coroutines 2 --memory-nodes 1"

	silentKeys = "The paper does not say how it takes the keys of Twitter's traces. Here they are the exponents of clusters 14 and 53, by which the first object " +
		"has a quarter, or a fifth, of all accesses, and its lock bounds them."

	nodesOrder = "Sherman keeps a lock in a node up to 8 times in a row, DecLock while its clients are older than those of the next node. " +
		"So of 100 updates Sherman makes 11 by a hand-over inside a node, and DecLock 4; with the order given up (Local-Prefer, or 7 in a row) DecLock makes 2.84 million " +
		"updates a second, 2.06 times Sherman's, and 2.36 with it. " +
		"Sherman collapses beyond 256 clients as in the paper, from 2.55 million to 1.38, with 4.3 tries per update that fail and 8.0 operations on the memory node; DecLock makes 5.0. " +
		"The paper has 64 million keys; of 4 million all locks make a quarter more, and the ratio is 1.67."
)

// declockApps are the experiments of section 6.8.
var declockApps = []Experiment{
	storeOf("small", "414 bytes, 65 % gets", "--size 414 --keys zipf:1.2959 --writers 0.35",
		Claim{What: "DecLock over CASLock, the most of all numbers of clients", Paper: UpTo(35.6), Unit: "x", Class: K, Of: mostOfRanks(phaseFair, "caslock"), Gap: rivalsFaster + " " + silentKeys, Known: Range{5, 17}},
		Claim{What: "DecLock over DSLR+, the most of all numbers of clients", Paper: UpTo(3.33), Unit: "x", Class: R, Of: mostOfRanks(phaseFair, "dslr-plus"), Gap: silentKeys, Known: Range{4.1, 5.5}},
		Claim{What: "DecLock over ShiftLock, the most of all numbers of clients", Paper: UpTo(1.48), Unit: "x", Class: R, Of: mostOfRanks(phaseFair, "shiftlock"), Gap: silentKeys, Known: Range{1.05, 2.4}},
		Claim{What: "99 % latency below CASLock's, 256 clients", Paper: UpTo(98.8), Unit: "%", Class: T, Of: tailBelow(phaseFair, "caslock", 256)},
		Claim{What: "99 % latency below DSLR+'s, 256 clients", Paper: UpTo(30.3), Unit: "%", Class: T, Of: tailBelow(phaseFair, "dslr-plus", 256), Gap: silentKeys, Known: Range{40, 75}},
		Claim{What: "99 % latency below ShiftLock's, 256 clients", Paper: UpTo(79.7), Unit: "%", Class: T, Of: tailBelow(phaseFair, "shiftlock", 256), Gap: silentKeys, Known: Range{20, 69.7}},
		Claim{What: "CASLock collapses: 256 clients below the best number", Class: S, Holds: collapses("caslock", 256, 0.5)},
		Claim{What: "DecLock does not: 256 clients over the best number", Class: S, Holds: keeps(phaseFair, 256, 0.75)},
	),
	storeOf("large", "9,213 bytes, 89 % gets", "--size 9213 --keys zipf:1.2061 --writers 0.11",
		Claim{What: "CASLock collapses: 256 clients below the best number", Class: S, Holds: collapses("caslock", 256, 0.6)},
		Claim{What: "DecLock does not: 256 clients over the best number", Class: S, Holds: keeps(phaseFair, 256, 0.75)},
		Claim{What: "DecLock over CASLock, 256 clients, is above 1", Class: S, Holds: above(phaseFair, "caslock", 256)},
		Claim{What: "DecLock over ShiftLock, 256 clients, is not below 1", Class: S, Holds: above(phaseFair, "shiftlock", 256), Gap: silentKeys},
	),
	{
		ID: "LF17b", Figure: "17", What: "The B+tree under Sherman's locks with and without hierarchy, and under DecLock: updates alone, half, and 5 %",
		Flags: appsBed + " --mode index --keys zipf:0.99 --objects 200000 --per-node 16 --lock vanilla,nh," + treeLock,
		Quick: "--ranks 64,512 --writers 0.05,1 --duration 10ms --band=false", Full: "--ranks 32,64,128,256,512 --writers 0.05,0.5,1 --duration 50ms --band",
		Claims: []Claim{
			{What: "DecLock over Sherman-NH, updates alone, 512 clients", Paper: UpTo(27.71), Unit: "x", Class: K, Of: index(1, "nh"), Gap: rivalsFaster, Known: Range{3, 13}},
			{What: "DecLock over Sherman, updates alone, 512 clients", Paper: UpTo(2.31), Unit: "x", Class: R, Of: index(1, "vanilla"), Gap: nodesOrder, Known: Range{1.3, 1.74}},
			{What: "99 % latency below Sherman-NH's, updates alone, 512 clients", Paper: UpTo(97.6), Unit: "%", Class: T, Of: indexTail("nh"), Gap: rivalsFaster, Known: Range{50, 87.7}},
			{What: "99 % latency below Sherman's, updates alone, 512 clients", Paper: UpTo(82.1), Unit: "%", Class: T, Of: indexTail("vanilla"), Gap: nodesOrder, Known: Range{0, 72.2}},
			{What: "updates alone, 512 clients: Sherman over Sherman-NH is above 1", Class: S, Holds: func(r Runs) (bool, string) { return above("vanilla", "nh", 512)(r.Writers(1)) }},
			{What: "5 % updates, 512 clients: all three within a fifth", Class: S, Holds: func(r Runs) (bool, string) {
				r = r.Ranks(512).Writers(0.05)
				least, most := math.Inf(1), 0.0
				for _, lock := range []string{"vanilla", "nh", treeLock} {
					v := r.Lock(lock).Of(Throughput)
					least, most = min(least, v), max(most, v)
				}
				return least > 0.8*most, fmt.Sprintf("%.2f to %.2f M/s", least/1e6, most/1e6)
			}, Gap: "Of 200,000 keys the first has 7.4 % of the accesses and of 64 million 4.9 %, so one leaf has half as many updates again, whose tries show without hierarchy."},
		},
	},
}

// storeOf is the object store with one of the two traces.
func storeOf(id, what, flags string, claims ...Claim) Experiment {
	return Experiment{
		ID: "LF17a-" + id, Figure: "17", What: "The object store, 100,000 objects of " + what + ", by clients",
		Flags: appsBed + " --mode store --per-node 32" + declockLocks + " " + flags,
		Quick: "--ranks 24,128,256 --duration 20ms --band=false", Full: "--ranks 8,16,24,32,64,128,192,256 --duration 200ms --band",
		Claims: claims,
	}
}

// mostOfRanks is the most, over numbers of clients, of a lock's throughput over another's.
func mostOfRanks(lock, other string) func(Runs) float64 {
	return func(r Runs) float64 {
		v := math.NaN()
		for _, run := range r.Lock(lock) {
			if x := Throughput(run) / r.Lock(other).Ranks(run.Ranks).Of(Throughput); math.IsNaN(v) || x > v {
				v = x
			}
		}
		return v
	}
}

// tailBelow is how far DecLock's 99 % latency is below another lock's, in percent.
func tailBelow(lock, other string, ranks int) func(Runs) float64 {
	return func(r Runs) float64 { return 100 * (1 - Over(P99, lock, other)(r.Ranks(ranks))) }
}

// index is DecLock's throughput over another lock's in the tree, with 512 clients.
func index(writers float64, other string) func(Runs) float64 {
	return func(r Runs) float64 { return Over(Throughput, treeLock, other)(r.Ranks(512).Writers(writers)) }
}

// indexTail is tailBelow of updates alone in the tree, with 512 clients.
func indexTail(other string) func(Runs) float64 {
	return func(r Runs) float64 { return tailBelow(treeLock, other, 512)(r.Writers(1)) }
}

// ofPeak is a lock's throughput with a number of clients over its best.
func ofPeak(r Runs, lock string, ranks int) float64 {
	return r.Lock(lock).Ranks(ranks).Of(Throughput) / r.Lock(lock).Of(Throughput)
}

func collapses(lock string, ranks int, share float64) func(Runs) (bool, string) {
	return func(r Runs) (bool, string) {
		v := ofPeak(r, lock, ranks)
		return v < share, fmt.Sprintf("%.2f of the peak", v)
	}
}

func keeps(lock string, ranks int, share float64) func(Runs) (bool, string) {
	return func(r Runs) (bool, string) {
		v := ofPeak(r, lock, ranks)
		return v >= share, fmt.Sprintf("%.2f of the peak", v)
	}
}

func above(lock, other string, ranks int) func(Runs) (bool, string) {
	return func(r Runs) (bool, string) {
		v := Over(Throughput, lock, other)(r.Ranks(ranks))
		return v > 1, number(v)
	}
}
