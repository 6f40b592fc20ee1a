package plot

import (
	"fmt"
	"math"
	"slices"

	"github.com/rmalock/rmalock/bench"
)

// task is what runs of mode clients have in common that are compared.
type task struct {
	workload string
	writers  float64
	locks    int
	offered  float64
}

func taskOf(r *bench.Result) task { return task{r.Workload, r.Writers, r.Locks, r.Offered} }

// String is the task in a title.
func (k task) String() string {
	text := fmt.Sprintf("%s; %d locks, F_W = %s %%", k.workload, k.locks, percent(k.writers))
	if k.offered > 0 {
		text += fmt.Sprintf(", %s visits/s offered", number(k.offered))
	}
	return text
}

// addClients takes runs of mode clients into figures, up to four for each task: throughput by
// ranks, unless there are several tasks with one number of ranks each, and, of the runs with the
// most ranks, the distribution functions of latency, of the time in Lock of the busiest lock, and
// of the ranks' shares.
func (d *drawing) addClients(results []*bench.Result) {
	var tasks []task
	for _, r := range results {
		if r.Mode == bench.Clients && !slices.Contains(tasks, taskOf(r)) {
			tasks = append(tasks, taskOf(r))
		}
	}
	for i, k := range tasks {
		id := fmt.Sprintf("7-clients-%d", i+1)
		ranks := 0
		for _, r := range results {
			if r.Mode == bench.Clients && taskOf(r) == k {
				d.figure(id, "Clients: "+k.String(), r.Mode).add(r, lockTitle(r), r.Lock, float64(r.Ranks))
				ranks = max(ranks, r.Ranks)
			}
		}
		if len(tasks) > 1 && !slices.ContainsFunc(d.figures[id].lines, func(l *line) bool { return len(l.at) > 1 }) {
			delete(d.figures, id)
		}
		var most []*bench.Result // the first run of each lock
		for _, r := range results {
			if r.Mode == bench.Clients && taskOf(r) == k && r.Ranks == ranks &&
				!slices.ContainsFunc(most, func(s *bench.Result) bool { return s.Lock == r.Lock }) {
				most = append(most, r)
			}
		}
		at := fmt.Sprintf(", P = %d: %s", ranks, k)
		d.distribution(id+"-latency", "Latency"+at, Axis{Label: "latency of a visit, at most [µs]"}, "visits [%]", most, func(r *bench.Result) []bench.Step { return micro(r.CDF) })
		d.distribution(id+"-lock", "The busiest lock"+at, Axis{Label: "time in Lock, at most [µs]"}, "acquires of the busiest lock [%]", most, func(r *bench.Result) []bench.Step {
			if len(r.Busiest) == 0 {
				return nil
			}
			return micro(r.Busiest[0].CDF)
		})
		d.distribution(id+"-shares", "Fairness"+at, Axis{Label: "acquires of a rank over the mean, at most", Ticks: shareTicks}, "ranks [%]", most, func(r *bench.Result) []bench.Step { return r.ShareCDF })
	}
}

// lockTitle is a run's lock in a legend.
func lockTitle(r *bench.Result) string {
	name, options, _ := bench.SplitLock(r.Lock)
	return title(name) + spell(options)
}

// shareTicks are the shares at which the distribution of ranks is shown.
var shareTicks = []float64{0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10}

// distribution draws distribution functions, a line for each run. The values shown are those of
// the x axis's ticks, or where it has none some in each decade.
func (d *drawing) distribution(id, title string, x Axis, y string, runs []*bench.Result, of func(*bench.Result) []bench.Step) {
	if len(x.Ticks) == 0 {
		x.Ticks = ticks(runs, of)
	}
	x.Log = true
	b := &builder{distribution: true, Figure: Figure{ID: id, Title: title, Where: d.where, X: x, Y: Axis{Label: y}}}
	for _, r := range runs {
		l := &line{name: lockTitle(r), hue: r.Lock}
		steps := of(r)
		for _, at := range x.Ticks {
			share := 100 * upTo(steps, at)
			l.points = append(l.points, Point{X: at, Y: share, Low: share, High: share})
		}
		if len(steps) > 0 {
			b.lines = append(b.lines, l)
		}
		b.simulated = b.simulated || r.Simulated
		b.oversubscribed = b.oversubscribed || r.Oversubscribed
	}
	if len(b.lines) > 0 {
		d.figures[id] = b
	}
}

// upTo is the share of the values up to one.
func upTo(steps []bench.Step, at float64) float64 {
	share := 0.0
	for _, s := range steps {
		if s.At <= at*(1+1e-9) {
			share = s.Share
		}
	}
	return share
}

// ticks are numbers of one digit or two, from below the least to above the greatest value.
func ticks(runs []*bench.Result, of func(*bench.Result) []bench.Step) []float64 {
	low, high := math.Inf(1), 0.0
	for _, r := range runs {
		for _, s := range of(r) {
			low, high = min(low, s.At), max(high, s.At)
		}
	}
	var out []float64
	for e := math.Floor(math.Log10(low)); low <= high && e <= math.Ceil(math.Log10(high)); e++ {
		for _, m := range []float64{1, 1.5, 2, 3, 5, 7} {
			switch v := m * math.Pow(10, e); {
			case v <= low:
				out = []float64{v}
			case len(out) == 0 || out[len(out)-1] < high:
				out = append(out, v)
			}
		}
	}
	return out
}

// micro is a distribution function of ns in µs.
func micro(steps []bench.Step) []bench.Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].At /= 1e3
	}
	return out
}
