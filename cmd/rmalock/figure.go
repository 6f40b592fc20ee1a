package main

import (
	"slices"
	"strings"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/rmarw"
)

// restrict applies the flags that were given to the sweep of a figure: they select among its
// locks, workloads and shares of writers, and set the rest.
func (o *benchOptions) restrict(s bench.Sweep, given func(string) bool) bench.Sweep {
	s.Config, s.Repeat, s.Tables = o.sweep.Config, o.sweep.Repeat, o.sweep.Tables
	if given("ranks") || given("nodes") || given("topology") || o.backend.name != simulated {
		s.Ranks = o.sweep.Ranks
	}
	if given("lock") {
		s.Locks = slices.DeleteFunc(slices.Clone(s.Locks), func(l string) bool {
			name, _, _ := bench.SplitLock(l)
			return !slices.Contains(o.sweep.Locks, l) && !slices.Contains(o.sweep.Locks, name)
		})
	}
	if given("mode") {
		s.Modes = slices.DeleteFunc(slices.Clone(s.Modes), func(m bench.Mode) bool { return !slices.Contains(o.sweep.Modes, m) })
	}
	if given("writers") {
		s.Writers = slices.DeleteFunc(slices.Clone(s.Writers), func(w float64) bool { return !slices.Contains(o.sweep.Writers, w) })
	}
	return s
}

// applicable drops the runs of a figure whose T_DC the machine cannot have: a counter for
// every so many nodes, or so many counters on a node. Figure 4a has both.
func (o *benchOptions) applicable(points []bench.Point, nodes func(ranks int) int) []bench.Point {
	if o.figure == "" {
		return points // locks that the user named are run, or refused with the reason
	}
	return slices.DeleteFunc(points, func(p bench.Point) bool {
		n, tdc := nodes(p.Ranks), counters(p.Config.Lock)
		return tdc.Every > n || tdc.Each > p.Ranks/n
	})
}

// counters is T_DC of a lock in text if it is given by nodes, otherwise the zero value.
func counters(text string) rmarw.TDC {
	_, options, err := bench.SplitLock(text)
	if err != nil {
		return rmarw.TDC{}
	}
	for _, o := range options {
		if tdc, err := rmarw.ParseTDC(o.Value); strings.EqualFold(o.Name, "tdc") && err == nil && (tdc.Level == "" || tdc.Level == "node") {
			return tdc
		}
	}
	return rmarw.TDC{}
}
