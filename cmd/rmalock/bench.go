package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/rma"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	backend backend
	cfg     bench.Config
	mode    string
	writers float64
	json    bool
	csv     bool
}

func newBench() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a lock",
		Long: `bench measures a lock with the workloads of Schmid, Besta and Hoefler,
High-Performance Distributed RMA Locks (HPDC 2016), section 5:

  latency  rank 0 acquires and releases alone; the others wait idle
  ecsb     all ranks, empty critical section
  sob      all ranks, one memory access in the critical section
  wcsb     all ranks, increment a shared counter and spin 1 to 4 us in it;
           the counter's end value is checked
  warb     all ranks, empty critical section, wait 1 to 4 us after the release

The first tenth is warm-up and not counted.

What the output says:
  throughput  acquires of all ranks per second
  latency     time of one acquire and release, without the work in between. In
              mode latency of batches, since a clock is slower than an acquire;
              in the other modes of acquires that were sampled
  shares      how evenly the ranks got the lock: the standard deviation of their
              acquires relative to the mean, and the least and most favoured.
              With --acquires all get the same by construction
  collector   garbage collections while measuring, and GOGC
  operations  the lock's one-sided operations per acquire, by distance of their
              target: own is the rank itself, mate another rank of its node,
              far a rank of another node. Counted in a short pass of its own

"oversubscribed" marks a job with more ranks than cores: it measures the
scheduler as much as the lock.`,
		Example: `  rmalock bench --mode latency
  rmalock bench --lock dmcs --mode wcsb --ranks 8 --acquires 100000
  mpirun -n 16 rmalock bench --mode ecsb --duration 10s --json
  mpirun -n 16 rmalock bench --mode sob --locks 1000 --csv
  GOGC=off mpirun -n 16 rmalock bench --mode warb`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.backend.flags(cmd)
	lockFlag(cmd, &o.cfg.Lock)
	f := cmd.Flags()
	f.StringVar(&o.mode, "mode", string(bench.Latency), "workload: latency, ecsb, sob, wcsb or warb")
	f.DurationVar(&o.cfg.Duration, "duration", time.Second, "time to run, warm-up included")
	f.IntVar(&o.cfg.Acquires, "acquires", 0, "acquires per rank, warm-up included, instead of a duration")
	f.Float64Var(&o.writers, "writers", 1, "share of acquires in exclusive mode, of a lock with a shared mode")
	f.IntVar(&o.cfg.Locks, "locks", 1, "number of locks; each acquire takes one of them at random")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.BoolVar(&o.csv, "csv", false, "print a line of column names and a line of values")
	cmd.MarkFlagsMutuallyExclusive("json", "csv")
	cmd.MarkFlagsMutuallyExclusive("duration", "acquires")
	var modes []string
	for _, m := range bench.Modes() {
		modes = append(modes, string(m))
	}
	complete(cmd, "mode", modes...)
	return cmd
}

// check reports what is wrong with the flags and completes the Config.
func (o *benchOptions) check(cmd *cobra.Command) error {
	cfg := &o.cfg
	byCount := cmd.Flags().Changed("acquires")
	switch {
	case byCount && cfg.Acquires < 1:
		return fmt.Errorf("--acquires is %d, want at least 1", cfg.Acquires)
	case !byCount && cfg.Duration <= 0:
		return fmt.Errorf("--duration is %v, want more than 0", cfg.Duration)
	case cfg.Locks < 1:
		return fmt.Errorf("--locks is %d, want at least 1", cfg.Locks)
	case !(o.writers >= 0 && o.writers <= 1):
		return fmt.Errorf("--writers is %v, want 0 to 1", o.writers)
	case byCount:
		cfg.Duration = 0
	}
	cfg.Mode = bench.Mode(o.mode)
	cfg.Readers = 1 - o.writers
	if err := cfg.Validate(); err != nil {
		return err
	}
	return o.backend.check(cmd)
}

// run is the command.
func (o *benchOptions) run(cmd *cobra.Command) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	var res *bench.Result // at rank 0
	err := o.backend.job(func(c rma.Comm) error {
		r, err := bench.Run(c, o.cfg)
		if c.Rank() == 0 {
			res = r
		}
		return err
	})
	out := cmd.OutOrStdout()
	switch {
	case err != nil || res == nil:
		return err
	case o.json:
		return fail(writeJSON(out, res))
	case o.csv:
		return fail(res.WriteCSV(out))
	}
	return fail(res.WriteText(out))
}
