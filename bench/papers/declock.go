package papers

import (
	"fmt"
	"math"
	"slices"

	"github.com/rmalock/rmalock/bench"
)

// On DecLock's testbed: the microbenchmark of section 6.1. Clients are coroutines, two of a core;
// up to 32 are on one compute node.
const (
	declockBed   = "--backend sim --machine cx4 --verbs --masked-swap --qps core --coroutines 2 --per-node 32 --memory-nodes 1 --mode clients"
	taskFair     = "declock:POLICY=ts-tf:CAPACITY=8"
	phaseFair    = "declock:POLICY=ts-pf:CAPACITY=8"
	declockLocks = " --lock caslock,dslr-plus,shiftlock," + taskFair + "," + phaseFair
	declockFull  = "--duration 500ms --band"
	zipf         = " --keys zipf:0.99"
	half         = " --writers 0.5"
)

var declock = Paper{
	Name:  "declock",
	Title: "DecLock",
	Testbed: "ConnectX-4, 8 compute nodes with 16 cores of 2 coroutines each, 1 memory node, 100,000 locks, Zipf 0.99, half of the acquires shared, " +
		"one access with the lock held, where nothing else is said; here the model cx4 with verbs and masked swaps, by which writers enter ShiftLock's queue. " +
		"DecLock is task-fair beside CASLock and DSLR+ and phase-fair beside ShiftLock, as in section 6.1.",
	Experiments: slices.Concat([]Experiment{
		{
			ID: "LF12a", Figure: "3, 12a", What: "Throughput by clients: 8 to 32 on one compute node, 256 on eight",
			Flags: declockBed + declockLocks + zipf + half + " --locks 100000 --accesses 1",
			Quick: "--ranks 16,24,128,160,256 --duration 50ms", Full: "--ranks 8,16,24,32,64,128,160,192,256 " + declockFull,
			Claims: []Claim{
				{What: "CASLock: peak over the throughput of 256 clients", Paper: Exactly(8.05), Unit: "x", Class: K, Of: fall("caslock")},
				{What: "CASLock: tries that fail per acquire, 256 clients", Paper: UpTo(37.8), Class: K, Of: at(256, func(r Runs) float64 { return r.Lock("caslock").Of(retries) }), Gap: notSlowEnough, Known: Range{15, 18.9}},
				{What: "CASLock: 99 % over median latency, 256 clients", Paper: Exactly(1000), Unit: "x", Class: K,
					Of: at(256, func(r Runs) float64 {
						return r.Lock("caslock").Of(func(r *bench.Result) float64 { return r.P99 / r.Median })
					}),
					Gap: medianTooHigh, Known: Range{150, 500}},
				{What: "DSLR+: looks per acquire, 256 clients", Paper: Exactly(27.4), Class: R, Of: at(256, func(r Runs) float64 { return r.Lock("dslr-plus").Of(lookups(1)) }),
					Gap: "READs of one line are 50 ns apart in the model (lineReadNs, known to 5 to 217 ns), so a waiting client sees each answer later, and looks less often; " +
						"without that limit there are 25 looks, and DSLR+ does not fall.",
					Known: Range{11, 18}},
				{What: "DSLR+: 160 clients over the peak, is steady", Class: S, Holds: func(r Runs) (bool, string) {
					v := r.Ranks(160).Lock("dslr-plus").Of(Throughput) / peak(r.Lock("dslr-plus"))
					return v > 0.75, number(v)
				}},
				{What: "DSLR+: 256 clients below the peak", Paper: Exactly(38.9), Unit: "%", Class: R, Of: below("dslr-plus")},
				{What: "ShiftLock: 256 clients below the peak", Paper: Exactly(9.5), Unit: "%", Class: T, Of: below("shiftlock")},
				{What: "CASLock over DSLR+, the best of 24 clients and fewer", Paper: Exactly(1.26), Unit: "x", Class: R, Of: few("caslock", "dslr-plus"), Gap: noCPU, Known: Range{0.8, 1}},
				{What: "CASLock over ShiftLock, the best of 24 clients and fewer", Paper: Exactly(1.46), Unit: "x", Class: R, Of: few("caslock", "shiftlock"), Gap: noCPU, Known: Range{0.8, 1.1}},
				{What: "CASLock over DecLock, the best of 24 clients and fewer", Paper: Exactly(1.25), Unit: "x", Class: R, Of: few("caslock", taskFair), Gap: noCPU, Known: Range{0.8, 1}},
				{What: "DecLock over DSLR+, 256 clients", Paper: UpTo(1.74), Unit: "x", Class: R, Of: at(256, Over(Throughput, taskFair, "dslr-plus")), Band: bandAt(256, taskFair, "dslr-plus")},
				{What: "DecLock-PF over ShiftLock, 256 clients", Paper: UpTo(1.40), Unit: "x", Class: R, Of: at(256, Over(Throughput, phaseFair, "shiftlock")), Band: bandAt(256, phaseFair, "shiftlock")},
			},
		},
		{
			ID: "LF12b", Figure: "12b, 13", What: "Throughput, operations and latency by the accesses with the lock held, 256 clients",
			Flags: declockBed + declockLocks + zipf + half + " --locks 100000 --ranks 256",
			Quick: "--accesses 0,1,32 --duration 40ms", Full: "--accesses 0,1,2,4,8,16,32 " + declockFull,
			Claims: []Claim{
				{What: "DecLock over CASLock, the most of all lengths", Paper: UpTo(43.47), Unit: "x", Class: K, Of: mostOver(taskFair, "caslock"), Gap: notSlowEnough, Known: Range{12, 21.7}},
				{What: "DecLock over DSLR+, the most of all lengths", Paper: UpTo(4.35), Unit: "x", Class: K, Of: mostOver(taskFair, "dslr-plus"), Gap: notSlowEnough, Known: Range{1.5, 2.17}},
				{What: "DecLock over ShiftLock, the most of all lengths", Paper: UpTo(1.81), Unit: "x", Class: R, Of: mostOver(phaseFair, "shiftlock")},
				{What: "CASLock: operations per acquire with 32 accesses", Paper: UpTo(387.9), Class: K, Of: lockOps("caslock", 32), Gap: notSlowEnough, Known: Range{90, 190}},
				{What: "DSLR+: operations per acquire with 32 accesses", Paper: UpTo(349.2), Class: K, Of: lockOps("dslr-plus", 32), Gap: notSlowEnough, Known: Range{60, 170}},
				{What: "ShiftLock: operations per acquire with 32 accesses", Paper: UpTo(15.6), Class: K, Of: lockOps("shiftlock", 32)},
				{What: "DecLock: half the fetch-and-adds and the entries written, per acquire, one access, at most", Paper: Range{0, 1.10}, Class: A, Of: func(r Runs) float64 { return r.Workload("accesses 1").Lock(taskFair).Of(entries) }},
				{What: "99 % latency of DecLock below CASLock's, one access", Paper: UpTo(98.2), Unit: "%", Class: T, Of: belowLatency(P99, taskFair, "caslock", 1)},
				{What: "99 % latency of DecLock below DSLR+'s, one access", Paper: UpTo(67.8), Unit: "%", Class: T, Of: belowLatency(P99, taskFair, "dslr-plus", 1), Gap: notSlowEnough, Known: Range{15, 58}},
				{What: "99 % latency of DecLock below ShiftLock's, one access", Paper: UpTo(43.7), Unit: "%", Class: T, Of: belowLatency(P99, phaseFair, "shiftlock", 1), Gap: shiftlockTail, Known: Range{-60, 33}},
				{What: "median latency of DecLock below CASLock's, one access", Paper: UpTo(95.8), Unit: "%", Class: T, Of: belowLatency(Median, taskFair, "caslock", 1)},
			},
		},
		{
			ID: "LF13", Figure: "13", What: "DecLock's operations by the accesses with the lock held, 256 clients",
			Flags: declockBed + zipf + half + " --locks 100000 --ranks 256 --lock " + taskFair + "," + phaseFair,
			Quick: "--accesses 16,32 --duration 200ms", Full: "--accesses 0,1,2,4,8,16,32 " + declockFull,
			Claims: []Claim{
				{What: "half the fetch-and-adds and the entries written, per acquire, the most of all lengths", Paper: Range{0, 1.10}, Class: A, Of: func(r Runs) float64 { return most(r.Lock(taskFair), entries) }},
				{What: "the same, phase-fair", Paper: Range{0, 1.10}, Class: A, Of: func(r Runs) float64 { return most(r.Lock(phaseFair), entries) }},
				{What: "all operations on the memory node but those on data, per acquire, are below 3.3", Class: S, Holds: func(r Runs) (bool, string) {
					v := most(r, func(run *bench.Result) float64 { return OnMemory(run) - float64(run.Mix.Accesses) })
					return v < 3.3, number(v)
				}},
			},
		},
		{
			ID: "LF12c", Figure: "12c", What: "Throughput by the share of shared acquires, 256 clients",
			Flags: declockBed + declockLocks + zipf + " --locks 100000 --ranks 256 --accesses 1",
			Quick: "--writers 1,0.5,0.1,0 --duration 40ms", Full: "--writers 1,0.9,0.8,0.7,0.6,0.5,0.4,0.3,0.2,0.1,0 " + declockFull,
			Claims: []Claim{
				{What: "all shared: DecLock over CASLock, equal", Paper: Exactly(1), Unit: "x", Class: R, Of: writers(0, taskFair, "caslock"), Gap: sharedHere, Known: Range{1.25, 2.2}},
				{What: "all shared: DecLock over DSLR+, equal", Paper: Exactly(1), Unit: "x", Class: R, Of: writers(0, taskFair, "dslr-plus"), Gap: sharedHere + " " + counterResets, Known: Range{1.25, 6}},
				{What: "all exclusive: DecLock over DSLR+", Paper: Range{1.18, 2.5}, Unit: "x", Class: R, Of: writers(1, taskFair, "dslr-plus")},
				{What: "90 % shared: DecLock over DSLR+", Paper: Range{1.18, 2.5}, Unit: "x", Class: R, Of: writers(0.1, taskFair, "dslr-plus")},
				{What: "half shared: DecLock-PF over ShiftLock", Paper: Range{1.12, 1.55}, Unit: "x", Class: R, Of: writers(0.5, phaseFair, "shiftlock")},
				{What: "90 % shared: DecLock-PF over ShiftLock", Paper: Range{1.12, 1.55}, Unit: "x", Class: R, Of: writers(0.1, phaseFair, "shiftlock"), Gap: sharedHere, Known: Range{1.9, 3.5}},
				{What: "all exclusive: DecLock over CASLock", Paper: Range{15.31, 20.8}, Unit: "x", Class: K, Of: writers(1, taskFair, "caslock")},
				{What: "90 % shared: DecLock over CASLock", Paper: Range{15.31, 20.8}, Unit: "x", Class: K, Of: writers(0.1, taskFair, "caslock")},
			},
		},
		{
			ID: "LF12d", Figure: "12d", What: "Throughput by the number of locks, 256 clients",
			Flags: declockBed + declockLocks + zipf + half + " --ranks 256 --accesses 1",
			Quick: "--locks 1000,10000000 --duration 40ms", Full: "--locks 1000,10000,100000,1000000,10000000 " + declockFull,
			Claims: []Claim{
				{What: "CASLock, 10 million locks over 1,000", Paper: Exactly(2.49), Unit: "x", Class: R, Of: moreLocks("caslock")},
				{What: "DSLR+, 10 million locks over 1,000", Paper: Exactly(2.86), Unit: "x", Class: R, Of: moreLocks("dslr-plus")},
				{What: "ShiftLock, 10 million locks over 1,000", Paper: Exactly(1.83), Unit: "x", Class: R, Of: moreLocks("shiftlock"), Gap: allGain, Known: Range{1.5, 2.6}},
				{What: "DecLock-TF, 10 million locks over 1,000", Paper: Exactly(2.11), Unit: "x", Class: R, Of: moreLocks(taskFair)},
				{What: "DecLock-PF, 10 million locks over 1,000", Paper: Exactly(1.54), Unit: "x", Class: R, Of: moreLocks(phaseFair), Gap: sharedHere, Known: Range{1.9, 2.9}},
			},
		},
		{
			ID: "LF12e", Figure: "12e", What: "Throughput by skew, 256 clients",
			Flags: declockBed + declockLocks + half + " --ranks 256 --locks 100000 --accesses 1",
			Quick: "--keys uniform,zipf:0.9 --duration 20ms", Full: "--keys uniform,zipf:0.5,zipf:0.9,zipf:0.99,zipf:0.999 " + declockFull,
			Claims: []Claim{
				{What: "uniform: the fastest lock over the slowest; all converge", Class: S, Holds: func(r Runs) (bool, string) {
					low, high := math.Inf(1), 0.0
					for _, run := range r.Workload("keys uniform") {
						low, high = min(low, Throughput(run)), max(high, Throughput(run))
					}
					return high/low < 1.6, number(high/low) + "x"
				}},
			},
		},
	}, declockMore, declockApps),
}

// Reasons of gaps.
const (
	noCPU = "The lead of CASLock with few clients is CPU time of the others' programs: posts, polls, a mutex and a map for each acquire. " +
		"The model knows posts and polls, and no computing between them."
	rivalsFaster = "The rivals suffer less than in the paper: what waits behind atomics and hot lines is not slow enough in the model " +
		"(holBlocking and lineReadNs, known as ranges only)."
	allGain    = "All locks gain alike here; in the paper ShiftLock and DecLock-PF gain less, and it does not say why."
	sharedHere = "Readers of a compute node share the lock here without an operation on the memory node, so with few writers DecLock gains more than in the paper, " +
		"where something else bounds all locks alike."
	counterResets = "DSLR+'s counters have 13 bits here, so that the hottest lock is reset after 4,096 acquires. Before its first reset DSLR+ makes 14.2 million visits a second, " +
		"in 3 ms; in 10 ms it makes 5.0 million, with 0.29 CompareAndSwaps per acquire."
	shiftlockTail = "Writers of a node hand over to each other while they are older than the ranks of other nodes that wait, as in the authors' code; " +
		"these wait longer for it. ShiftLock suffers less than in the paper from the looks of its readers (lineReadNs, known as a range only)."
	notSlowEnough = "What waits behind atomics and hot lines is not slow enough in the model: critical sections of others last as long as without waiting, " +
		"so a client that waits tries a third as often as in the paper. The two constants (holBlocking, lineReadNs) are known as ranges only. So the rivals suffer less than in the paper."
	medianTooHigh = "The median client suffers from the tries of others (holBlocking) more than in the paper, where it is below 60 µs; the run is short for the tail."
)

// retries are the tries that failed, per acquire.
func retries(r *bench.Result) float64 { return r.Retries }

// lookups are Gets per acquire but for the shared accesses to data, of which there are so many per
// acquire.
func lookups(accesses float64) Figure {
	return func(r *bench.Result) float64 {
		return r.Network["Get.memory"] + r.Network["poll.memory"] - accesses*(1-r.Writers)
	}
}

// entries are half of the fetch-and-adds, and the entries written, per acquire: the count of the
// authors' scripts. The queue that each release reads is not in it.
func entries(r *bench.Result) float64 { return r.Network["FetchAndOp.memory"]/2 + r.Counts["waits"] }

// lockOps are a lock's operations on memory nodes per acquire, those on data left out.
func lockOps(lock string, accesses int) func(Runs) float64 {
	return func(r Runs) float64 {
		return r.Workload(fmt.Sprintf("accesses %d", accesses)).Lock(lock).Of(OnMemory) - float64(accesses)
	}
}

// peak is the highest throughput.
func peak(r Runs) float64 { return most(r, Throughput) }

// fall is a lock's peak over the throughput of 256 clients.
func fall(lock string) func(Runs) float64 {
	return func(r Runs) float64 { return peak(r.Lock(lock)) / r.Lock(lock).Ranks(256).Of(Throughput) }
}

// below is how far the throughput of 256 clients is below a lock's peak, in percent.
func below(lock string) func(Runs) float64 {
	return func(r Runs) float64 { return 100 * (1 - 1/fall(lock)(r)) }
}

// few is the ratio of the best throughputs of at most 24 clients.
func few(lock, other string) func(Runs) float64 {
	return func(r Runs) float64 {
		r = r.where(func(run *bench.Result) bool { return run.Ranks <= 24 })
		return peak(r.Lock(lock)) / peak(r.Lock(other))
	}
}

// mostOver is the greatest ratio of DecLock's throughput to another's, of all lengths.
func mostOver(lock, other string) func(Runs) float64 {
	return func(r Runs) float64 {
		v := 0.0
		for _, run := range r.Lock(lock) {
			same := r.Lock(other).where(func(o *bench.Result) bool { return o.Workload == run.Workload })
			v = max(v, Throughput(run)/same.Of(Throughput))
		}
		return v
	}
}

// belowLatency is how far a latency of DecLock is below another's, in percent.
func belowLatency(f Figure, lock, other string, accesses int) func(Runs) float64 {
	return func(r Runs) float64 {
		return 100 * (1 - Over(f, lock, other)(r.Workload(fmt.Sprintf("accesses %d", accesses))))
	}
}

// writers is a ratio of throughputs at a share of exclusive acquires.
func writers(share float64, lock, other string) func(Runs) float64 {
	return func(r Runs) float64 { return Over(Throughput, lock, other)(r.Writers(share)) }
}

// moreLocks is what a lock gains by many locks.
func moreLocks(lock string) func(Runs) float64 {
	return func(r Runs) float64 {
		r = r.Lock(lock)
		return r.Locks(10_000_000).Of(Throughput) / r.Locks(1000).Of(Throughput)
	}
}

// bandAt is OverBand of throughputs with a number of ranks.
func bandAt(ranks int, lock, other string) func(Runs) Range {
	return func(r Runs) Range { return OverBand(Throughput, lock, other)(r.Ranks(ranks)) }
}
