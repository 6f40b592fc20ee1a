package papers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rmalock/rmalock/bench"
)

// On CIDER's testbed: 8 servers of 64 clients, of which the first is also the memory node, which
// its own clients reach through the network card.
const (
	ciderBed    = "--backend sim --machine cx6 --verbs --masked-swap --per-node 64 --memory-nodes 1 --colocated --mode kv"
	ciderAll    = ciderBed + " --ranks 512"
	ciderLocks  = " --lock optimistic:local=4,spin:local=4,queue:local=4,cider:local=4" // with local write combining (5.1)
	ciderAlone  = " --lock optimistic,queue,aware:share=4,combining,cider:share=4"      // without (5.4)
	ciderQuick  = "--objects 100000 --duration 60ms"
	ciderKeyed  = "--objects 20000 --duration 15ms" // an index with keys, which are loaded
	ciderLoaded = "--objects 200000 --duration 60ms"
	ciderFull   = "--objects 10000000 --duration 500ms --band"
	ciderTraces = "--backend sim --machine cx6 --verbs --masked-swap --per-node 64 --memory-nodes 1 --ranks 320 --mode trace" // 5.5
	writeHalf   = " --writers 0.5"
	writeOnly   = " --writers 1"
	writeLittle = " --writers 0.05"
)

var cider = Paper{
	Name:  "cider",
	Title: "CIDER",
	Testbed: "ConnectX-6, 8 servers with 64 clients each, one of them also the memory node, 60 million keys, values of 8 bytes, Zipf 0.99; " +
		"here the model cx6 with verbs and masked swaps, 100,000 keys in a short run and 10 million in a full one; " +
		"the hash table and the tree, whose keys are loaded, have 20,000 and 200,000. " +
		"Clients are in groups of 4, which combine what they do to one key (local write combining), where nothing else is said. " +
		"The schemes are optimistic (O-SYNC), spin (CAS), queue (ShiftLock without readers) and cider.",
	Experiments: []Experiment{
		{
			ID: "CF1", Figure: "1, 2", What: "The pointer array, half updates, O-SYNC by clients",
			Flags: ciderBed + " --lock optimistic:local=4" + zipf + writeHalf,
			Quick: "--ranks 16,32,48,64,128,512 --objects 100000 --duration 10ms", Full: "--ranks 8,16,32,48,64,128,256,384,512 " + ciderFull,
			Claims: []Claim{
				{What: "its peak over its rate with 512 clients", Paper: UpTo(2.7), Unit: "x", Class: K, Of: func(r Runs) float64 {
					return peak(r) / r.Ranks(512).Of(Throughput)
				}},
				{What: "its peak is at 48 clients, or at 32 or 64", Class: S, Holds: func(r Runs) (bool, string) {
					n := r.best().Ranks
					return n >= 32 && n <= 64, fmt.Sprint(n)
				}},
			},
		},
		{
			ID: "CF4", Figure: "4, 21", What: "The pointer array, half updates: which of them are combined, by compute nodes of 4 clients",
			Flags: ciderBed + " --lock queue:local=4,combining" + zipf + writeHalf, Quick: "--ranks 8,32,128,512 --objects 100000 --duration 20ms", Full: "--ranks 8,16,32,64,128,256,512 " + ciderFull,
			Claims: []Claim{
				{What: "requests that wait for others and are not combined, local write combining, 128 nodes", Paper: Exactly(7), Unit: "%", Class: T, Of: func(r Runs) float64 {
					return 100 * r.Lock("queue").Ranks(512).Of(blockedShare)
				}},
				{What: "share of updates that local write combining combines: rises with the nodes", Class: S, Holds: func(r Runs) (bool, string) {
					return rising(r.Lock("queue"), localShare)
				}},
				{What: "share of requests that wait: rises with the nodes", Class: S, Holds: func(r Runs) (bool, string) {
					return rising(r.Lock("queue"), blockedShare)
				}},
				{What: "share of updates that global write combining combines over that of local, 512 clients (Figure 21)", Paper: Exactly(1.9), Unit: "x", Class: R, Of: func(r Runs) float64 {
					return r.Lock("combining").Ranks(512).Of(globalShare) / r.Lock("queue").Ranks(512).Of(localShare)
				}, Gap: threeMeet, Known: Range{2.4, 9}},
			},
		},
		{
			ID: "CF11a", Figure: "11a, 12a", What: "The pointer array, half updates, by scheme and clients",
			Flags: ciderBed + ciderLocks + zipf + writeHalf,
			Quick: "--ranks 32,512 " + ciderQuick, Full: "--ranks 8,16,32,48,64,128,256,384,512 " + ciderFull,
			Claims: []Claim{
				{What: "CIDER over O-SYNC, 512 clients", Paper: UpTo(6.7), Unit: "x", Class: K, Of: at(512, Over(Throughput, "cider", "optimistic"))},
				{What: "CIDER over ShiftLock, 512 clients", Paper: UpTo(2.0), Unit: "x", Class: R, Of: at(512, Over(Throughput, "cider", "queue")), Band: schemeBand("queue")},
				{What: "99 % latency of O-SYNC over CIDER's, 512 clients", Paper: UpTo(4.2), Unit: "x", Class: T, Of: at(512, Over(P99, "optimistic", "cider")), Gap: hottest, Known: Range{8.41, 60}},
				{What: "99 % latency of ShiftLock over CIDER's, 512 clients", Paper: UpTo(1.9), Unit: "x", Class: T, Of: at(512, Over(P99, "queue", "cider")), Gap: hottest, Known: Range{3.81, 7}},
				{What: "CAS is ahead of O-SYNC with 512 clients", Class: S, Holds: above("spin", "optimistic", 512)},
				{What: "32 clients: CIDER over O-SYNC, within 5 %", Paper: Exactly(1), Unit: "x", Class: E, Of: at(32, Over(Throughput, "cider", "optimistic"))},
			},
		},
		{
			ID: "CF11b", Figure: "11b, 12b", What: "The pointer array, 5 % updates, by scheme",
			Flags: ciderAll + zipf + writeLittle, Quick: "--objects 100000 --duration 10ms" + ciderLocks, Full: ciderFull + ciderLocks,
			Claims: []Claim{
				{What: "CIDER over the best of all", Paper: Exactly(1), Unit: "x", Class: E, Of: func(r Runs) float64 {
					if len(r) < 4 {
						return math.NaN()
					}
					return r.Lock("cider").Of(Throughput) / peak(r)
				}},
				{What: "99 % latency of ShiftLock over CIDER's", Paper: UpTo(2.1), Unit: "x", Class: T, Of: Over(P99, "queue", "cider"), Gap: fullCard, Known: Range{0.9, 1.05}},
			},
		},
		{
			ID: "CF11c", Figure: "11c, 12c", What: "The pointer array, updates alone, by scheme",
			Flags: ciderAll + zipf + writeOnly, Quick: ciderQuick + ciderLocks, Full: ciderFull + ciderLocks,
			Claims: []Claim{
				{What: "CIDER over O-SYNC", Paper: UpTo(6.5), Unit: "x", Class: K, Of: Over(Throughput, "cider", "optimistic")},
				{What: "CIDER over CAS", Paper: UpTo(4.1), Unit: "x", Class: K, Of: Over(Throughput, "cider", "spin")},
				{What: "CIDER over ShiftLock", Paper: UpTo(2.0), Unit: "x", Class: R, Of: Over(Throughput, "cider", "queue"), Band: schemeBand("queue"), Gap: hottestAlone, Known: Range{2.51, 4.5}},
				{What: "99 % latency of O-SYNC over CIDER's", Paper: UpTo(6.1), Unit: "x", Class: T, Of: Over(P99, "optimistic", "cider"), Gap: hottest, Known: Range{12.3, 80}},
				{What: "99 % latency of CAS over CIDER's", Paper: UpTo(6.3), Unit: "x", Class: T, Of: Over(P99, "spin", "cider"), Gap: hottest, Known: Range{12.7, 60}},
				{What: "99 % latency of ShiftLock over CIDER's", Paper: UpTo(1.5), Unit: "x", Class: T, Of: Over(P99, "queue", "cider"), Gap: hottest, Known: Range{3.01, 7}},
			},
		},
		{
			ID: "CF13", Figure: "13", What: "The pointer array, half updates, by skew.\nCIDER's clients learn which keys are hot: in their first 4 ms they reach 0.74 of the best with Zipf 0.8",
			Flags: ciderAll + ciderLocks + writeHalf, Quick: "--objects 100000 --keys uniform,zipf:0.8 --duration 12ms",
			Full: "--objects 10000000 --keys uniform,zipf:0.5,zipf:0.6,zipf:0.7,zipf:0.8,zipf:0.9,zipf:0.99 --duration 200ms",
			Claims: []Claim{
				{What: "uniform: O-SYNC over ShiftLock, locks are worse", Class: S, Holds: func(r Runs) (bool, string) {
					v := Over(Throughput, "optimistic", "queue")(r.Workload("keys uniform"))
					return v > 1, number(v) + "x"
				}},
				{What: "CIDER over the best of the others, by skew: is the best, or level", Class: S, Holds: func(r Runs) (bool, string) {
					best, seen := true, ""
					for _, run := range r.Lock("cider") {
						v := Throughput(run) / peak(r.where(func(other *bench.Result) bool { return other.Workload == run.Workload && other.Lock != run.Lock }))
						best, seen = best && v > 0.95, seen+", "+number(v)+"x"
					}
					return best, strings.TrimPrefix(seen, ", ")
				}},
			},
		},
		{
			ID: "CF20", Figure: "5, 20, 21", What: "The pointer array, half updates, without local write combining",
			Flags: ciderAll + ciderAlone + zipf + writeHalf, Quick: ciderQuick, Full: ciderFull,
			Claims: []Claim{
				{What: "ShiftLock over O-SYNC (Figure 5)", Paper: UpTo(14), Unit: "x", Class: K, Of: Over(Throughput, "queue", "optimistic")},
				{What: "contention-aware synchronisation over O-SYNC", Paper: UpTo(22), Unit: "x", Class: K, Of: Over(Throughput, "aware", "optimistic")},
				{What: "contention-aware synchronisation over ShiftLock", Paper: UpTo(1.6), Unit: "x", Class: R, Of: Over(Throughput, "aware", "queue")},
				{What: "global write combining over ShiftLock", Paper: UpTo(3.7), Unit: "x", Class: R, Of: Over(Throughput, "combining", "queue"), Gap: fullBatches, Known: Range{2.2, 2.77}},
				{What: "99 % latency of ShiftLock over that with global write combining, at least", Paper: Exactly(5.4), Unit: "x", Class: O, Of: Over(P99, "queue", "combining")},
				{What: "both parts over the better of one", Class: S, Holds: func(r Runs) (bool, string) {
					v := r.Lock("cider").Of(Throughput) / max(r.Lock("aware").Of(Throughput), r.Lock("combining").Of(Throughput))
					return v > 1, number(v) + "x"
				}},
				{What: "updates of a batch: CIDER over global write combining alone (Figure 21)", Class: S, Holds: func(r Runs) (bool, string) {
					a, b := r.Lock("cider").Of(batchSize), r.Lock("combining").Of(batchSize)
					return a > b, fmt.Sprintf("%s over %s", number(a), number(b))
				}},
			},
		},
		{
			ID: "CF14", Figure: "14", What: "The pointer array, half updates: who goes through the queue",
			Flags: ciderAll + " --lock cider:local=4,optimistic:local=4" + zipf + writeHalf, Quick: ciderQuick, Full: ciderFull,
			Claims: []Claim{
				{What: "updates through the queue that are combined", Paper: Exactly(87), Unit: "%", Class: T, Of: func(r Runs) float64 { return 100 * r.Lock("cider").Of(combinedShare) }},
				{What: "requests of O-SYNC with more retries than HOTNESS_THRESHOLD, which ideally are pessimistic", Paper: Exactly(4), Unit: "%", Class: T, Of: func(r Runs) float64 {
					return 100 * r.Lock("optimistic").Of(conflictShare)
				}},
				{What: "of these, the share that CIDER does not leave optimistic", Paper: Exactly(88), Unit: "%", Class: T, Of: func(r Runs) float64 {
					return 100 * (1 - r.Lock("cider").Of(conflictShare)/r.Lock("optimistic").Of(conflictShare))
				}},
			},
		},
		{
			ID: "CF15", Figure: "15", What: "The pointer array, half updates: INITIAL_CREDIT and HOTNESS_THRESHOLD",
			Flags: ciderAll + " --lock cider:local=4,cider:local=4:credit=12,cider:local=4:credit=72,cider:local=4:threshold=8" + zipf + writeHalf,
			Quick: "--objects 100000 --duration 8ms", Full: ciderFull,
			Claims: []Claim{
				{What: "credits of 12, 36 and 72: the slowest over the fastest, is stable from 8 on", Class: S, Holds: func(r Runs) (bool, string) {
					low, high := math.Inf(1), 0.0
					for _, lock := range []string{"cider:local=4", "cider:local=4:credit=12", "cider:local=4:credit=72"} {
						v := r.exactly(lock).Of(Throughput)
						low, high = min(low, v), max(high, v)
					}
					return low > 0.8*high, number(low / high)
				}},
				{What: "a threshold of 2 over one of 8, is better", Class: S, Holds: func(r Runs) (bool, string) {
					v := r.exactly("cider:local=4").Of(Throughput) / r.exactly("cider:local=4:threshold=8").Of(Throughput)
					return v > 1, number(v) + "x"
				}},
			},
		},
		{
			ID: "CF16", Figure: "3, 16a, 17a", What: "The hash table after RACE, half updates, by scheme",
			Flags: ciderAll + " --index race" + ciderLocks + zipf + writeHalf, Quick: ciderKeyed, Full: ciderLoaded,
			Claims: append(ciderAhead(5.1, 3.0, 1.5),
				Claim{What: "99 % latency of O-SYNC over CIDER's", Paper: UpTo(12.4), Unit: "x", Class: T, Of: Over(P99, "optimistic", "cider"), Gap: hottest, Known: Range{24.9, 50}},
				Claim{What: "99 % latency of CAS over CIDER's", Paper: UpTo(6.4), Unit: "x", Class: T, Of: Over(P99, "spin", "cider"), Gap: hottest, Known: Range{12.9, 30}},
				Claim{What: "99 % latency of ShiftLock over CIDER's", Paper: UpTo(6.2), Unit: "x", Class: T, Of: Over(P99, "queue", "cider")}),
		},
		{
			ID: "CF18", Figure: "18a, 19a", What: "The radix tree after SMART, half updates, by scheme",
			Flags: ciderAll + " --index smart" + ciderLocks + zipf + writeHalf, Quick: ciderKeyed, Full: ciderLoaded,
			Claims: append(ciderAhead(6.6, 2.8, 2.0),
				Claim{What: "99 % latency of O-SYNC over CIDER's", Paper: UpTo(13.8), Unit: "x", Class: T, Of: Over(P99, "optimistic", "cider"), Gap: hottest, Known: Range{27.7, 60}},
				Claim{What: "99 % latency of CAS over CIDER's", Paper: UpTo(2.8), Unit: "x", Class: T, Of: Over(P99, "spin", "cider"), Gap: hottest, Known: Range{5.7, 30}},
				Claim{What: "99 % latency of ShiftLock over CIDER's", Paper: UpTo(4.7), Unit: "x", Class: T, Of: Over(P99, "queue", "cider")}),
		},
		{
			ID: "CF22", Figure: "22", What: "Transactions of TPC-C and TATP, 320 clients: CAS, CIDER's queue, in which all locks are exclusive, and ShiftLock with readers; the memory node's card is the limit of all",
			Flags: ciderTraces, Quick: "--duration 10ms", Full: "--duration 200ms --band",
			Each: []string{"--of tpcc,tatp --lock caslock,shiftlock --writers 1", "--of tpcc,tatp --lock shiftlock"},
			Claims: []Claim{
				{What: "TPC-C: CIDER over CAS", Paper: Exactly(1.1), Unit: "x", Class: R, Of: transactions("tpcc", queued, spun)},
				{What: "TPC-C: ShiftLock over CIDER", Paper: Exactly(1.2), Unit: "x", Class: R, Of: transactions("tpcc", shifted, queued)},
				{What: "TATP: CIDER over CAS", Paper: Exactly(1), Unit: "x", Class: R, Of: transactions("tatp", queued, spun)},
				{What: "TATP: ShiftLock over CIDER", Paper: Exactly(1.3), Unit: "x", Class: R, Of: transactions("tatp", shifted, queued)},
			},
		},
		{
			ID: "CF23", Figure: "23", What: "The pointer array, half updates, by its length",
			Flags: ciderAll + ciderLocks + zipf + writeHalf, Quick: "--objects 6000,600000 --duration 10ms", Full: "--objects 6000,60000,600000,6000000 --duration 500ms",
			Claims: []Claim{
				{What: "the best length over 6,000 keys: each scheme gains", Class: S, Holds: func(r Runs) (bool, string) {
					all, seen := true, ""
					for _, lock := range []string{"optimistic", "spin", "queue", "cider"} {
						r := r.Lock(lock)
						v := peak(r) / r.Workload("array of 6000 keys").Of(Throughput)
						all, seen = all && v > 1, seen+fmt.Sprintf(", %s %sx", lock, number(v))
					}
					return all, seen[2:]
				}},
			},
		},
		{
			ID: "CF24", Figure: "24", What: "The pointer array, half updates, by the size of values",
			Flags: ciderAll + " --lock cider:local=4" + zipf + writeHalf, Quick: "--objects 100000 --size 8,1000 --duration 10ms", Full: "--objects 10000000 --size 8,64,256,1000 --duration 500ms",
			Claims: []Claim{
				{What: "values of 1,000 bytes over 8: it does not matter", Class: S, Holds: func(r Runs) (bool, string) {
					v := r.Workload("values of 1000 bytes").Of(Throughput) / peak(r)
					return v > 0.8, number(v) + "x"
				}},
			},
		},
	},
}

// Reasons of gaps.
const (
	hottest = "The hottest of 100,000 keys gets 7.8 % of all operations, that of the paper's 60 million 5 %: those that do not combine its updates lose more by it. " +
		"In the model an atomic that waits for a hot word holds up the operations behind it (holBlocking), of which no measurement was found."
	threeMeet = "A client that finds a node-mate at its key waits, and the last that waits works for the others: so three of a group of four have to meet for one update less. " +
		"8.7 % of updates wait for a node-mate, and 3.7 % are combined; 22 % are globally, which is 2.5 times those that wait. " +
		"In the paper those that wait write to a buffer that the first may still write out; here that is an error (docs/errata.md)."
	hottestAlone = hottest + " ShiftLock's rate rises as that share falls: 3.72 million a second with 100,000 keys, 4.32 with a million, of which the hottest gets 6.5 %. " +
		"CIDER's stays at 13.8 million, since the card is full: 3.2 operations an update, with 5.8 updates a batch. So the ratio is 3.7 and 3.2, and goes on falling."
	fullBatches = fullCard + " Without readers' or node-mates' help an operation makes 3.7 on the memory node, and 10.9 million a second fill the card. " +
		"A batch has 1.28 updates on average: most keys are cold, and each of their updates goes through its lock alone. " +
		"ShiftLock makes 4.1 operations on the memory node and 17 million a second: its limit is the hottest key, not the card."
	fullCard = "The memory node's card is the limit: 512 connections slow it down, and it carries some 40 million operations a second."
)

// The locks of transactions.
var (
	spun    = func(r Runs) Runs { return r.Lock("caslock").Workload("all locks exclusive") }
	queued  = func(r Runs) Runs { return r.Lock("shiftlock").Workload("all locks exclusive") }
	shifted = func(r Runs) Runs {
		return r.Lock("shiftlock").where(func(run *bench.Result) bool { return !strings.Contains(run.Workload, "all locks exclusive") })
	}
)

// transactions is the ratio of the throughputs of a trace's transactions with two locks.
func transactions(of string, lock, other func(Runs) Runs) func(Runs) float64 {
	return func(r Runs) float64 {
		r = r.Workload("trace of " + of)
		return lock(r).Of(Throughput) / other(r).Of(Throughput)
	}
}

// rising says whether a share rises with the number of clients, from run to run.
func rising(r Runs, share Figure) (bool, string) {
	if len(r) < 2 {
		return false, ""
	}
	slices.SortFunc(r, func(a, b *bench.Result) int { return a.Ranks - b.Ranks })
	up, seen := true, ""
	for i, run := range r {
		up = up && (i == 0 || share(run) >= share(r[i-1]))
		seen += fmt.Sprintf(", %s %%", number(100*share(run)))
	}
	return up, seen[2:]
}

// ciderAhead are the claims of CIDER's throughput over O-SYNC's, CAS's and ShiftLock's.
func ciderAhead(optimistic, spin, queue float64) []Claim {
	return []Claim{
		{What: "CIDER over O-SYNC", Paper: UpTo(optimistic), Unit: "x", Class: K, Of: Over(Throughput, "cider", "optimistic")},
		{What: "CIDER over CAS", Paper: UpTo(spin), Unit: "x", Class: K, Of: Over(Throughput, "cider", "spin")},
		{What: "CIDER over ShiftLock", Paper: UpTo(queue), Unit: "x", Class: R, Of: Over(Throughput, "cider", "queue"), Gap: hottest, Known: Range{1.25 * queue, 2 * queue}},
	}
}

// schemeBand is the band of CIDER's throughput over another scheme's, with 512 clients.
func schemeBand(other string) func(Runs) Range {
	return func(r Runs) Range { return OverBand(Throughput, "cider", other)(r.Ranks(512)) }
}

// combinedShare is the share of updates through a queue that another client's update stands for,
// or that stand for others'.
func combinedShare(r *bench.Result) float64 {
	if r.KV == nil || r.KV.Queued == 0 {
		return math.NaN()
	}
	return float64(r.KV.Combined) / float64(r.KV.Queued)
}

// updatesOf are the updates that a run's clients have made, themselves or by others.
func updatesOf(r *bench.Result) float64 {
	if r.KV == nil {
		return math.NaN()
	}
	return float64(r.KV.Executed + r.KV.Combined + r.KV.Local)
}

// localShare and globalShare are the shares of updates that are combined with a node-mate's, and
// with one of any client that waits in the same queue.
func localShare(r *bench.Result) float64  { return float64(r.KV.Local) / updatesOf(r) }
func globalShare(r *bench.Result) float64 { return float64(r.KV.Combined) / updatesOf(r) }

// blockedShare and conflictShare are the shares of requests, searches too, that wait in a queue, and
// that are optimistic and lose more CompareAndSwaps than HOTNESS_THRESHOLD.
func blockedShare(r *bench.Result) float64  { return float64(r.KV.Blocked) / float64(r.Visits) }
func conflictShare(r *bench.Result) float64 { return float64(r.KV.Conflicts) / float64(r.Visits) }

// batchSize is how many updates an executor stands for, on average.
func batchSize(r *bench.Result) float64 {
	if r.KV == nil || r.KV.Batches == 0 {
		return math.NaN()
	}
	return float64(r.KV.Batched) / float64(r.KV.Batches)
}
