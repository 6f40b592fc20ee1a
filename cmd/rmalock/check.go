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
		Long: `check runs a lock's own code with simulated ranks and decides what happens when:
which rank goes on, and when each operation takes effect between its issue and
its flush. It does so under one schedule after the other, and looks for

  exclusion   a holder meets another one, and not both share
  deadlock    nobody can go on and not all are through: a lost wake-up
  bypass      more entries of others while a rank waits than the lock promises
  cost        more operations on other ranks' memory than the lock promises
  a failed try though nobody else holds or wants the lock
  at rest     words of the lock that are not as they were
  flags       two ranks that write a word at once that has one writer at a time

--explore says which schedules:
  dfs     all that can make a difference, depth first; for a few ranks. With
          --bound, those in which a rank that could go on is left so often
  random  --schedules of them, every step with equal chances
  pct     --schedules of them, ranks having priorities that change --depth-1
          times: better at bugs that need a few things in a certain order
  time    --schedules runs in virtual time, on a network on which every operation
          takes another time; one after the other from --seed on. Schedules that
          are likely, not hostile ones; --stop is not for it

A lock's parameters stand behind its name, as in rmarw:TR=2:TL=2,2,1. A lock that
knows the machine is told --topology.

Ranks take the lock --acquires times each. Of a lock with a shared mode --writers
ranks take it exclusively and the others share it; without --writers each acquire
draws its mode. --tries turns a part of the acquires into TryLock, or Lock with a
deadline. --guard lets holders change and read words that the lock guards.
--stop lets a rank stop: 1@20 is rank 1 after 20 steps of its own for ever,
1@20+100 for 100 steps of all, 1@20,lost with what is sent to it lost.

A failure is shortened, told step by step, and printed with its seed, its
schedule and the command that replays it: the same steps, always. In a trace an
operation is shown when it takes effect, and also when it was issued if another
step came between. In virtual time it is printed with the seed and the command
that runs it again. Exit status: 0 if all schedules pass, 1 if one fails.`,
		Example: `  rmalock check --lock dmcs
  rmalock check --lock dmcs --ranks 4 --bound 3
  rmalock check --lock fompi-rw --ranks 3 --writers 1
  rmalock check --lock fompi-spin --ranks 16 --explore pct --schedules 10000
  rmalock check --lock dmcs --ranks 8 --explore random --topology "node:2 core:4"
  rmalock check --lock dmcs --stop 0@3
  rmalock check --lock rmarw:TR=2:TL=2,2,1 --ranks 4 --explore pct --topology "node:2 core:2"
  rmalock check --lock rmamcs --ranks 64 --explore time --schedules 100 --topology "rack:2 node:4 core:8"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.lock, "lock", defaultLock, "name of the lock, with parameters if it takes any; \"rmalock locks\" lists them")
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
	f.StringArrayVar(&o.stops, "stop", nil, "a rank stops: rank@step[+for][,lost]; may be given again")
	f.BoolVar(&o.json, "json", false, "print JSON")
	for _, other := range []string{"explore", "schedules", "bound", "depth"} {
		cmd.MarkFlagsMutuallyExclusive("replay", other)
	}
	complete(cmd, "explore", exploreAll, exploreRandom, explorePCT, exploreTime)
	return cmd
}

// prepare looks at the flags.
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
	if _, err := check.Promises(*p); errors.Is(err, lock.ErrConfig) { // of the lock's parameters, or the machine
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
	if !speaks() {
		return nil
	}
	if o.replay != "" {
		return o.again(cmd)
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
		return check.Spread(o.plan, o.schedules, func(first, n int64) sim.Scheduler { return sim.Random(seed, first, n) })
	case explorePCT:
		return check.Spread(o.plan, o.schedules, func(first, n int64) sim.Scheduler { return sim.PCT(seed, o.depth, first, n) })
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

// again is --replay.
func (o *checkOptions) again(cmd *cobra.Command) error {
	events, f, err := check.Replay(o.plan, o.replay)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f != nil {
		if o.json {
			return o.report(out, &checkReport{Lock: o.lock, Failure: o.failed(f)}, f)
		}
		if err := check.Tell(out, o.plan, f); err != nil {
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
