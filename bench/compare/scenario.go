package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
)

// A scenario is one comparison: the contestants, the way of measuring, and the goals of ours.
type scenario struct {
	title       string
	ranks       int
	uncontended bool // rank 0 alone takes the lock: nanoseconds, less is better; else acquires per second
	far         bool // no lock: a FetchAndOp and a flush between two hosts, nanoseconds
	runs        int  // of each contestant
	most        int  // goes on up to so many while a target is not decided
	targets     []target
}

// scenarios are the comparisons with goals on one host.
func scenarios() []scenario {
	return []scenario{
		{
			title: "uncontended", ranks: 2, uncontended: true, runs: 10,
			targets: []target{
				{what: "ours, best of 10 runs, ns", of: bestOfOurs, limit: 45, atMost: true},
				{what: "ours / C D-MCS, time", of: oursTo(cDMCS), limit: 1.0 / 3, atMost: true},
				{what: "ours / C MPI_Win_lock, time", of: oursTo(cWinLock), limit: 1, atMost: true},
			},
		},
		{
			title: "2 ranks contending", ranks: 2, runs: 7,
			targets: []target{{what: "ours / C D-MCS, throughput of 2 ranks", of: oursTo(cDMCS), limit: 0.9}},
		},
		{
			title: "8 ranks contending", ranks: 8, runs: 7,
			targets: []target{{what: "ours / C D-MCS, throughput of 8 ranks", of: oursTo(cDMCS), limit: 1.3}},
		},
	}
}

// betweenHosts are the comparisons across hosts.
func betweenHosts() []scenario {
	return []scenario{{
		title: "FetchAndOp and flush between two hosts", ranks: 2, uncontended: true, far: true, runs: 9,
		targets: []target{{what: "ours without helper / C, time", of: oursTo(cFAO), limit: 1.15, atMost: true}},
	}}
}

// A target is a bound on the median of figures of a measured scenario.
type target struct {
	what   string
	of     func(*comparison) []float64
	limit  float64
	atMost bool // else at least
}

// contestants are the ways to run the programs in a scenario. The first one is
// ours, and counts.
func (s *scenario) contestants(l *launcher) []contestant {
	duration := fmt.Sprintf("%g", l.duration.Seconds())
	if s.far {
		our, c := []string{"-duration", l.duration.String()}, []string{"--duration", duration}
		all := []contestant{
			{Name: "ours, no helper", Program: ourFAO, job: job{args: our}},
			{Name: "ours, helper", Program: ourFAO, job: job{args: append(our, "-helper")}},
			{Name: "C", Program: cFAO, job: job{args: c}},
		}
		if !l.mpich {
			all = append(all, contestant{Name: "C, yields", Program: cFAO, job: job{args: c, env: []string{"OMPI_MCA_mpi_yield_when_idle=1"}}})
		}
		return all
	}
	mode := "ecsb"
	if s.uncontended {
		mode = "latency"
	}
	yield := "no"
	if l.machine.oversubscribed(s.ranks) {
		yield = "yes"
	}
	our := []string{"bench", "--lock", "dmcs", "--mode", mode, "--duration", l.duration.String(), "--json"}
	c := []string{"--mode", mode, "--duration", duration}
	with := func(more ...string) []string { return append(slices.Clone(c), more...) }
	return []contestant{
		{Name: "ours", Program: ours, job: job{args: our}},
		{Name: "ours, GOGC=off", Program: ours, job: job{args: our, env: []string{"GOGC=off"}}},
		{Name: "C D-MCS, own words by MPI", Program: cDMCS, job: job{args: with("--own", "fop", "--yield", yield)}},
		{Name: "C D-MCS, own words by load", Program: cDMCS, job: job{args: with("--own", "load", "--yield", yield)}},
		{Name: "C MPI_Win_lock", Program: cWinLock, job: job{args: with()}},
	}
}

// A contestant is a way to run a program, and the results of its runs.
type contestant struct {
	Name    string    `json:"name"`
	Program string    `json:"program"`
	Median  float64   `json:"median"`
	Best    float64   `json:"best"`
	Ratio   float64   `json:"ours_to_it"` // median of the ratios within a round
	Runs    []float64 `json:"runs"`       // ns per acquire (median of batches), or acquires per second
	Samples []sample  `json:"samples"`

	job job
}

// comparison is a scenario with its results.
type comparison struct {
	Title          string       `json:"title"`
	Ranks          int          `json:"ranks"`
	Oversubscribed bool         `json:"oversubscribed"`
	Unit           string       `json:"unit"`
	Contestants    []contestant `json:"contestants"`
	Verdicts       []verdict    `json:"targets"`

	uncontended, far bool
}

// A verdict is a target and what was measured.
type verdict struct {
	What     string  `json:"what"`
	Measured float64 `json:"measured"`
	Low      float64 `json:"low,omitempty"` // what would come out in the long run is between them with 95 % certainty
	High     float64 `json:"high,omitempty"`
	Limit    float64 `json:"limit"`
	AtMost   bool    `json:"at_most"`
	Met      bool    `json:"met"`
}

// measure runs all contestants by turns.
func (s *scenario) measure(ctx context.Context, l *launcher, progress io.Writer) (*comparison, error) {
	m := &comparison{
		Title: s.title, Ranks: s.ranks, Oversubscribed: l.machine.oversubscribed(s.ranks),
		Unit: "acquires/s", Contestants: s.contestants(l), uncontended: s.uncontended, far: s.far,
	}
	if s.uncontended {
		m.Unit = "ns"
	}
	n := len(m.Contestants)
	for run := 0; run < s.runs || run < s.most && !s.decided(m); run++ {
		fmt.Fprintf(progress, "%s: run %d of %d\n", s.title, run+1, max(run+1, s.runs))
		for i := range n {
			c := &m.Contestants[(run+i)%n]
			c.job.program, c.job.ranks = c.Program, s.ranks
			got, err := l.run(ctx, c.job)
			if err != nil {
				return nil, err
			}
			c.Samples = append(c.Samples, got)
			if s.uncontended {
				c.Runs = append(c.Runs, got.Median)
			} else {
				c.Runs = append(c.Runs, got.PerSecond)
			}
		}
	}
	m.summarize()
	for _, t := range s.targets {
		m.Verdicts = append(m.Verdicts, t.judge(m))
	}
	return m, nil
}

// decided reports whether more runs would hardly change a verdict.
func (s *scenario) decided(m *comparison) bool {
	m.summarize()
	for _, t := range s.targets {
		if v := t.judge(m); len(t.of(m)) != 1 && (v.High == 0 || v.Low <= v.Limit && v.Limit <= v.High) {
			return false
		}
	}
	return true
}

// summarize fills in the figures that follow from the runs.
func (m *comparison) summarize() {
	for i := range m.Contestants {
		c := &m.Contestants[i]
		c.Median = median(c.Runs)
		c.Best = slices.Max(c.Runs)
		if m.uncontended {
			c.Best = slices.Min(c.Runs)
		}
		c.Ratio = median(ratios(m.Contestants[0].Runs, c.Runs))
	}
}

// best is the contestant of a program with the best median.
func (m *comparison) best(program string) *contestant {
	var best *contestant
	for i := range m.Contestants {
		c := &m.Contestants[i]
		switch {
		case c.Program != program:
		case best == nil, (c.Median < best.Median) == m.uncontended && c.Median != best.Median:
			best = c
		}
	}
	return best
}

// bestOfOurs is the best run of ours.
func bestOfOurs(m *comparison) []float64 { return []float64{m.Contestants[0].Best} }

// oursTo are the ratios within a round of ours to a program at its best setting.
func oursTo(program string) func(*comparison) []float64 {
	return func(m *comparison) []float64 { return ratios(m.Contestants[0].Runs, m.best(program).Runs) }
}

func (t *target) judge(m *comparison) verdict {
	of := t.of(m)
	v := verdict{What: t.what, Measured: median(of), Limit: t.limit, AtMost: t.atMost}
	v.Low, v.High = interval(of)
	v.Met = v.Measured >= v.Limit
	if t.atMost {
		v.Met = v.Measured <= v.Limit
	}
	return v
}

// median is the middle value, or the mean of the two in the middle.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// interval is where the median of ever more such values would lie, with 95 % certainty
// whatever their distribution: between two of them that are as far from the least as from
// the greatest (the sign test). 0 and 0 for fewer than six, which do not tell.
func interval(v []float64) (low, high float64) {
	v = slices.Sorted(slices.Values(v))
	n, k := len(v), 0
	for tail, p := 0.0, math.Pow(0.5, float64(n)); tail+p <= 0.025; p *= float64(n-k+1) / float64(k) { // p: k of n lie below
		tail += p
		k++
	}
	if k == 0 {
		return 0, 0
	}
	return v[k-1], v[n-k]
}

// ratios are those of values at the same place.
func ratios(a, b []float64) []float64 {
	r := make([]float64, len(a))
	for i := range r {
		r[i] = a[i] / b[i]
	}
	return r
}
