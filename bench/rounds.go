package bench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// WriteRounds compares the locks of several rounds of runs, a line for each lock. It writes
// the median throughput; median, least and greatest ratio to the first lock with the same
// workload in the same round; the share of the least favoured rank; and the time inside the
// critical section. Runs with the same seed are a round.
func WriteRounds(w io.Writer, results []*Result) error {
	type task struct {
		mode         Mode
		workload     string
		writers      float64
		ranks, locks int
	}
	type runs struct {
		lock   string
		speed  map[uint64]float64
		share  []float64 // of the least favoured rank, relative to the mean
		inside []float64 // ns
	}
	var tasks []task
	by := map[task][]*runs{}
	for _, r := range results {
		k := task{r.Mode, r.Workload, r.Writers, r.Ranks, r.Locks}
		if !slices.Contains(tasks, k) {
			tasks = append(tasks, k)
		}
		i := slices.IndexFunc(by[k], func(l *runs) bool { return l.lock == r.Lock })
		if i < 0 {
			i = len(by[k])
			by[k] = append(by[k], &runs{lock: r.Lock, speed: map[uint64]float64{}})
		}
		l := by[k][i]
		l.speed[r.Seed] = r.Speed()
		l.inside = append(l.inside, r.Inside)
		if len(r.PerRank) > 0 && r.Acquires > 0 {
			l.share = append(l.share, float64(slices.Min(r.PerRank))*float64(len(r.PerRank))/float64(r.Acquires))
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "mode\tranks\tF_W %\trounds\tmillion/s\tratio\tlow\thigh\tleast %\tinside us\t  lock")
	for _, k := range tasks {
		first := by[k][0]
		for _, l := range by[k] {
			var speeds, ratios []float64
			for seed, v := range l.speed {
				speeds = append(speeds, v)
				if base, ok := first.speed[seed]; ok {
					ratios = append(ratios, v/base)
				}
			}
			slices.Sort(speeds)
			slices.Sort(ratios)
			slices.Sort(l.share)
			slices.Sort(l.inside)
			if len(ratios) == 0 {
				continue
			}
			fmt.Fprintf(t, "%s\t%d\t%.4g\t%d\t%.4g\t%.3g\t%.3g\t%.3g\t%.3g\t%.3g\t  %s\n", k.mode, k.ranks, 100*k.writers, len(speeds),
				median(speeds)/1e6, median(ratios), ratios[0], ratios[len(ratios)-1], 100*median(l.share), median(l.inside)/1e3, l.lock)
		}
	}
	return t.Flush()
}

// median of sorted numbers.
func median(v []float64) float64 {
	switch n := len(v); {
	case n == 0:
		return 0
	case n%2 == 0:
		return (v[n/2-1] + v[n/2]) / 2
	default:
		return v[n/2]
	}
}

// Speed is what a run is compared by: acquires per second. In mode latency these are the
// lock's own, since time between batches is not counted.
func (r *Result) Speed() float64 {
	if r.Mode == Latency && r.Mean > 0 {
		return 1e9 / r.Mean
	}
	return r.PerSecond
}
