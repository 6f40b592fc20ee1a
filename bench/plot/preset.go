package plot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/lock"
)

// A preset is what one of the paper's figures shows. Where the paper's text does not
// say which workload a figure has, it is the one of the figures beside it.
type preset struct {
	name, title string
	sweep       bench.Sweep
}

var (
	ranks      = []int{8, 16, 32, 64, 128, 256, 512, 1024}
	allWriters = []float64{0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1}
)

// rw is RMA-RW with values of a parameter.
func rw(parameter string, values ...string) []string {
	var out []string
	for _, v := range values {
		out = append(out, "rmarw:"+parameter+"="+v)
	}
	return out
}

var presets = []preset{
	{"3", "RMA-MCS and the state of the art", bench.Sweep{
		Modes: []bench.Mode{bench.LB, bench.ECSB, bench.SOB, bench.WCSB, bench.WARB},
		Locks: []string{"fompi-spin", "dmcs", "rmamcs"}, Writers: []float64{1}, Ranks: ranks}},
	{"4a", "T_DC: physical counters", bench.Sweep{
		Modes: []bench.Mode{bench.SOB}, Writers: []float64{0.002}, Ranks: ranks,
		Locks: rw("tdc", "8 per node", "4 per node", "2 per node", "1 per node", "every 2nd node", "every 4th node")}},
	{"4b", "Product of T_L,i", bench.Sweep{ // machine/node
		Modes: []bench.Mode{bench.SOB}, Writers: []float64{0.25}, Ranks: ranks,
		Locks: rw("tl", "10/50", "20/50", "50/50", "100/50")}},
	{"4c", "T_L,i of equal product, throughput", bench.Sweep{
		Modes: []bench.Mode{bench.SOB}, Writers: []float64{0.25}, Ranks: ranks,
		Locks: rw("tl", "100/10", "40/25", "20/50")}},
	{"4d", "T_L,i of equal product, latency", bench.Sweep{
		Modes: []bench.Mode{bench.LB}, Writers: []float64{0.25}, Ranks: ranks,
		Locks: rw("tl", "100/10", "40/25", "20/50")}},
	{"4e", "T_R", bench.Sweep{
		Modes: []bench.Mode{bench.ECSB}, Writers: []float64{0.002}, Ranks: ranks,
		Locks: rw("tr", "1000", "2000", "3000", "4000", "5000", "6000")}},
	{"4f", "T_R and F_W", bench.Sweep{
		Modes: []bench.Mode{bench.ECSB}, Writers: []float64{0.02, 0.05}, Ranks: ranks,
		Locks: rw("tr", "3000", "4000", "5000")}},
	{"5", "RMA-RW and the state of the art", bench.Sweep{
		Modes: []bench.Mode{bench.LB, bench.ECSB, bench.SOB},
		Locks: []string{"fompi-rw", "rmarw"}, Writers: []float64{0.002, 0.02, 0.05}, Ranks: ranks}},
	{"5w", "RMA-RW and the state of the art, by share of writers", bench.Sweep{
		Modes: []bench.Mode{bench.SOB},
		Locks: []string{"fompi-rw", "rmarw"}, Writers: allWriters, Ranks: []int{64, 256}}},
	{"6", "A distributed hashtable", bench.Sweep{
		Modes: []bench.Mode{bench.DHT},
		Locks: []string{bench.Atomic, "fompi-rw", "rmarw"}, Writers: []float64{0, 0.02, 0.05, 0.2}, Ranks: ranks}},
}

// Presets lists the names of the figures that Preset knows.
func Presets() []string {
	var out []string
	for _, p := range presets {
		out = append(out, p.name)
	}
	return out
}

// Preset is the sweep of a figure of rma-rw, section 5, for the locks that are
// registered; absent are the others. "4" stands for 4a to 4f, and "all" for all. An
// error wraps bench.ErrConfig.
func Preset(name string) (sweeps []bench.Sweep, absent []string, err error) {
	for _, p := range presets {
		if name != "all" && name != p.name && (name != "4" || !strings.HasPrefix(p.name, "4")) {
			continue
		}
		s := p.sweep
		s.Locks = nil
		for _, text := range p.sweep.Locks {
			if _, err := bench.ParseLock(text); err == nil || text == bench.Atomic {
				s.Locks = append(s.Locks, text)
			} else if plain, _, _ := bench.SplitLock(text); !slices.Contains(absent, plain) {
				absent = append(absent, plain)
			}
		}
		if len(s.Locks) > 0 {
			sweeps = append(sweeps, s)
		}
	}
	if sweeps == nil && absent == nil {
		return nil, nil, fmt.Errorf("no figure is called %q; there are: %s, 4, all: %w", name, strings.Join(Presets(), ", "), bench.ErrConfig)
	}
	if sweeps == nil {
		return nil, absent, fmt.Errorf("figure %s takes locks that this program has not (with their parameters): %s: %w", name, strings.Join(absent, ", "), bench.ErrConfig)
	}
	return sweeps, absent, nil
}

// presetOf is the figure of section 5.2 that a run with parameters is part of; the
// zero preset for none.
func presetOf(r *bench.Result) preset {
	for _, p := range presets {
		if strings.HasPrefix(p.name, "4") && slices.Contains(p.sweep.Modes, r.Mode) &&
			slices.Contains(p.sweep.Locks, r.Lock) && slices.Contains(p.sweep.Writers, r.Writers) {
			return p
		}
	}
	return preset{}
}

// title is what a lock is called in a legend.
func title(name string) string {
	switch name {
	case bench.Atomic:
		return "foMPI-A (atomics alone)"
	case "fompi-spin":
		return "foMPI-Spin"
	case "fompi-rw":
		return "foMPI-RW"
	case "dmcs":
		return "D-MCS"
	case "rmamcs":
		return "RMA-MCS"
	case "rmarw":
		return "RMA-RW"
	}
	if i, err := lock.Lookup(name); err == nil && len(i.Title) > 0 && len(i.Title) <= 24 {
		return i.Title
	}
	return name
}
