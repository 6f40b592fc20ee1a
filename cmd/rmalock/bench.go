package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/bench/plot"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	backend backend
	layout  layout
	sweep   bench.Sweep
	modes   []string
	clients clients

	structures structures
	observe    observing
	figure     string
	plot       string
	png        bool
	json       bool
	csv        bool
	absent     []string // locks that the figure takes and the program has not
	shown      int      // runs that were shown
	rounds     []*bench.Result
	all        *comparison // of --lock all, otherwise nil
}

func newBench() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure locks, in jobs or in virtual time",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.flags(cmd)
	leave(cmd, workloads, slices.Concat(clientFlags, tpccFlags, []string{"of"}, structureFlags)...)
	return describe(cmd, append(simulatedFlags, memoryFlag, mnFlag, tokenFlag, "counters", "csv", "nodes", "per-node", "png", "seed", "trace")...)
}

func (o *benchOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.backend.nameFlag(cmd, simulated)
	o.layout.flags(cmd)
	f.StringSliceVar(&o.sweep.Locks, "lock", []string{defaultLock}, "`locks`, with parameters if they take any; see rmalock locks")
	complete(cmd, "lock", append(lockNames(), allLocks+"\tevery lock that fits, sorted by throughput", bench.Atomic+"\tno lock: the hashtable's own atomics, in mode dht")...)
	f.StringSliceVar(&o.modes, "mode", []string{string(bench.Latency)}, "`workloads`, of those above")
	complete(cmd, "mode", modeNames()...)
	f.DurationVar(&o.sweep.Config.Duration, "duration", 0, "time to run, warm-up included (default 1s)")
	f.IntVar(&o.sweep.Config.Acquires, "acquires", 0, "acquires per rank, instead of a duration (default in mode lb 100000, in dht 1000)")
	f.Float64SliceVar(&o.sweep.Writers, "writers", []float64{1}, "`shares` of acquires in exclusive mode, 0 to 1")
	f.IntSliceVar(&o.sweep.Tables, "locks", []int{1}, "numbers of locks; each acquire takes one at random")
	f.Uint64Var(&o.sweep.Config.Seed, "seed", 0, "of the ranks' random choices")
	f.IntVar(&o.sweep.Repeat, "repeat", 1, "runs of each, by turns, with seeds one after the other")
	o.clients.flags(cmd)
	o.structures.flags(cmd, "")
	o.observe.flags(cmd)
	f.StringVar(&o.plot, "plot", "", "`folder` for the runs, figures and report.html")
	f.BoolVar(&o.png, "png", false, "draw figures as PNG too, beside SVG")
	f.StringVar(&o.figure, "figure", "", "the sweep of a `figure`: "+strings.Join(plot.Presets(), ", ")+", 4 or all")
	complete(cmd, "figure", append(plot.Presets(), "4", "all")...)
	f.BoolVar(&o.json, "json", false, "print JSON, a line for each run")
	f.BoolVar(&o.csv, "csv", false, "print CSV: a line of column names, and a line for each run")
	cmd.MarkFlagsMutuallyExclusive("json", "csv")
	cmd.MarkFlagsMutuallyExclusive("duration", "acquires")
}

func modeNames() []string {
	var out []string
	for _, m := range bench.Modes() {
		out = append(out, string(m))
	}
	return append(out, tpcc, tracesMode, storeMode, indexMode, kvMode)
}

// check reports what is wrong with the flags and lists the runs. In an MPI job all of them
// have the job's number of ranks.
func (o *benchOptions) check(cmd *cobra.Command) ([]bench.Point, error) {
	given := cmd.Flags().Changed
	if err := o.checkValues(given); err != nil {
		return nil, err
	}
	if err := o.checkAll(given); err != nil {
		return nil, err
	}
	for _, m := range o.modes {
		if !slices.Contains(modeNames(), m) {
			return nil, fmt.Errorf("no workload is called %q; there are: %s", m, strings.Join(modeNames(), ", "))
		}
		o.sweep.Modes = append(o.sweep.Modes, bench.Mode(m))
	}
	if err := o.structures.check(cmd, &o.clients, &o.sweep); err != nil {
		return nil, err
	}
	if err := o.clients.checkTPCC(cmd, &o.sweep); err != nil {
		return nil, err
	}
	if err := o.clients.checkTrace(cmd, &o.sweep); err != nil {
		return nil, err
	}
	if err := o.clients.check(cmd, &o.sweep); err != nil {
		return nil, err
	}
	o.backend.ranks = 1 // layout has the number
	if err := o.backend.check(cmd, simulated); err != nil {
		return nil, err
	}
	var err error
	if o.sweep.Ranks, err = o.layout.check(cmd, &o.backend, o.figure != ""); err != nil {
		return nil, err
	}
	points, err := o.points(given)
	if err != nil {
		return nil, err
	}
	for _, p := range points {
		if err := o.layout.fits(p.Ranks); err != nil {
			return nil, err
		}
		if err := o.observe.check(o.backend.name, p.Config.Lock, len(points)); err != nil {
			return nil, err
		}
	}
	return points, nil
}

// checkValues reports values that are out of range, or missing.
func (o *benchOptions) checkValues(given func(string) bool) error {
	cfg := &o.sweep.Config
	switch {
	case given("acquires") && cfg.Acquires < 1:
		return fmt.Errorf("--acquires is %d, want at least 1", cfg.Acquires)
	case given("duration") && cfg.Duration <= 0:
		return fmt.Errorf("--duration is %v, want more than 0", cfg.Duration)
	case o.sweep.Repeat < 1:
		return fmt.Errorf("--repeat is %d, want at least 1", o.sweep.Repeat)
	case o.png && o.plot == "":
		return errors.New("--png goes with --plot DIR")
	}
	for flag, values := range map[string]int{"lock": len(o.sweep.Locks), "mode": len(o.modes)} {
		if values == 0 {
			return fmt.Errorf("--%s has no value, want at least one", flag)
		}
	}
	for _, name := range o.sweep.Locks {
		if strings.Trim(name, "0123456789") == "" {
			return fmt.Errorf("--lock has %q where a lock is wanted; numbers of one parameter have slashes between them, as in rmarw:TL=20/50", name)
		}
	}
	for _, n := range o.sweep.Tables {
		if n < 1 {
			return fmt.Errorf("--locks is %d, want at least 1", n)
		}
	}
	for _, w := range o.sweep.Writers {
		if !(w >= 0 && w <= 1) {
			return fmt.Errorf("--writers is %v, want 0 to 1", w)
		}
	}
	return nil
}

// points lists the runs of the sweep, or of the figure that is wanted.
func (o *benchOptions) points(given func(string) bool) (points []bench.Point, err error) {
	sweeps := []bench.Sweep{o.sweep}
	if o.figure != "" {
		if sweeps, o.absent, err = plot.Preset(o.figure); err != nil {
			return nil, err
		}
	}
	if o.all != nil {
		if err := o.all.fill(o); err != nil {
			return nil, err
		}
		sweeps[0].Locks = o.sweep.Locks
	}
	for _, s := range sweeps {
		if o.figure != "" {
			s = o.restrict(s, given)
		}
		more, err := s.Points()
		if err != nil {
			return nil, err
		}
		points = append(points, more...)
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("nothing of figure %s is left to run: the flags narrow it to none of its locks, workloads or shares of writers", o.figure)
	}
	return points, nil
}

// run is the command.
func (o *benchOptions) run(cmd *cobra.Command) error {
	points, err := o.check(cmd)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if o.backend.several() {
		return o.inJob(out, points)
	}
	points = o.applicable(points, o.layout.nodesOf)
	if !isReporter() {
		return nil // rank 0 of the job makes the runs
	}
	store, err := o.open()
	if err != nil {
		return fail(err)
	}
	bar := newSimBar(cmd.ErrOrStderr(), o.backend.name == simulated || o.all != nil, len(points))
	defer bar.clear()
	for i, p := range points {
		where := o.layout.where(o.backend.name)
		if store != nil && store.Has(o.key(p, where)) {
			o.all.kept(store, o.key(p, where))
			continue
		}
		res, err := o.runHere(p, bar.next(i, p))
		if o.all.leaves(p.Config.Lock, err) {
			continue
		}
		if err != nil {
			return err
		}
		bar.clear()
		if err := o.record(out, store, p, where, res, len(points) > 1); err != nil {
			return fail(err)
		}
	}
	return fail(o.finish(out, store))
}

// key names a run on a place.
func (o *benchOptions) key(p bench.Point, where string) string {
	key := p.Key(where)
	if o.layout.band {
		key += ", band"
	}
	return key
}

// runHere makes a run in this process.
func (o *benchOptions) runHere(p bench.Point, progress func(float64)) (*bench.Result, error) {
	if o.backend.name == simulated {
		v, err := o.layout.virtual(p.Ranks)
		if err != nil {
			return nil, err
		}
		v.Progress = progress
		if p.Config.Locks > 1 || p.Config.Mode == bench.Clients {
			p.Config.Memory = memoryOf(p.Ranks)
		}
		res, err := v.Run(p.Config)
		return res, fail(err)
	}
	b := o.backend
	b.ranks, b.nodes = p.Ranks, o.layout.nodesOf(p.Ranks)
	var res *bench.Result
	err := b.job(func(c rma.Comm) error {
		r, err := o.measure(c, p.Config)
		if c.Rank() == 0 {
			res = r
		}
		return err
	})
	return res, err
}

// measure makes a run. Collective.
func (o *benchOptions) measure(c rma.Comm, cfg bench.Config) (res *bench.Result, err error) {
	if cfg.Locks > 1 || cfg.Mode == bench.Clients {
		here := c.Size()
		if o.backend.several() {
			here = len(c.Node().Ranks)
		}
		if cfg.Memory, err = agreedMemory(c, here); err != nil {
			return nil, err
		}
	}
	err = o.observe.around(c, cfg.Lock, o.backend.several(), func(wrap func(rma.Comm, lock.Table) lock.Table) error {
		cfg.Observe = wrap
		res, err = bench.Run(c, cfg)
		return err
	})
	return res, err
}

// inJob makes all runs in one job of several processes. Rank 0 has the store: it knows which runs
// exist, and writes the results.
func (o *benchOptions) inJob(out io.Writer, points []bench.Point) error {
	return o.backend.job(func(c rma.Comm) error {
		first := c.Rank() == 0
		where := c.Describe() // says so if there is one node
		if n := c.Node().Count; n > 1 {
			where += fmt.Sprintf(", %d nodes", n)
		}
		var store *bench.Store
		var err error
		if first {
			store, err = o.open()
		}
		if err := rma.Agree(c, err); err != nil {
			return err
		}
		for i := range points {
			points[i].Ranks = c.Size()
		}
		for _, p := range o.applicable(points, func(int) int { return c.Node().Count }) {
			there := int64(0)
			if store != nil && store.Has(o.key(p, where)) {
				there = 1
			}
			all, err := c.Allgather([]int64{there})
			if err != nil {
				return err
			}
			if all[0] == 1 {
				continue
			}
			res, err := o.measure(c, p.Config)
			if err != nil {
				return err
			}
			if first {
				err = o.record(out, store, p, where, res, len(points) > 1)
			}
			if err := rma.Agree(c, err); err != nil {
				return err
			}
		}
		if first {
			err = o.finish(out, store)
		}
		return rma.Agree(c, err)
	})
}

// open opens the folder of --plot; nil for none.
func (o *benchOptions) open() (*bench.Store, error) {
	if o.plot == "" {
		return nil, nil
	}
	return bench.OpenStore(o.plot)
}

// record writes the result of a run, and adds it to the store if there is one.
func (o *benchOptions) record(out io.Writer, store *bench.Store, p bench.Point, where string, res *bench.Result, many bool) error {
	if store != nil {
		err := store.Add(bench.Record{
			Key: o.key(p, where), Where: where, Command: commandLine(o.backend.name, p.Ranks), Made: time.Now().Truncate(time.Second),
			Host: bench.ThisHost(), Result: res,
		})
		if err != nil {
			return err
		}
	}
	o.shown++
	if o.sweep.Repeat > 1 {
		o.rounds = append(o.rounds, res)
	}
	switch {
	case o.all != nil:
		o.all.Runs = append(o.all.Runs, res)
		return nil
	case o.json:
		return writeJSON(out, res)
	case o.csv && o.shown > 1:
		return res.WriteCSVRow(out)
	case o.csv:
		return res.WriteCSV(out)
	case many || store != nil:
		return o.writeRow(out, res)
	}
	return res.WriteText(out)
}

// writeRow writes a run of a sweep on a line: throughput, latency, deviation of the shares,
// and operations on other ranks per acquire.
func (o *benchOptions) writeRow(out io.Writer, r *bench.Result) error {
	if o.shown == 1 {
		_, err := fmt.Fprintf(out, "%-7s %5s %6s %10s %9s %9s %9s %7s %7s  %s\n",
			"mode", "ranks", "F_W %", "million/s", "mean us", "median us", "99 % us", "dev. %", "remote", "lock")
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%-7s %5d %6.4g %10.4g %9.4g %9.4g %9.4g %7.3g %7.3g  %s\n", r.Mode, r.Ranks, 100*r.Writers,
		r.PerSecond/1e6, r.Mean/1e3, r.Median/1e3, r.P99/1e3, 100*r.ShareDeviation, r.RemoteOps, r.Lock)
	return err
}

// finish compares the rounds and draws the runs of the folder.
func (o *benchOptions) finish(out io.Writer, store *bench.Store) error {
	if o.all != nil {
		if err := o.all.write(out, o); err != nil {
			return err
		}
	}
	if len(o.rounds) > 0 && !o.json && !o.csv {
		fmt.Fprintln(out)
		if err := bench.WriteRounds(out, o.rounds); err != nil {
			return err
		}
	}
	if store == nil {
		return nil
	}
	defer store.Close()
	var notes []string
	if len(o.absent) > 0 {
		notes = append(notes, fmt.Sprintf("Not shown, for this program has not the locks, or not these parameters of them: %s.", strings.Join(o.absent, ", ")))
	}
	paths, err := plot.Write(o.plot, store.Records(), o.png, notes...)
	if err != nil {
		return err
	}
	if o.json || o.csv {
		return nil
	}
	figures := 0
	for _, path := range paths {
		if strings.HasSuffix(path, ".svg") {
			figures++
		}
	}
	kept := len(store.Records()) - o.shown
	_, err = fmt.Fprintf(out, "%d runs made, %d were there; %s and %d figures drawn\n", o.shown, kept, paths[0], figures)
	return err
}

// commandLine is the line that started this program, so that a run can be repeated.
func commandLine(backend string, ranks int) string {
	words := []string{"rmalock"}
	if backend == processes {
		launcher := "mpirun"
		if os.Getenv("SLURM_PROCID") != "" && os.Getenv("OMPI_COMM_WORLD_RANK") == "" {
			launcher = "srun"
		}
		words = []string{launcher, "-n", fmt.Sprint(ranks), "rmalock"}
	}
	for _, arg := range os.Args[1:] {
		if strings.ContainsAny(arg, " \t\n'\"\\$&|;<>()*?[]#~`!{}") || arg == "" {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
