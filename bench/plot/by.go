package plot

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/bench"
)

// A choice is something by which runs of mode clients may differ.
type choice struct {
	id, label string
	of        func(*bench.Result) float64
}

var choices = []choice{
	{"skew", "theta of the Zipf distribution", func(r *bench.Result) float64 { return r.Mix.Keys.Theta }},
	{"locality", "acquires of local locks [%]", func(r *bench.Result) float64 { return 100 * r.Mix.Local }},
	{"together", "locks held together", func(r *bench.Result) float64 { return float64(r.Mix.Together) }},
	{"accesses", "memory accesses with the lock held", func(r *bench.Result) float64 { return float64(r.Mix.Accesses) }},
	{"inside", "time inside [µs]", func(r *bench.Result) float64 { return float64(r.Mix.Inside) / 1e3 }},
	{"think", "time to think [µs]", func(r *bench.Result) float64 { return float64(r.Mix.Think) / 1e3 }},
	{"locks", "locks", func(r *bench.Result) float64 { return float64(r.Locks) }},
	{"writers", "F_W, share of writers [%]", func(r *bench.Result) float64 { return 100 * r.Writers }},
	{"offered", "visits offered [million/s]", func(r *bench.Result) float64 { return r.Offered / 1e6 }},
}

// setting is a run's choices and ranks.
type setting struct {
	hot, scrambled string
	ranks          int
	values         [9]float64 // by number in choices
}

func settingOf(r *bench.Result) setting {
	s := setting{hot: fmt.Sprint(r.Mix.Keys.HotSet, r.Mix.Keys.HotShare), scrambled: fmt.Sprint(r.Mix.Keys.Scrambled), ranks: r.Ranks}
	for i, c := range choices {
		s.values[i] = c.of(r)
	}
	return s
}

// addByChoice takes runs of mode clients that differ by one choice alone into figures with it as
// x, where there are at least three values of it: throughput, and of an open loop latency.
func (d *drawing) addByChoice(results []*bench.Result) {
	for i, c := range choices {
		var groups []setting // with the choice left out
		byGroup := map[setting][]*bench.Result{}
		for _, r := range results {
			if r.Mode != bench.Clients || r.Mix == nil {
				continue
			}
			s := settingOf(r)
			s.values[i] = 0
			if byGroup[s] == nil {
				groups = append(groups, s)
			}
			byGroup[s] = append(byGroup[s], r)
		}
		number := 0
		for _, g := range groups {
			runs := byGroup[g]
			if len(values(runs, c)) < 3 {
				continue
			}
			number++
			mode, what := bench.Clients, "throughput"
			if c.id == "offered" {
				mode, what = bench.LB, "latency"
			}
			b := d.figure(fmt.Sprintf("8-%s-%d", c.id, number), fmt.Sprintf("P = %d: %s by %s", g.ranks, what, c.label), mode)
			b.Note = "the first run: " + taskOf(runs[0]).String()
			b.X = Axis{Label: c.label, Log: spans(values(runs, c))}
			for _, r := range runs {
				b.add(r, lockTitle(r), r.Lock, c.of(r))
			}
		}
	}
}

// values lists the values of a choice, ascending.
func values(runs []*bench.Result, c choice) []float64 {
	var out []float64
	for _, r := range runs {
		out = append(out, c.of(r))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// spans reports whether values are more than 0 and far apart, as on a logarithmic axis.
func spans(values []float64) bool {
	return values[0] > 0 && values[len(values)-1] >= 8*values[0]
}
