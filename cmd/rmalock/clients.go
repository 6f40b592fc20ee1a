package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
)

// workloads is the help topic on mode clients, which has its flags.
const workloads = "workloads"

// clients is the workload of mode clients.
type clients struct {
	mix      bench.Mix
	keys     string
	locality float64 // percent
	rate     float64
}

// clientFlags are the flags of clients.
var clientFlags = []string{"keys", "locality", "together", "accesses", "inside", "think", "rate"}

func (l *clients) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.keys, "keys", "uniform", "how often each lock is acquired: uniform, zipf:THETA, scrambled:THETA or hot:SET:SHARE")
	complete(cmd, "keys", "uniform", "zipf:0.99", "scrambled:0.99", "hot:0.2:0.8")
	f.Float64Var(&l.locality, "locality", 0, "`percent` of acquires of locks whose home is on the rank's own node (default: no such rule)")
	f.IntVar(&l.mix.Together, "together", 1, "locks held at once, acquired in the order of their ids")
	f.IntVar(&l.mix.Accesses, "accesses", 0, "memory accesses at a lock's home while it is held, one after the other")
	f.DurationVar(&l.mix.Inside, "inside", 0, "time to compute while locks are held, after the accesses")
	f.DurationVar(&l.mix.Think, "think", 0, "time between the release of locks and the next visit")
	f.Float64Var(&l.rate, "rate", 0, "`visits` that begin in a second, those of all ranks together (default: a closed loop)")
}

// check reports what is wrong with the flags and puts the workload into a sweep with mode
// clients.
func (l *clients) check(cmd *cobra.Command, s *bench.Sweep) error {
	given := cmd.Flags().Changed
	if !slices.Contains(s.Modes, bench.Clients) {
		for _, name := range clientFlags {
			if given(name) {
				return fmt.Errorf("--%s goes with --mode %s; see rmalock help %s", name, bench.Clients, workloads)
			}
		}
		return nil
	}
	switch {
	case given("locality") && !(l.locality > 0 && l.locality <= 100):
		return fmt.Errorf("--locality is %v percent, want more than 0 and at most 100", l.locality)
	case given("rate") && !(l.rate > 0):
		return fmt.Errorf("--rate is %v visits per second, want more than 0", l.rate)
	case l.mix.Together < 1:
		return fmt.Errorf("--together is %d, want at least 1", l.mix.Together)
	case l.mix.Accesses < 0:
		return fmt.Errorf("--accesses is %d, want 0 or more", l.mix.Accesses)
	}
	for _, name := range []string{"inside", "think"} {
		if d, _ := cmd.Flags().GetDuration(name); d < 0 {
			return fmt.Errorf("--%s is %v, want 0 or more", name, d)
		}
	}
	var err error
	if l.mix.Keys, err = bench.ParseKeys(strings.TrimSpace(l.keys)); err != nil {
		return fmt.Errorf("--keys: %w", err)
	}
	l.mix.Local = l.locality / 100
	s.Config.Workload, s.Config.Rate = l.mix, l.rate
	return nil
}
