package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
)

// writeThresholds writes the thresholds of a lock on the levels of t: for each level T_L,
// the number of elements and of their ranks, and the ranks that host their queues' tails;
// then T_W, T_R, and T_DC with its counters.
func writeThresholds(w io.Writer, t *topo.Topology, th rmarw.Thresholds) error {
	c, err := rmarw.NewCounters(t, th.TDC)
	if err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "level\tT_L\telements\tranks each\ttails at")
	for i, l := range t.Levels() {
		var hosts, sizes []int
		for e := range l.Elements {
			hosts, sizes = append(hosts, t.Host(i, e)), append(sizes, t.Count(i, e))
		}
		slices.Sort(hosts)
		fmt.Fprintf(tw, "%s\t%d\t%d\t%s\t%s\n", l.Name, th.TL[i], l.Elements, span(sizes), topo.RanksText(hosts))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	var sizes []int
	for k := range c.Len() {
		sizes = append(sizes, c.Count(k))
	}
	hosts := c.Hosts()
	slices.Sort(hosts)
	_, err = fmt.Fprintf(w, "T_W %d, T_R %d\nT_DC %s: %s for %s each, at %s\n",
		th.TW(), th.TR, th.TDC, counted(strconv.Itoa(c.Len()), "counter"), counted(span(sizes), "rank"), topo.RanksText(hosts))
	return err
}

// counted is "1 rank", or "2 ranks".
func counted(n, noun string) string {
	if n == "1" {
		return n + " " + noun
	}
	return n + " " + noun + "s"
}

// span is "4", or "2-7" of numbers that differ.
func span(ns []int) string {
	lo, hi := slices.Min(ns), slices.Max(ns)
	if lo == hi {
		return strconv.Itoa(lo)
	}
	return fmt.Sprintf("%d-%d", lo, hi)
}
