package main

import (
	"slices"
	"strings"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/rmarw"
)

// narrow is the sweep of a figure without what flags that were given leave out, and
// with what they set.
func (o *benchOptions) narrow(s bench.Sweep, given func(string) bool) bench.Sweep {
	s.Config, s.Repeat = o.sweep.Config, o.sweep.Repeat
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

// suited are the runs of a figure without those of locks whose T_DC asks for more than the
// machine has, a counter for every so many nodes or so many on a node: Figure 4a has both.
func (o *benchOptions) suited(points []bench.Point, nodes func(ranks int) int) []bench.Point {
	if o.figure == "" {
		return points // what was named is run, or refused with the reason
	}
	return slices.DeleteFunc(points, func(p bench.Point) bool {
		n, tdc := nodes(p.Ranks), counters(p.Config.Lock)
		return tdc.Every > n || tdc.Each > p.Ranks/n
	})
}

// counters is T_DC of a lock in text, as far as it says so by nodes.
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
