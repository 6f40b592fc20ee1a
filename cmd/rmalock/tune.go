package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo/discover"
)

// tuneOptions are the flags of tune.
type tuneOptions struct {
	backend backend
	layout  layout
	tuner   bench.Tuner
	config  bench.Config
	mode    string
	writers float64
	json    bool
}

func newTune() *cobra.Command {
	var o tuneOptions
	cmd := &cobra.Command{
		Use:   "tune",
		Short: "Measure which thresholds suit a machine",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.backend.nameFlag(cmd, simulated)
	o.layout.flags(cmd)
	f.StringVar(&o.tuner.Lock, "lock", "rmarw", "rmarw or rmamcs; parameters that are given stay as they are")
	complete(cmd, "lock", "rmarw", "rmamcs")
	f.StringVar(&o.mode, "mode", string(bench.SOB), "workload, as in rmalock bench")
	complete(cmd, "mode", modeNames()...)
	f.Float64Var(&o.writers, "writers", 0.02, "share of acquires in exclusive mode, 0 to 1; of rmamcs all")
	f.DurationVar(&o.config.Duration, "duration", 0, "of each run, warm-up included (default 200ms; in virtual time as bench has it)")
	f.IntVar(&o.tuner.Rounds, "rounds", 5, "runs of each value")
	f.Uint64Var(&o.tuner.Seed, "seed", 1, "of the ranks' random choices, and of the orders")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return describe(cmd, append(simulatedFlags, memoryFlag, mnFlag, tokenFlag, "nodes", "per-node", "seed")...)
}

func (o *tuneOptions) check(cmd *cobra.Command) (ranks int, err error) {
	l, err := bench.ParseLock(o.tuner.Lock)
	if err != nil {
		return 0, err
	}
	if l.Name != "rmarw" && l.Name != "rmamcs" {
		return 0, fmt.Errorf("--lock is %q, want rmarw or rmamcs, which have thresholds", o.tuner.Lock)
	}
	given := cmd.Flags().Changed
	switch {
	case !(o.writers >= 0 && o.writers <= 1):
		return 0, fmt.Errorf("--writers is %v, want 0 to 1", o.writers)
	case o.tuner.Rounds < 1:
		return 0, fmt.Errorf("--rounds is %d, want at least 1", o.tuner.Rounds)
	case given("duration") && o.config.Duration <= 0:
		return 0, fmt.Errorf("--duration is %v, want more than 0", o.config.Duration)
	}
	o.backend.ranks = 1 // layout has the number
	if err := o.backend.check(cmd, simulated); err != nil {
		return 0, err
	}
	all, err := o.layout.check(cmd, &o.backend, false)
	if err != nil {
		return 0, err
	}
	if len(all) > 1 {
		return 0, fmt.Errorf("--ranks has %d values, want one: thresholds are for a job", len(all))
	}
	if err := o.layout.fits(all[0]); err != nil {
		return 0, err
	}
	o.config.Mode, o.config.Lock = bench.Mode(o.mode), o.tuner.Lock
	if l.Shared {
		o.config.Readers = 1 - o.writers
	}
	if o.config.Duration == 0 && o.backend.name != simulated && o.config.Mode != bench.DHT {
		o.config.Duration = 200 * time.Millisecond
	}
	checked := o.config
	return all[0], checked.Validate()
}

func (o *tuneOptions) run(cmd *cobra.Command) error {
	ranks, err := o.check(cmd)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if o.backend.name == simulated {
		return o.inVirtual(out, newProgress(cmd.ErrOrStderr()), ranks)
	}
	if o.backend.name == goroutines && !isReporter() {
		return nil
	}
	o.backend.ranks, o.backend.nodes = ranks, o.layout.nodesOf(ranks)
	return o.backend.job(func(c rma.Comm) error {
		found, err := discover.Topology(c)
		if err != nil {
			return err
		}
		t := o.tuner
		t.Topology = found.DefaultView()
		var bar *progress
		if c.Rank() == 0 {
			bar = newProgress(cmd.ErrOrStderr())
		}
		t.Tried = bar.tried
		t.Measure = func(lock string, seed uint64) (bench.Sample, error) {
			cfg := o.config
			cfg.Lock, cfg.Seed = lock, seed
			res, err := bench.Run(c, cfg)
			if err != nil {
				return bench.Sample{}, err
			}
			return share(c, res)
		}
		r, err := t.Run()
		if err == nil && c.Rank() == 0 {
			bar.clear()
			err = o.show(out, r)
		}
		return rma.Agree(c, err)
	})
}

// inVirtual tunes in virtual time.
func (o *tuneOptions) inVirtual(out io.Writer, bar *progress, ranks int) error {
	if !isReporter() {
		return nil
	}
	v, err := o.layout.virtual(ranks)
	if err != nil {
		return err
	}
	t := o.tuner
	t.Topology, t.Tried, t.Virtual = v.Topology, bar.tried, true
	t.Measure = func(lock string, seed uint64) (bench.Sample, error) {
		cfg := o.config
		cfg.Lock, cfg.Seed = lock, seed
		res, err := v.Run(cfg)
		if err != nil {
			return bench.Sample{}, err
		}
		return sample(res), nil
	}
	r, err := t.Run()
	bar.clear()
	if err != nil {
		return fail(err)
	}
	return fail(o.show(out, r))
}

func sample(r *bench.Result) bench.Sample {
	return bench.Sample{PerSecond: r.Speed(), ShareDeviation: r.ShareDeviation, P99: r.P99}
}

// share broadcasts what rank 0 has measured. Collective.
func share(c rma.Comm, r *bench.Result) (bench.Sample, error) {
	words := make([]int64, 3)
	if r != nil {
		s := sample(r)
		for i, x := range []float64{s.PerSecond, s.ShareDeviation, s.P99} {
			words[i] = int64(math.Float64bits(x))
		}
	}
	all, err := c.Allgather(words)
	if err != nil {
		return bench.Sample{}, err
	}
	of := func(i int) float64 { return math.Float64frombits(uint64(all[i])) }
	return bench.Sample{PerSecond: of(0), ShareDeviation: of(1), P99: of(2)}, nil
}

func (o *tuneOptions) show(out io.Writer, r *bench.Tuned) error {
	if o.json {
		return writeJSON(out, r)
	}
	return r.WriteText(out)
}

// tried shows the number of runs that are made.
func (p *progress) tried(done, all int) {
	if p == nil {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions(all,
			progressbar.OptionSetWriter(p.out),
			progressbar.OptionSetDescription("runs"),
			progressbar.OptionShowCount(),
			progressbar.OptionClearOnFinish(),
		)
	}
	_ = p.bar.Set(done) // the job goes on without a bar
}
