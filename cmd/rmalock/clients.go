package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
)

// workloads is the help topic on mode clients, which has its flags.
const workloads = "workloads"

// clients is the workloads of mode clients: each of one with each of the others.
type clients struct {
	keys          []string
	locality      []float64 // percent
	together      []int
	accesses      []int
	inside, think []time.Duration
	rates         []float64

	of           []string
	hosts        int
	warehouses   []int
	scans, fails []float64 // percent
	hold, slot   time.Duration
}

// tpcc is the mode in which clients make the transactions of TPC-C.
const tpcc = "tpcc"

// tracesMode is the mode in which clients make the transactions of a trace.
const tracesMode = "trace"

// checkTrace puts the workloads of mode trace, if it is wanted, into a sweep.
func (l *clients) checkTrace(cmd *cobra.Command, s *bench.Sweep) error {
	at := slices.Index(s.Modes, tracesMode)
	given := cmd.Flags().Changed
	if at < 0 {
		if given("of") {
			return fmt.Errorf("--of goes with --mode %s; see rmalock help %s", tracesMode, workloads)
		}
		return nil
	}
	if len(s.Modes) > 1 {
		return fmt.Errorf("--mode has %s and others, want it alone", tracesMode)
	}
	if given("writers") && !slices.Equal(s.Writers, []float64{1}) {
		return fmt.Errorf("--writers is %v with --mode %s, want 1, for which all locks are exclusive; see rmalock help %s", s.Writers, tracesMode, workloads)
	}
	for _, name := range append(slices.Clone(clientFlags), "locks") {
		if given(name) && name != "inside" && name != "think" {
			return fmt.Errorf("--%s does not go with --mode %s, which says what is locked; see rmalock help %s", name, tracesMode, workloads)
		}
	}
	var out []bench.Trace
	for _, of := range l.of {
		out = append(out, bench.Trace{Of: of, Alone: given("writers")})
	}
	out = bench.Each(out, l.inside, func(w *bench.Trace, d time.Duration) { w.Inside = d })
	out = bench.Each(out, l.think, func(w *bench.Trace, d time.Duration) { w.Think = d })
	for _, w := range out {
		s.Workloads = append(s.Workloads, w)
	}
	s.Modes[at] = bench.Clients
	return nil
}

// tpccFlags are the flags of mode tpcc beside --inside and --think.
var tpccFlags = []string{"warehouses", "hosts", "scans", "hold", "slot", "fails"}

// clientFlags are the flags of clients.
var clientFlags = []string{"keys", "locality", "together", "accesses", "inside", "think", "rate"}

func (l *clients) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&l.keys, "keys", []string{"uniform"}, "how often each lock is acquired: uniform, zipf:THETA, scrambled:THETA, power:ALPHA or hot:SET:SHARE")
	complete(cmd, "keys", "uniform", "zipf:0.99", "scrambled:0.99", "power:2", "hot:0.2:0.8")
	f.Float64SliceVar(&l.locality, "locality", nil, "`percent` of acquires of locks whose home is on the rank's own node (default: no such rule)")
	f.IntSliceVar(&l.together, "together", []int{1}, "locks held at once, acquired in the order of their ids")
	f.IntSliceVar(&l.accesses, "accesses", []int{0}, "memory accesses at a lock's home while it is held, one after the other")
	f.DurationSliceVar(&l.inside, "inside", []time.Duration{0}, "`times` to compute while locks are held, after the accesses")
	f.DurationSliceVar(&l.think, "think", []time.Duration{0}, "`times` between the release of locks and the next visit")
	f.Float64SliceVar(&l.rates, "rate", nil, "`visits` that begin in a second, those of all ranks together (default: a closed loop)")
	f.StringSliceVar(&l.of, "of", bench.Traces(), "mode trace: whose transactions, tatp or tpcc")
	complete(cmd, "of", bench.Traces()...)
	f.IntSliceVar(&l.warehouses, "warehouses", []int{1}, "mode tpcc: warehouses of each host of locks")
	f.IntVar(&l.hosts, "hosts", 0, "mode tpcc: hosts of warehouses, with a lock that so many ranks serve (default: all memory nodes, or ranks)")
	f.Float64SliceVar(&l.scans, "scans", []float64{0}, "mode tpcc: `percent` of transactions that scan a table")
	f.DurationVar(&l.hold, "hold", 0, "mode tpcc: time that a scan shares its table's lock")
	f.DurationVar(&l.slot, "slot", 0, "mode tpcc: lease of a slot; a scan takes as many slots as it needs (default: one)")
	f.Float64SliceVar(&l.fails, "fails", []float64{0}, "mode tpcc: `percent` of attempts that end and keep their locks for ever")
	for _, name := range []string{"locality", "rate"} {
		f.Lookup(name).DefValue = "" // the text has it
	}
}

// checkTPCC puts the workloads of mode tpcc, if it is wanted, into a sweep: mode clients with the
// transactions of TPC-C.
func (l *clients) checkTPCC(cmd *cobra.Command, s *bench.Sweep) error {
	at := slices.Index(s.Modes, tpcc)
	if at < 0 {
		for _, name := range tpccFlags {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s goes with --mode %s; see rmalock help %s", name, tpcc, workloads)
			}
		}
		return nil
	}
	if slices.Contains(s.Modes, bench.Clients) {
		return fmt.Errorf("--mode has %s and %s, want one of them", tpcc, bench.Clients)
	}
	for _, name := range clientFlags {
		if cmd.Flags().Changed(name) && name != "inside" && name != "think" {
			return fmt.Errorf("--%s goes with --mode %s; see rmalock help %s", name, bench.Clients, workloads)
		}
	}
	if cmd.Flags().Changed("locks") || cmd.Flags().Changed("writers") {
		return fmt.Errorf("--locks and --writers go with the other modes: TPC-C says which locks there are, and which are shared")
	}
	out := []bench.TPCC{{Hosts: l.hosts}}
	out = bench.Each(out, l.warehouses, func(w *bench.TPCC, n int) { w.Warehouses = n })
	out = bench.Each(out, l.scans, func(w *bench.TPCC, percent float64) {
		if w.Scans = percent / 100; w.Scans > 0 {
			w.Hold, w.Lease = l.hold, l.slot
		} else {
			w.Hold, w.Lease = 0, 0
		}
	})
	out = bench.Each(out, l.fails, func(w *bench.TPCC, percent float64) { w.Fails = percent / 100 })
	out = bench.Each(out, l.inside, func(w *bench.TPCC, d time.Duration) { w.Inside = d })
	out = bench.Each(out, l.think, func(w *bench.TPCC, d time.Duration) { w.Think = d })
	for _, w := range out {
		s.Workloads = append(s.Workloads, w)
	}
	s.Modes[at] = bench.Clients
	return nil
}

// check reports what is wrong with the flags and puts the workloads into a sweep with mode
// clients.
func (l *clients) check(cmd *cobra.Command, s *bench.Sweep) error {
	if len(s.Workloads) > 0 {
		return nil
	}
	if !slices.Contains(s.Modes, bench.Clients) {
		for _, name := range clientFlags {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s goes with --mode %s; see rmalock help %s", name, bench.Clients, workloads)
			}
		}
		return nil
	}
	for _, percent := range l.locality {
		if !(percent > 0 && percent <= 100) {
			return fmt.Errorf("--locality is %v percent, want more than 0 and at most 100", percent)
		}
	}
	for _, rate := range l.rates {
		if !(rate > 0) {
			return fmt.Errorf("--rate is %v visits per second, want more than 0", rate)
		}
	}
	for _, n := range l.together {
		if n < 1 {
			return fmt.Errorf("--together is %d, want at least 1", n)
		}
	}
	for _, n := range l.accesses {
		if n < 0 {
			return fmt.Errorf("--accesses is %d, want 0 or more", n)
		}
	}
	for name, times := range map[string][]time.Duration{"inside": l.inside, "think": l.think} {
		for _, d := range times {
			if d < 0 {
				return fmt.Errorf("--%s is %v, want 0 or more", name, d)
			}
		}
	}
	mixes, err := l.mixes()
	if err != nil {
		return err
	}
	for _, m := range mixes {
		s.Workloads = append(s.Workloads, m)
	}
	s.Rates = l.rates
	return nil
}

// mixes lists each choice with each of the others.
func (l *clients) mixes() ([]bench.Mix, error) {
	var out []bench.Mix
	for _, text := range l.keys {
		keys, err := bench.ParseKeys(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--keys: %w", err)
		}
		out = append(out, bench.Mix{Keys: keys})
	}
	out = bench.Each(out, l.locality, func(m *bench.Mix, percent float64) { m.Local = percent / 100 })
	out = bench.Each(out, l.together, func(m *bench.Mix, n int) { m.Together = n })
	out = bench.Each(out, l.accesses, func(m *bench.Mix, n int) { m.Accesses = n })
	out = bench.Each(out, l.inside, func(m *bench.Mix, d time.Duration) { m.Inside = d })
	return bench.Each(out, l.think, func(m *bench.Mix, d time.Duration) { m.Think = d }), nil
}
