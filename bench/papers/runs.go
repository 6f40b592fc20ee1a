package papers

import (
	"math"
	"slices"
	"strings"

	"github.com/rmalock/rmalock/bench"
)

// Runs are the results of an experiment, some of which a claim picks.
type Runs []*bench.Result

// where keeps some.
func (r Runs) where(keep func(*bench.Result) bool) Runs {
	return slices.DeleteFunc(slices.Clone(r), func(run *bench.Result) bool { return !keep(run) })
}

// Lock keeps those of a lock: a name, with any parameters, or a name with its parameters.
func (r Runs) Lock(name string) Runs {
	return r.where(func(run *bench.Result) bool {
		return run.Lock == name || !strings.Contains(name, ":") && strings.HasPrefix(run.Lock, name+":")
	})
}

// exactly keeps those of a lock with these parameters alone.
func (r Runs) exactly(lock string) Runs {
	return r.where(func(run *bench.Result) bool { return run.Lock == lock })
}

// Ranks keeps those with a number of ranks.
func (r Runs) Ranks(n int) Runs {
	return r.where(func(run *bench.Result) bool { return run.Ranks == n })
}

// Mode keeps those of a mode.
func (r Runs) Mode(m bench.Mode) Runs {
	return r.where(func(run *bench.Result) bool { return run.Mode == m })
}

// Locks keeps those with a number of locks.
func (r Runs) Locks(n int) Runs {
	return r.where(func(run *bench.Result) bool { return run.Locks == n })
}

// Writers keeps those with a share of exclusive acquires.
func (r Runs) Writers(share float64) Runs {
	return r.where(func(run *bench.Result) bool { return math.Abs(run.Writers-share) < 1e-9 })
}

// Workload keeps those whose workload has a part, such as "keys zipf:0.99".
func (r Runs) Workload(part string) Runs {
	return r.where(func(run *bench.Result) bool {
		return strings.Contains(", "+run.Workload+", ", ", "+part+", ")
	})
}

// best is the run with the highest throughput: the papers report the best of some parameters,
// such as a limit of tries. It is nil for none.
func (r Runs) best() *bench.Result {
	if len(r) == 0 {
		return nil
	}
	return slices.MaxFunc(r, func(a, b *bench.Result) int {
		switch x, y := Throughput(a), Throughput(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
}

// A Figure is a figure of a run.
type Figure func(*bench.Result) float64

// Throughput is visits a second in mode clients, and acquires a second elsewhere.
func Throughput(r *bench.Result) float64 {
	if r.Mode == bench.Clients {
		return r.VisitsPerSecond
	}
	return r.PerSecond
}

// Mean is the mean latency, ns.
func Mean(r *bench.Result) float64 { return r.Mean }

// Median is the median latency, ns.
func Median(r *bench.Result) float64 { return r.Median }

// P99 is the latency of 99 %, ns.
func P99(r *bench.Result) float64 { return r.P99 }

// P999 is the latency of 99.9 %, ns.
func P999(r *bench.Result) float64 { return r.P999 }

// AbortShare is the share of attempts that were aborted, in percent.
func AbortShare(r *bench.Result) float64 { return 100 * r.Aborts / (1 + r.Aborts) }

// OnMemory is the operations on memory nodes per acquire, polls included.
func OnMemory(r *bench.Result) float64 {
	sum := 0.0
	for name, n := range r.Network {
		if strings.HasSuffix(name, ".memory") {
			sum += n
		}
	}
	return sum
}

// Of is a figure of the best run; NaN for none.
func (r Runs) Of(f Figure) float64 {
	if best := r.best(); best != nil {
		return f(best)
	}
	return math.NaN()
}

// Over is the ratio of a figure of a lock's best run and of another's.
func Over(f Figure, lock, other string) func(Runs) float64 {
	return func(r Runs) float64 { return r.Lock(lock).Of(f) / r.Lock(other).Of(f) }
}

// OverBand is the range of Over for throughputs, means and tails where runs have bands: each
// side's own, as if they were independent.
func OverBand(f Figure, lock, other string) func(Runs) Range {
	return func(r Runs) Range {
		a, b := r.Lock(lock).band(f), r.Lock(other).band(f)
		return Range{a.Low / b.High, a.High / b.Low}
	}
}

// band is the range of a figure of the best run.
func (r Runs) band(f Figure) Range {
	best := r.best()
	if best == nil {
		return Exactly(math.NaN())
	}
	if best.Band == nil {
		return Exactly(f(best))
	}
	low, high := *best, *best
	scale := 1.0
	if best.PerSecond > 0 {
		scale = best.VisitsPerSecond / best.PerSecond
	}
	b := best.Band
	low.PerSecond, high.PerSecond = b.PerSecond.Min, b.PerSecond.Max
	low.VisitsPerSecond, high.VisitsPerSecond = scale*b.PerSecond.Min, scale*b.PerSecond.Max
	low.Mean, high.Mean = b.Mean.Min, b.Mean.Max
	low.Median, high.Median = b.Median.Min, b.Median.Max
	low.P99, high.P99 = b.P99.Min, b.P99.Max
	low.P999, high.P999 = b.P999.Min, b.P999.Max
	return Range{f(&low), f(&high)}
}
