package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/topo"
)

// Ways of exploring schedules.
const (
	exploreAll    = "dfs"
	exploreRandom = "random"
	explorePCT    = "pct"
	exploreTime   = "time"
)

// checkOptions are the flags of check.
type checkOptions struct {
	plan      check.Plan
	lock      string
	explore   string
	topology  string
	replay    string
	stops     []string
	bound     int
	depth     int
	schedules int64
	json      bool
}

func newCheck() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check a lock under schedules that are searched, not left to chance",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.flags(cmd)
	return describe(cmd, "bound", "depth", "guard", "replay", "seed", "stop", "ticks", "crashes", "tries")
}

func (o *checkOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.lock, "lock", defaultLock, "lock, with parameters if it takes any; \"rmalock locks\" lists them")
	complete(cmd, "lock", lockNames()...)
	f.IntVar(&o.plan.Ranks, "ranks", 3, "number of ranks")
	f.IntVar(&o.plan.Acquires, "acquires", 2, "acquires of each rank")
	f.IntVar(&o.plan.Writers, "writers", check.Mixed, "ranks that take the lock exclusively, from rank 0 on; -1: each acquire draws its mode")
	f.StringVar(&o.explore, "explore", exploreAll, "schedules to try: dfs, random, pct or time")
	f.Int64Var(&o.schedules, "schedules", 10_000, "number of schedules of random, pct and time; of dfs the most, if given")
	f.Uint64Var(&o.plan.Seed, "seed", 1, "another seed draws other schedules and other modes")
	f.StringVar(&o.topology, "topology", "", `the machine, such as "node:2 core:2"; without it all ranks are on one node`)
	f.IntVar(&o.bound, "bound", sim.Unbounded, "dfs: preemptions in a schedule at most; -1: any number")
	f.IntVar(&o.depth, "depth", 3, "pct: number of things whose order a bug needs")
	f.StringVar(&o.replay, "replay", "", "schedule to run, as a failure prints it")
	f.BoolVar(&o.plan.Guard, "guard", false, "holders change and read words that the lock guards")
	f.BoolVar(&o.plan.Tries, "tries", false, "a part of the acquires are TryLock, or end at a deadline")
	f.BoolVar(&o.plan.CPUFar, "apart", false, "CPU atomics and network atomics on one word are not atomic with each other")
	f.StringArrayVar(&o.stops, "stop", nil, "a rank stops: rank@step[+for][,lost]; may be given again")
	f.IntVar(&o.plan.MemoryNodes, "memory-nodes", 0, "number of memory nodes, for locks that live there")
	f.IntVar(&o.plan.Ticks, "ticks", 0, "how often the clock may advance; without, a lock that looks at it is an error")
	f.Int64Var(&o.plan.TickNs, "tick", sim.DefaultTickNs, "by how much the clock advances, in nanoseconds")
	f.IntVar(&o.plan.Crashes, "crashes", 0, "ranks that may die, each at any step")
	f.IntVar(&o.plan.MaxDelay, "max-delay", 0, "ticks after which an operation has taken effect; 0: no bound")
	f.IntVar(&o.plan.Rejoins, "rejoins", 0, "successors that may take the places of dead ranks")
	f.BoolVar(&o.json, "json", false, "print JSON")
	for _, other := range []string{"explore", "schedules", "bound", "depth"} {
		cmd.MarkFlagsMutuallyExclusive("replay", other)
	}
	complete(cmd, "explore", exploreAll, exploreRandom, explorePCT, exploreTime)
}

// prepare checks the flags and makes the plan of them.
func (o *checkOptions) prepare(cmd *cobra.Command) (err error) {
	p := &o.plan
	l, err := bench.ParseLock(o.lock)
	if err != nil {
		return err
	}
	p.Info, p.Params = l.Info, l.Values
	switch {
	case cmd.Flags().Changed("writers") && !p.Info.Shared:
		return fmt.Errorf("--writers is given, and %s has no shared mode", p.Info.Name)
	case p.Writers < check.Mixed || p.Writers > p.Ranks:
		return fmt.Errorf("--writers is %d, want 0 to --ranks, or -1", p.Writers)
	case p.Ranks < 1 || p.Ranks > 1<<12:
		return fmt.Errorf("--ranks is %d, want 1 to %d", p.Ranks, 1<<12)
	case p.Acquires < 1:
		return fmt.Errorf("--acquires is %d, want at least 1", p.Acquires)
	case o.schedules < 1:
		return fmt.Errorf("--schedules is %d, want at least 1", o.schedules)
	case o.depth < 1:
		return fmt.Errorf("--depth is %d, want at least 1", o.depth)
	case min(p.MemoryNodes, p.Ticks, p.Crashes, p.Rejoins, p.MaxDelay) < 0:
		return errors.New("--memory-nodes, --ticks, --crashes and --rejoins want 0 or more")
	case p.TickNs < 1:
		return fmt.Errorf("--tick is %d, want at least 1", p.TickNs)
	case o.bound < sim.Unbounded:
		return fmt.Errorf("--bound is %d, want 0 or more, or -1", o.bound)
	}
	switch o.explore {
	case exploreAll:
		if p.Ranks > 8 && o.replay == "" {
			return fmt.Errorf("--ranks is %d, and --explore dfs is for up to 8; use random or pct", p.Ranks)
		}
	case exploreRandom, explorePCT:
	case exploreTime:
		if len(o.stops) > 0 {
			return errors.New("--stop does not go with --explore time")
		}
		if p.Ticks+p.Crashes+p.Rejoins > 0 {
			return errors.New("--ticks, --crashes and --rejoins do not go with --explore time, which has a clock of its own")
		}
	default:
		return fmt.Errorf("--explore is %q, want dfs, random, pct or time", o.explore)
	}
	if o.topology != "" {
		if p.Topology, err = topo.Parse(o.topology); err != nil {
			return err
		}
		if err := p.Topology.Fits(p.Ranks); err != nil {
			return err
		}
	}
	for _, text := range o.stops {
		f, err := parseStop(text, p.Ranks)
		if err != nil {
			return err
		}
		p.Faults = append(p.Faults, f)
	}
	if _, err := check.Promises(*p); errors.Is(err, lock.ErrConfig) { // wrong parameters or machine
		return err
	}
	return nil
}

// parseStop reads what --stop takes.
func parseStop(text string, ranks int) (f sim.Fault, err error) {
	rest, lost := strings.CutSuffix(text, ",lost")
	f.Lost = lost
	rank, steps, ok := strings.Cut(rest, "@")
	step, wait, forSome := strings.Cut(steps, "+")
	numbers := []struct {
		text string
		to   *int
	}{{rank, &f.Rank}, {step, &f.Step}}
	if forSome {
		numbers = append(numbers, struct {
			text string
			to   *int
		}{wait, &f.For})
	}
	for _, n := range numbers {
		v, err := strconv.ParseUint(n.text, 10, 31)
		ok = ok && err == nil
		*n.to = int(v)
	}
	if !ok || forSome && f.For == 0 {
		return f, fmt.Errorf("--stop is %q, want rank@step, rank@step+for, and either with ,lost", text)
	}
	if f.Rank >= ranks {
		return f, fmt.Errorf("--stop is %q, and there is no rank %d of %d", text, f.Rank, ranks)
	}
	return f, nil
}

// run is the command.
func (o *checkOptions) run(cmd *cobra.Command) error {
	if err := o.prepare(cmd); err != nil {
		return err
	}
	if !isReporter() {
		return nil
	}
	if o.replay != "" {
		return o.replayed(cmd)
	}
	bar := newChecked(cmd.ErrOrStderr(), o)
	if bar != nil {
		o.plan.Tick = bar.tick
	}
	began := time.Now()
	r, err := o.search(cmd)
	took := time.Since(began)
	if bar != nil {
		bar.clear()
	}
	if err != nil {
		return fail(err)
	}
	if r.Failure != nil && errors.Is(r.Failure, errors.ErrUnsupported) {
		return fail(fmt.Errorf("%s cannot be simulated: %w", o.lock, r.Failure))
	}
	o.plan.Tick = nil
	return o.verdict(cmd.OutOrStdout(), &r, took)
}

// search runs the schedules.
func (o *checkOptions) search(cmd *cobra.Command) (check.Result, error) {
	seed := o.plan.Seed
	switch o.explore {
	case exploreRandom:
		return check.RunParallel(o.plan, o.schedules, func(first, n int64) sim.Scheduler { return sim.Random(seed, first, n) })
	case explorePCT:
		return check.RunParallel(o.plan, o.schedules, func(first, n int64) sim.Scheduler { return sim.PCT(seed, o.depth, first, n) })
	}
	if o.explore == exploreTime {
		return check.RunTime(o.plan, o.schedules)
	}
	s := sim.Exhaustive(o.bound)
	if cmd.Flags().Changed("schedules") {
		s.Limit = o.schedules
	}
	return check.Run(o.plan, s)
}

// replayed runs the schedule of --replay.
func (o *checkOptions) replayed(cmd *cobra.Command) error {
	events, f, err := check.Replay(o.plan, o.replay)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f != nil {
		if o.json {
			return o.report(out, &checkReport{Lock: o.lock, Failure: o.failed(f)}, f)
		}
		if err := check.WriteReport(out, o.plan, f); err != nil {
			return fail(err)
		}
		return fail(f.Err)
	}
	if o.json {
		return o.report(out, &checkReport{Lock: o.lock, OK: true, Schedules: 1}, nil)
	}
	if err := sim.WriteTrace(out, events); err != nil {
		return fail(err)
	}
	fmt.Fprintln(out, "\nnothing goes wrong under this schedule")
	return nil
}
