package papers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rmalock/rmalock/bench"
)

// Figures 1, 14, 15, 16 and 18: the ideal, the policies, what the queue costs, resets and deaths,
// and ranks that are far from each other.
const (
	noHierarchy  = "declock:POLICY=none:CAPACITY=256"
	remotePolicy = "declock:POLICY=remote:CAPACITY=8"
	localPolicy  = "declock:POLICY=local:CAPACITY=8"
	boundPolicy  = "declock:POLICY=bound:CAPACITY=8"
	short        = "declock:POLICY=ts-pf:CAPACITY=8:VERSION=6" // of versions
	mortal       = "declock:POLICY=ts-pf:CAPACITY=8:LEASE=1ms"
	micro        = zipf + " --locks 100000 --accesses 1"
	oneCore      = "--backend sim --machine cx4 --verbs --masked-swap --qps core --coroutines 2 --per-node 2 --memory-nodes 1 --mode clients --ranks 16"
	spinTree     = "--backend sim --machine cx4 --verbs --masked-swap --qps core --memory-nodes 1 --mode index --keys zipf:0.99 --objects 200000 --ranks 256 --writers 1"
)

// declockMore are the experiments of sections 1, 6.3 to 6.7, and appendix C.
var declockMore = []Experiment{
	{
		ID: "LF1-ideal", Figure: "1", What: "Updates of the B+tree by 256 clients: a spinlock on the memory node, and the ideal, local locks of one machine",
		Flags: spinTree,
		Each:  []string{"--lock nh --coroutines 2 --per-node 32", "--lock alock --coroutines 16 --per-node 256"},
		Quick: "--duration 8ms", Full: "--duration 200ms --band",
		Claims: []Claim{
			{What: "the ideal over the spinlock, throughput", Paper: Exactly(20), Unit: "x", Class: K, Of: Over(Throughput, "alock", "nh"), Gap: hotLeaf, Known: Range{4, 10}},
			{What: "tail of the spinlock over the ideal's", Paper: Exactly(69), Unit: "x", Class: T, Of: Over(P99, "nh", "alock"), Gap: hotLeaf, Known: Range{3, 34.5}},
			{What: "tries of the spinlock per acquire", Paper: Exactly(28), Class: K, Of: func(r Runs) float64 { return r.Lock("nh").Of(retries) }},
			{What: "operations on the memory node that are the lock's", Paper: Exactly(95), Unit: "%", Class: T, Of: func(r Runs) float64 { return r.Lock("nh").Of(lockShare) }},
		},
	},
	{
		ID: "LF14", Figure: "14", What: "Policies: the time in Lock of the hottest lock, 256 clients; writers alone, half, and a tenth",
		Flags: declockBed + micro + " --ranks 256 --lock " + strings.Join([]string{noHierarchy, remotePolicy, localPolicy, boundPolicy, taskFair, phaseFair}, ","),
		Quick: "--writers 1,0.5,0.1 --duration 8ms", Full: "--writers 1,0.5,0.1 " + declockFull,
		Claims: []Claim{
			{What: "writers alone: Remote-Prefer over no hierarchy, median, is similar", Paper: Exactly(1), Unit: "x", Class: R, Of: policies(hotMedian, 1, remotePolicy, noHierarchy)},
			{What: "writers alone: Remote-Prefer over no hierarchy, 99 %, is similar", Paper: Exactly(1), Unit: "x", Class: T, Of: policies(hotP99, 1, remotePolicy, noHierarchy)},
			{What: "a tenth: Remote-Prefer over no hierarchy, median, is similar", Paper: Exactly(1), Unit: "x", Class: R, Of: policies(hotMedian, 0.1, remotePolicy, noHierarchy), Gap: readersTogether, Known: Range{0.08, 0.75}},
			{What: "half: the spread of Remote-Prefer, 99 % over median, is above no hierarchy's", Class: S, Holds: func(r Runs) (bool, string) {
				r = r.Writers(0.5)
				a, b := r.Lock(remotePolicy).Of(hotSpread), r.Lock(noHierarchy).Of(hotSpread)
				return a > b, order(a, b)
			}},
			{What: "half: Local-Prefer over TS-PF, median, is comparable", Paper: Exactly(1), Unit: "x", Class: R, Of: policies(hotMedian, 0.5, localPolicy, phaseFair), Gap: localGains, Known: Range{1.25, 1.8}},
			{What: "a tenth: Local-Prefer over TS-PF, median, is comparable", Paper: Exactly(1), Unit: "x", Class: R, Of: policies(hotMedian, 0.1, localPolicy, phaseFair)},
			{What: "writers alone: the tail of Local-Prefer, 99 %, is above TS-PF's and that without hierarchy", Class: S, Holds: func(r Runs) (bool, string) {
				r = r.Writers(1)
				a, b := r.Lock(localPolicy).Of(hotP99), max(r.Lock(phaseFair).Of(hotP99), r.Lock(noHierarchy).Of(hotP99))
				return a > b, order(a, b)
			}},
			{What: "writers alone: Local-Bound over TS-PF, median, is close", Paper: Exactly(1), Unit: "x", Class: R, Of: policies(hotMedian, 1, boundPolicy, phaseFair), Gap: fourInside, Known: Range{0.6, 0.75}},
			{What: "writers alone: Local-Bound over TS-PF, 99 %, is close", Paper: Exactly(1), Unit: "x", Class: T, Of: policies(hotP99, 1, boundPolicy, phaseFair)},
			{What: "Local-Bound over TS-PF, mean: a tenth is above writers alone", Class: S, Holds: func(r Runs) (bool, string) {
				a, b := policies(hotMean, 0.1, boundPolicy, phaseFair)(r), policies(hotMean, 1, boundPolicy, phaseFair)(r)
				return a > b, order(a, b)
			}},
			{What: "TS-PF over no hierarchy, median and 99 %: the greatest of three shares is below 1", Class: S, Holds: belowNone(phaseFair)},
			{What: "TS-TF over no hierarchy, median and 99 %: the greatest of three shares is below 1", Class: S, Holds: belowNone(taskFair)},
			{What: "half: TS-PF below TS-TF, median and 99 %", Class: S, Holds: pfBelowTF(0.5)},
			{What: "a tenth: TS-PF below TS-TF, median and 99 %", Class: S, Holds: pfBelowTF(0.1)},
			{What: "median of TS-PF below another policy's, the most", Paper: UpTo(66.7), Unit: "%", Class: T, Of: mostBelow(hotMedian), Gap: readersTogether, Known: Range{15, 56.7}},
			{What: "99 % of TS-PF below another policy's, the most", Paper: UpTo(70.8), Unit: "%", Class: T, Of: mostBelow(hotP99), Gap: readersTogether, Known: Range{80.8, 92}},
		},
	},
	{
		ID: "LF15a", Figure: "15", What: "Entries of the queue that a release reads again, by the share of writers and the accesses, 256 clients; the paper's shortest section has one access (appendix C), and without any it is 0.024 here",
		Flags: declockBed + zipf + " --locks 100000 --ranks 256 --lock " + phaseFair,
		Quick: "--writers 1,0.5,0.1 --accesses 0,1,16 --duration 10ms", Full: "--writers 1,0.5,0.1 --accesses 0,1,2,4,8,16 " + declockFull,
		Claims: []Claim{
			{What: "READs again per release, the most with one access or more", Paper: UpTo(0.018), Class: E, Of: func(r Runs) float64 {
				return most(r.where(func(run *bench.Result) bool { return strings.Contains(run.Workload, "accesses") }), refetches)
			}},
			{What: "READs again with 16 accesses, below those with none, for each share", Class: S, Holds: func(r Runs) (bool, string) {
				worst := 0.0
				for _, share := range []float64{1, 0.5, 0.1} {
					at := r.Writers(share)
					none := at.where(func(run *bench.Result) bool { return !strings.Contains(run.Workload, "accesses") })
					worst = max(worst, most(at.Workload("accesses 16"), refetches)/most(none, refetches))
				}
				return worst < 1, number(worst) + " of them"
			}},
		},
	},
	{
		ID: "LF15b", Figure: "15", What: "The time in Unlock by the capacity of the queue, 256 clients",
		Flags: declockBed + half + " --locks 100000 --accesses 1 --ranks 256 --lock " + capacities(8, 128, 1024),
		Quick: "--keys uniform,zipf:0.99 --duration 2ms", Full: "--keys uniform,zipf:0.9,zipf:0.99 --duration 50ms --band",
		Claims: []Claim{
			{What: "Zipf 0.99: median with 128 entries", Paper: Range{0, 8.8}, Unit: "µs", Class: A, Of: releaseAt("zipf:0.99", 128)},
			{What: "uniform keys: median with 128 entries", Paper: Range{0, 8.8}, Unit: "µs", Class: A, Of: releaseAt("uniform", 128), Gap: fullLink, Known: Range{8.8, 20}},
			{What: "uniform keys: median with 1,024 entries over that with 8 is above 1", Class: S, Holds: func(r Runs) (bool, string) {
				v := releaseAt("uniform", 1024)(r) / releaseAt("uniform", 8)(r)
				return v > 1, number(v)
			}},
			{What: "1,024 entries over 8: uniform keys above Zipf 0.99", Class: S, Holds: func(r Runs) (bool, string) {
				a := releaseAt("uniform", 1024)(r) / releaseAt("uniform", 8)(r)
				b := releaseAt("zipf:0.99", 1024)(r) / releaseAt("zipf:0.99", 8)(r)
				return a > b, order(a, b)
			}},
		},
	},
	{
		ID: "LF16a", Figure: "16", What: "Resets, writers alone, no hierarchy: an entry for each client, and versions of 2 bits that are used up",
		Flags: declockBed + micro + " --writers 1 --duration 8ms",
		Each:  []string{"--ranks 32 --lock declock:CAPACITY=32:VERSION=2", "--ranks 256 --lock declock:CAPACITY=256:VERSION=2"},
		Full:  "--duration 100ms --band",
		Claims: []Claim{
			{What: "mean time of a reset, 32 clients", Paper: Exactly(83.29), Unit: "µs", Class: T, Of: resetTime(32), Gap: oneSided, Known: Range{10, 41.6}},
			{What: "mean time of a reset, 256 clients", Paper: Exactly(520.72), Unit: "µs", Class: T, Of: resetTime(256), Gap: oneSided, Known: Range{80, 260}},
			{What: "256 clients over 32 is above 1", Class: S, Holds: func(r Runs) (bool, string) {
				v := resetTime(256)(r) / resetTime(32)(r)
				return v > 1, number(v)
			}},
		},
	},
	{
		ID: "LF16b", Figure: "6.6", What: "Acquires that begin again for a reset, 256 clients; versions of 6 bits, which are used up 1,040 times as fast as those of 16",
		Flags: declockBed + micro + half + " --ranks 256 --lock " + short,
		Quick: "--duration 12ms", Full: "--duration 500ms",
		Claims: []Claim{
			{What: "acquires that begin again, for versions of 16 bits", Paper: Range{0, 0.0014}, Unit: "%", Class: A, Of: func(r Runs) float64 { return 100 * r.Of(count("aborts")) / 1040 }},
			{What: "the run has resets", Class: S, Holds: func(r Runs) (bool, string) {
				v := r.Of(count("resets"))
				return v > 0, fmt.Sprintf("%.2g per acquire", v)
			}},
		},
	},
	{
		ID: "LF16c", Figure: "16", What: "A node of eight stops, one core and two clients each, writers alone; leases of 1 ms",
		Flags: oneCore + micro + " --writers 1 --lock " + mortal + " --duration 30ms --stop-node 7ms,100ms",
		Claims: []Claim{
			{What: "throughput after the death", Paper: Range{85, 91}, Unit: "%", Class: A, Of: after(3, 7, 18, 30), Gap: fewerWait, Known: Range{91, 94}},
		},
	},
	{
		ID: "LF16e", Figure: "16", What: "A node of eight stops, 16 cores and 32 clients each, writers alone; leases of 2 ms",
		Flags: declockBed + micro + " --ranks 256 --writers 1 --lock " + strings.Replace(mortal, "1ms", "2ms", 1) + " --duration 90ms --stop-node 40ms,200ms",
		Claims: []Claim{
			{What: "throughput after the death", Paper: Range{95, 105}, Unit: "%", Class: A, Of: after(30, 40, 65, 90)},
		},
	},
	{
		ID: "LF16d", Figure: "16", What: "The memory node stops for 2 ms, one core and two clients each",
		Flags: oneCore + micro + " --writers 1 --lock " + phaseFair + " --duration 12ms --stop-memory 6ms,2ms",
		Claims: []Claim{
			{What: "visits in the second ms of the stop", Paper: Exactly(0), Class: A, Of: func(r Runs) float64 { return between(r, 7, 8) }},
			{What: "throughput after the stop over that before is 1, within 5 %", Class: S, Holds: func(r Runs) (bool, string) {
				v := after(2, 6, 8, 12)(r)
				return v > 95 && v < 105, number(v) + " %"
			}},
		},
	},
	{
		ID: "LF18", Figure: "18", What: "Ranks four times as far from each other as from the memory node: the paper does not say how far its farthest are",
		Flags: declockBed + zipf + half + " --locks 100000 --ranks 256 --lock caslock,dslr-plus,shiftlock," + phaseFair,
		Each:  []string{"", "--rank-delay 3600ns"},
		Quick: "--accesses 1 --duration 4ms", Full: "--accesses 1,4,16 --duration 100ms",
		Claims: []Claim{
			{What: "DecLock falls by", Paper: UpTo(14.7), Unit: "%", Class: T, Of: falls(phaseFair)},
			{What: "ShiftLock falls by", Paper: UpTo(49.6), Unit: "%", Class: T, Of: falls("shiftlock"), Gap: farUnknown, Known: Range{20, 39.6}},
			{What: "ShiftLock falls by more than DecLock", Class: S, Holds: func(r Runs) (bool, string) {
				a, b := falls("shiftlock")(r), falls(phaseFair)(r)
				return a > b, order(a, b)
			}},
			{What: "CASLock falls by", Paper: Exactly(0), Unit: "%", Class: A, Of: falls("caslock")},
			{What: "DSLR+ falls by", Paper: Exactly(0), Unit: "%", Class: A, Of: falls("dslr-plus")},
		},
	},
}

// Reasons of gaps.
const (
	hotLeaf = "The ideal makes a READ and a WRITE of the memory node under each lock, 5.6 µs for the median update, and waits for the hottest leaf itself: " +
		"it makes 2.8 million updates a second. The spinlock makes 19 tries per acquire and the paper's 28. The paper does not say how many updates its ideal makes."
	readersTogether = "Readers of a node share the lock under each policy here, as a reader that waits for another one would else wait for ever. " +
		"The authors' code lets in one or two with Remote-Prefer, and four with Local-Bound. " +
		"So with readers these policies are faster than in the paper: a tenth of writers makes 10.5 million visits a second with Remote-Prefer, and 5.5 million without hierarchy."
	fourInside = "Local-Bound hands over inside a node four times in a row: 0.092 messages per acquire leave the nodes. " +
		"TS-PF keeps the order between nodes, with 0.107 messages, and so each waits a fifth longer or more."
	localGains = "Local-Prefer has no stamps of other nodes to wait for: it makes 6.7 million visits a second, and TS-PF 6.2 million."
	fullLink   = "11.5 million releases a second read 1,024 bytes each, 11.8 GB/s, and the link carries 11.7. With 8 entries it is 22.5 million a second. The paper does not say how many it makes."
	oneSided   = "The rank that resets reads the parts of 32 ranks in a round trip, tells all that wait, and reads again those that had a part; idle ones answer nothing. " +
		"In the paper each client gets a signal and answers it, by its CPU, of which the model knows posts and polls alone. " +
		"A reset sends back all that wait at the lock, 6 of 32 clients and 170 of 256: nearly all wait at the hottest one, which bounds them."
	fewerWait  = "14 of 16 clients, 87.5 %, live. They wait less for each other, 0.077 of the acquires and 0.095 in a run without a death, so that each makes some 5 % more visits."
	farUnknown = "The paper does not say how far its farthest ranks are from each other. Four times as far costs ShiftLock 27 % here, and DecLock 16 %. " +
		"ShiftLock's loss is three and a half times DecLock's in the paper, and less than twice here."
)

// hot is a figure of the time in Lock of lock 0, ns; NaN where it is not among the busiest.
func hot(of func(bench.LockTimes) float64) Figure {
	return func(r *bench.Result) float64 {
		i := slices.IndexFunc(r.Busiest, func(l bench.LockTimes) bool { return l.Lock == 0 })
		if i < 0 {
			return math.NaN()
		}
		return of(r.Busiest[i])
	}
}

var (
	hotMean   = hot(func(l bench.LockTimes) float64 { return l.Mean })
	hotMedian = hot(func(l bench.LockTimes) float64 { return l.Median })
	hotP99    = hot(func(l bench.LockTimes) float64 { return l.P99 })
	hotSpread = hot(func(l bench.LockTimes) float64 { return l.P99 / l.Median })
)

// policies is the ratio of a figure of two policies at a share of writers.
func policies(f Figure, share float64, lock, other string) func(Runs) float64 {
	return func(r Runs) float64 { return Over(f, lock, other)(r.Writers(share)) }
}

// order is two figures, the first of which should be above the second.
func order(a, b float64) string { return number(a) + " and " + number(b) }

// belowNone says whether a policy's median and tail are below those without a hierarchy, at each
// share of writers.
func belowNone(lock string) func(Runs) (bool, string) {
	return func(r Runs) (bool, string) {
		median, tail := 0.0, 0.0
		for _, share := range []float64{1, 0.5, 0.1} {
			median = max(median, policies(hotMedian, share, lock, noHierarchy)(r))
			tail = max(tail, policies(hotP99, share, lock, noHierarchy)(r))
		}
		return median < 1 && tail < 1, order(median, tail)
	}
}

// pfBelowTF says whether TS-PF is below TS-TF at a share of writers.
func pfBelowTF(share float64) func(Runs) (bool, string) {
	return func(r Runs) (bool, string) {
		median, tail := policies(hotMedian, share, phaseFair, taskFair)(r), policies(hotP99, share, phaseFair, taskFair)(r)
		return median < 1 && tail < 1, order(median, tail)
	}
}

// mostBelow is how far TS-PF is below another policy at most, in percent.
func mostBelow(f Figure) func(Runs) float64 {
	return func(r Runs) float64 {
		v := math.Inf(-1)
		for _, share := range []float64{1, 0.5, 0.1} {
			for _, other := range []string{remotePolicy, localPolicy, boundPolicy} {
				v = max(v, 100*(1-policies(f, share, phaseFair, other)(r)))
			}
		}
		return v
	}
}

// count is what the locks have counted by a name, per acquire.
func count(name string) Figure {
	return func(r *bench.Result) float64 { return r.Counts[name] }
}

// refetches are the READs of entries that were not written yet, per release.
func refetches(r *bench.Result) float64 { return r.Counts["refetches"] }

// lockShare is the share of the operations on the memory node that are a spinlock's, in percent.
func lockShare(r *bench.Result) float64 {
	return 100 * (r.Network["CompareAndSwap.memory"] + r.Network["Accumulate.memory"]) / OnMemory(r)
}

// capacities are TS-PF with queues of so many entries.
func capacities(entries ...int) string {
	var out []string
	for _, n := range entries {
		out = append(out, entriesOf(n))
	}
	return strings.Join(out, ",")
}

func entriesOf(n int) string { return fmt.Sprintf("declock:POLICY=ts-pf:CAPACITY=%d", n) }

// releaseAt is the median time in Unlock with so many entries, µs.
func releaseAt(keys string, entries int) func(Runs) float64 {
	return func(r Runs) float64 {
		return r.Workload("keys " + keys).Lock(entriesOf(entries)).Of(func(r *bench.Result) float64 {
			if r.Release == nil {
				return math.NaN()
			}
			return r.Release.Median / 1000
		})
	}
}

// resetTime is the mean time of a reset with a number of clients, µs.
func resetTime(ranks int) func(Runs) float64 {
	return func(r Runs) float64 {
		return r.Ranks(ranks).Of(func(r *bench.Result) float64 { return r.Counts["reset ns"] / r.Counts["resets"] / 1000 })
	}
}

// between is the visits that ended from one ms of virtual time to another.
func between(r Runs, from, to int) float64 {
	if len(r) == 0 || len(r[0].PerMs) < to {
		return math.NaN()
	}
	n := int64(0)
	for _, v := range r[0].PerMs[from:to] {
		n += v
	}
	return float64(n)
}

// after is the throughput of one time over that of an earlier one, in percent.
func after(from, to, from2, to2 int) func(Runs) float64 {
	return func(r Runs) float64 {
		return 100 * (between(r, from2, to2) / float64(to2-from2)) / (between(r, from, to) / float64(to-from))
	}
}

// falls is by how much a lock's throughput falls at most if ranks are farther from each other, in
// percent.
func falls(lock string) func(Runs) float64 {
	return func(r Runs) float64 {
		v := math.NaN()
		for _, run := range r.Lock(lock) {
			if run.RankDelay > 0 {
				continue
			}
			far := r.Lock(lock).where(func(o *bench.Result) bool { return o.RankDelay > 0 && o.Workload == run.Workload })
			if x := 100 * (1 - far.Of(Throughput)/Throughput(run)); math.IsNaN(v) || x > v {
				v = x
			}
		}
		return v
	}
}
