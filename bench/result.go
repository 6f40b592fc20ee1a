package bench

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rmalock/rmalock/cider"
)

// A Result is what Run found. Its JSON is stable.
type Result struct {
	Mode           Mode    `json:"mode"`           // workload
	Lock           string  `json:"lock"`           // in text, with its parameters
	Shared         bool    `json:"shared_mode"`    // the lock has one
	Locks          int     `json:"locks"`          // number of locks
	Writers        float64 `json:"writers"`        // share of exclusive acquires; in mode dht of inserts
	Seed           uint64  `json:"seed"`           // of the ranks' random choices
	Ranks          int     `json:"ranks"`          // number of ranks
	Nodes          int     `json:"nodes"`          // number of nodes
	Cores          int     `json:"cores"`          // that the job may use
	Oversubscribed bool    `json:"oversubscribed"` // more ranks than cores
	Transport      string  `json:"transport"`      // as rma.Comm.Describe has it

	// Of a run in virtual time. The weak constants are those of the machine that are
	// known to no more than a range.
	Simulated  bool       `json:"simulated"`
	Machine    string     `json:"machine,omitempty"`              // its name
	About      string     `json:"machine_about,omitempty"`        // the machine in a line
	Weak       []Constant `json:"weak_constants,omitempty"`       // its weak constants
	Operations int64      `json:"simulated_operations,omitempty"` // on windows, polls included
	// Network is the operations per acquire that a network carried, by kind and host
	// ("Get.memory"; rank or memory), as the network does them, with all polls of an Await
	// ("poll.memory") and messages ("message") apart.
	Network     map[string]float64 `json:"network_per_acquire,omitempty"`
	MemoryNodes int                `json:"memory_nodes,omitempty"`
	Band        *Band              `json:"band,omitempty"` // nil without Virtual.Band

	Seconds   float64 `json:"duration_seconds"`    // measured, without warm-up
	Acquires  int64   `json:"acquires"`            // in that time, by all ranks
	PerSecond float64 `json:"acquires_per_second"` // of all ranks

	// Nanoseconds in Lock and Unlock of one acquire; in mode latency, batch means; in
	// mode dht, of one operation on the table; in mode clients, of one visit, with the
	// time by which it began late in an open loop. In modes latency and lb the mean is that
	// of all acquires, otherwise of those sampled.
	Mean   float64 `json:"ns_per_acquire_mean"`
	Median float64 `json:"ns_per_acquire_median"`
	Min    float64 `json:"ns_per_acquire_min"` // least
	P99    float64 `json:"ns_per_acquire_p99"`
	P999   float64 `json:"ns_per_acquire_p999"`
	Max    float64 `json:"ns_per_acquire_max"` // greatest

	// Inside is the mean time between acquire and release, in ns, of those sampled; 0 in
	// modes without work there. While all acquires are exclusive and there is one lock, no
	// lock can make more than 1e9/Inside of them a second.
	Inside float64 `json:"ns_inside_mean"`

	// Of mode clients. A visit acquires its locks, works and releases them.
	Workload        string      `json:"workload,omitempty"`           // in a line
	Mix             *Mix        `json:"mix,omitempty"`                // the same, if it is a Mix
	Offered         float64     `json:"offered_per_second,omitempty"` // Config.Rate, in visits
	Visits          int64       `json:"visits,omitempty"`             // of all ranks
	VisitsPerSecond float64     `json:"visits_per_second,omitempty"`  // of all ranks
	Aborts          float64     `json:"aborts_per_visit,omitempty"`   // attempts that gave way, or lost a lease
	CDF             []Step      `json:"latency_cdf,omitempty"`        // of the ns of a visit
	ShareCDF        []Step      `json:"share_cdf,omitempty"`          // of the ranks' shares; 1 is an even one
	RankTimes       []Times     `json:"latency_per_rank,omitempty"`   // of the visits of each rank
	LocksTaken      int         `json:"locks_taken,omitempty"`        // locks of which an acquire was timed
	Busiest         []LockTimes `json:"busiest_locks,omitempty"`      // those with the most acquires

	// Release is the time in Unlock of a visit; nil where it is not known. Counts is what the
	// locks have counted themselves, such as messages, per acquire. PerMs is the visits that ended
	// in each ms of virtual time, where something stops.
	Release *Times             `json:"release,omitempty"`
	Counts  map[string]float64 `json:"counts_per_acquire,omitempty"`
	PerMs   []int64            `json:"visits_per_ms,omitempty"`

	// RankDelay is by how much longer operations on ranks of other nodes are on their way, ns.
	RankDelay int64 `json:"rank_delay_ns,omitempty"`

	// KV is what the clients of a key-value store have done in that time, together. In real time
	// the counting pass after it is not in it.
	KV *cider.Stats `json:"kv,omitempty"`
	// Linearized is the number of operations of a key-value store that were found linearizable, the
	// warm-up's included; 0 for a run that is too long, or on several nodes.
	Linearized int64 `json:"linearized,omitempty"`

	PerRank []int64 `json:"acquires_per_rank"` // acquires of each rank
	// ShareDeviation is the standard deviation of acquires_per_rank divided by their
	// mean; 0 is a perfectly even share. In mode latency it is 0; in mode dht rank 0 is
	// left out.
	ShareDeviation float64 `json:"share_deviation"`

	// Ops are the lock's operations per acquire, by kind and distance of the target
	// ("FetchAndOp.far"; own, mate or far). RemoteOps is the sum of those on other
	// ranks, flushes and waits not counted.
	Ops       map[string]float64 `json:"ops_per_acquire"`
	RemoteOps float64            `json:"remote_ops_per_acquire"`

	// Retries are the tries that failed, per acquire: Backoffs in Ops.
	Retries float64 `json:"retries_per_acquire"`
	// Polls are the looks of Awaits at words of other nodes, per acquire, in virtual time.
	Polls float64 `json:"polls_per_acquire,omitempty"`

	NumGC int64  `json:"num_gc"` // garbage collections while measuring, all processes
	GOGC  string `json:"gogc"`   // percent, or "off"
}

// A Band is what a run in virtual time comes to while each weak constant in turn goes
// to the ends of its range, the others staying where they are.
type Band struct {
	Seconds   Range `json:"duration_seconds"`      // of Result.Seconds
	PerSecond Range `json:"acquires_per_second"`   // of Result.PerSecond
	Mean      Range `json:"ns_per_acquire_mean"`   // of Result.Mean
	Median    Range `json:"ns_per_acquire_median"` // of Result.Median
	P99       Range `json:"ns_per_acquire_p99"`    // of Result.P99
	P999      Range `json:"ns_per_acquire_p999"`   // of Result.P999
}

// A Range is from the least to the greatest.
type Range struct {
	Min float64 `json:"min"` // least
	Max float64 `json:"max"` // greatest
}

// of is the range of a figure, by its name in JSON.
func (b *Band) of(name string) *Range {
	switch name {
	case "duration_seconds":
		return &b.Seconds
	case "acquires_per_second":
		return &b.PerSecond
	case "ns_per_acquire_mean":
		return &b.Mean
	case "ns_per_acquire_median":
		return &b.Median
	case "ns_per_acquire_p99":
		return &b.P99
	}
	return &b.P999
}

// widen takes the figures of a run into the band.
func (b *Band) widen(r *Result) {
	for _, f := range []struct {
		band *Range
		v    float64
	}{{&b.Seconds, r.Seconds}, {&b.PerSecond, r.PerSecond}, {&b.Mean, r.Mean}, {&b.Median, r.Median}, {&b.P99, r.P99}, {&b.P999, r.P999}} {
		if *f.band == (Range{}) {
			*f.band = Range{f.v, f.v}
		}
		*f.band = Range{min(f.band.Min, f.v), max(f.band.Max, f.v)}
	}
}

// throughput fills in what follows from PerRank and the longest time that a rank
// spent between the two barriers: that of the rank that left the first one first,
// and so began first.
func (r *Result) throughput(longestNs int64) {
	r.Seconds = time.Duration(max(1, longestNs)).Seconds()
	for _, n := range r.PerRank {
		r.Acquires += n
	}
	r.PerSecond = float64(r.Acquires) / r.Seconds
	if r.Mode == Latency {
		return // one rank works
	}
	shares := r.shares()
	mean := float64(r.Acquires) / float64(len(shares))
	square := 0.0
	for _, n := range shares {
		square += (float64(n) - mean) * (float64(n) - mean)
	}
	if mean > 0 {
		r.ShareDeviation = math.Sqrt(square/float64(len(shares))) / mean
	}
}

// shares are the acquires of the ranks that work.
func (r *Result) shares() []int64 {
	if r.Mode == DHT {
		return r.PerRank[1:]
	}
	return r.PerRank
}

// latency fills in the quantiles of a histogram of picoseconds.
func (r *Result) latency(h *hdrhistogram.Histogram) {
	ns := func(ps int64) float64 { return float64(ps) / 1000 }
	r.Mean = h.Mean() / 1000
	r.Min = ns(h.Min())
	r.Median = ns(h.ValueAtPercentile(50))
	r.P99 = ns(h.ValueAtPercentile(99))
	r.P999 = ns(h.ValueAtPercentile(99.9))
	r.Max = ns(h.Max())
}
