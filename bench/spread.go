package bench

import (
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Times are what a histogram says of acquires, in ns.
type Times struct {
	Mean   float64 `json:"ns_mean"`
	Median float64 `json:"ns_median"`
	P99    float64 `json:"ns_p99"`
	P999   float64 `json:"ns_p999"`
	Max    float64 `json:"ns_max"`
}

// A LockTimes is the time in Lock of one lock, release and work not counted.
type LockTimes struct {
	Lock  int     `json:"lock"`  // id in the table
	Share float64 `json:"share"` // of the acquires of all locks
	Times
	CDF []Step `json:"cdf"` // of the time in ns
}

// A Step is a point of a distribution function.
type Step struct {
	At    float64 `json:"at"`    // a value
	Share float64 `json:"share"` // of the values up to it, 0 to 1
}

// times is what a histogram of picoseconds says.
func times(h *hdrhistogram.Histogram) Times {
	ns := func(percent float64) float64 { return float64(h.ValueAtPercentile(percent)) / 1000 }
	return Times{Mean: h.Mean() / 1000, Median: ns(50), P99: ns(99), P999: ns(99.9), Max: float64(h.Max()) / 1000}
}

// percents are those of a distribution function that is shown.
var percents = []float64{0.1, 1, 2.5, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 97.5, 99, 99.5, 99.9, 99.99, 100}

// released fills in the times in Unlock.
func (r *Result) released(s samples) {
	if len(s) > 0 {
		t := times(s.histogram())
		r.Release = &t
	}
}

// cdf is the distribution function of a histogram of picoseconds, in ns.
func cdf(h *hdrhistogram.Histogram) []Step {
	var out []Step
	for i, ps := range h.ValueAtPercentilesSlice(percents) {
		out = append(out, Step{float64(ps) / 1000, round(percents[i] / 100)})
	}
	return out
}

// shareCDF is the distribution function of the ranks' shares of the acquires: 1 is an even
// share. Ranks with one share are one step.
func shareCDF(perRank []int64) []Step {
	sorted := slices.Sorted(slices.Values(perRank))
	sum := int64(0)
	for _, n := range sorted {
		sum += n
	}
	ranks := float64(len(sorted))
	var out []Step
	for i, n := range sorted {
		if i+1 == len(sorted) || sorted[i+1] != n {
			out = append(out, Step{float64(n) * ranks / float64(max(1, sum)), float64(i+1) / ranks})
		}
	}
	return out
}

// spread fills in what differs between ranks and between locks, in mode clients.
func (r *Result) spread(all samples, byRank []samples, byLock lockSamples) {
	h := all.histogram()
	r.CDF, r.ShareCDF = cdf(h), shareCDF(r.PerRank)
	for _, s := range byRank {
		s.fill(h)
		r.RankTimes = append(r.RankTimes, times(h))
	}
	counts := byLock.counts()
	total := int64(0)
	for _, n := range counts {
		total += n
	}
	r.LocksTaken = len(counts)
	ids := top(counts, busiest)
	of := byLock.of(ids)
	for _, id := range ids {
		of[id].fill(h)
		r.Busiest = append(r.Busiest, LockTimes{Lock: id, Share: float64(counts[id]) / float64(total), Times: times(h), CDF: cdf(h)})
	}
}
