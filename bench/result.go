package bench

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Result is what Run found. Its JSON is stable.
type Result struct {
	Mode           Mode    `json:"mode"`
	Lock           string  `json:"lock"`
	Locks          int     `json:"locks"`
	Writers        float64 `json:"writers"` // share of exclusive acquires
	Ranks          int     `json:"ranks"`
	Nodes          int     `json:"nodes"`
	Cores          int     `json:"cores"` // that the job may use
	Oversubscribed bool    `json:"oversubscribed"`
	Transport      string  `json:"transport"`

	Seconds   float64 `json:"duration_seconds"` // measured, without warm-up
	Acquires  int64   `json:"acquires"`         // in that time, by all ranks
	PerSecond float64 `json:"acquires_per_second"`

	// Nanoseconds in Lock and Unlock of one acquire; in mode latency, batch means.
	Median float64 `json:"ns_per_acquire_median"`
	Min    float64 `json:"ns_per_acquire_min"`
	P99    float64 `json:"ns_per_acquire_p99"`
	P999   float64 `json:"ns_per_acquire_p999"`
	Max    float64 `json:"ns_per_acquire_max"`

	PerRank []int64 `json:"acquires_per_rank"`
	// ShareDeviation is the standard deviation of acquires_per_rank divided by their
	// mean; 0 is a perfectly even share. In mode latency it is 0.
	ShareDeviation float64 `json:"share_deviation"`

	// Ops are the lock's operations per acquire, by kind and distance of the target
	// ("FetchAndOp.far"; own, mate or far). RemoteOps is the sum of those on other
	// ranks, flushes and waits not counted.
	Ops       map[string]float64 `json:"ops_per_acquire"`
	RemoteOps float64            `json:"remote_ops_per_acquire"`

	NumGC int64  `json:"num_gc"` // garbage collections while measuring, all processes
	GOGC  string `json:"gogc"`   // percent, or "off"
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
	mean := float64(r.Acquires) / float64(r.Ranks)
	square := 0.0
	for _, n := range r.PerRank {
		square += (float64(n) - mean) * (float64(n) - mean)
	}
	if mean > 0 {
		r.ShareDeviation = math.Sqrt(square/float64(r.Ranks)) / mean
	}
}

// latency fills in the quantiles of a histogram of picoseconds.
func (r *Result) latency(h *hdrhistogram.Histogram) {
	ns := func(ps int64) float64 { return float64(ps) / 1000 }
	r.Min = ns(h.Min())
	r.Median = ns(h.ValueAtPercentile(50))
	r.P99 = ns(h.ValueAtPercentile(99))
	r.P999 = ns(h.ValueAtPercentile(99.9))
	r.Max = ns(h.Max())
}
