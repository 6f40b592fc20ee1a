// Compare measures the locks of this module and those that a user would take instead,
// by turns, on this machine: the C library's process-shared mutexes and reader-writer
// locks (bench/c/pthread.c), MPI_Win_lock (bench/c/winlock.c), and D-MCS in C on MPI-3
// RMA (bench/c/dmcs.c), under Open MPI's osc/sm. It prints a table of locks x ranks x
// shares of writers. make bench builds the programs in bin and runs it.
//
//	go run ./bench/compare
//	go run ./bench/compare -locks c-rwlock-readers,rmarw,rmarw:LEAF=mcs -ranks 2 -writers 0.002
//	go run ./bench/compare -json >table.json
//
// All programs run by turns, each round in another order, so that what the machine
// does beside hits all of them; ratios are medians of the ratios within a round.
//
// With -goals it measures D-MCS alone against C, with the goals that are stated for 2
// cores. On a larger machine: taskset -c 0,1 go run ./bench/compare -goals. C gets its
// best setting: D-MCS is measured with both ways to read a rank's own words, and the
// better one counts; it yields when there are more ranks than cores. Ours runs with
// Go's default collector and with GOGC=off; the default counts.
//
// With -hosts it measures FetchAndOp and Flush between two hosts instead, with the
// progress helper and without, against bench/c/fao.c; scripts/test-hosts does so
// between hosts that one machine pretends:
//
//	mpicc.openmpi -O3 -march=native -o bin/bench-c-fao bench/c/fao.c
//	go build -o bin/bench-fao ./bench/compare/fao
//	go run ./bench/compare -hosts node1:1,node2:1
//
// The status is 0, but 1 if a goal is missed, and 2 for an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(compare(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The statuses of the program.
const (
	allMet = 0
	missed = 1
	failed = 2
)

// options are the flags.
type options struct {
	bin, mpirun    string
	locks          string
	ranks, writers string
	rounds, most   int
	duration       time.Duration
	goals          bool
	hosts, agent   string
	mpich          bool
	markdown, json bool
}

func (o *options) flags(f *flag.FlagSet) {
	f.StringVar(&o.bin, "bin", "bin", "folder of the programs")
	f.StringVar(&o.mpirun, "mpirun", "mpirun.openmpi", "Open MPI's launcher")
	f.StringVar(&o.locks, "locks", "", "rows of the table: names in C, and locks as rmalock bench --lock takes them (default all)")
	f.StringVar(&o.ranks, "ranks", "1,2,8", "numbers of ranks in the table")
	f.StringVar(&o.writers, "writers", "0.002,0.25,1", "shares of writers (F_W) in the table, 0 to 1")
	f.IntVar(&o.rounds, "rounds", 0, "runs of each row (default 7; with goals as the comparison says)")
	f.DurationVar(&o.duration, "duration", 0, "time of each run (default 300ms; with goals 1s)")
	f.BoolVar(&o.goals, "goals", false, "D-MCS against C, with goals, instead of the table")
	f.IntVar(&o.most, "most", 0, "with goals: go on up to so many runs while the limit of a ratio lies within its 95 % interval")
	f.StringVar(&o.hosts, "hosts", "", "instead of the table: FetchAndOp and Flush between two hosts, such as node1:1,node2:1")
	f.StringVar(&o.agent, "agent", "ssh", "remote shell for -hosts")
	f.BoolVar(&o.mpich, "mpich", false, "the launcher is MPICH's; for -hosts")
	f.BoolVar(&o.markdown, "markdown", false, "print Markdown")
	f.BoolVar(&o.json, "json", false, "print JSON")
}

// compare is the program.
func compare(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.SetOutput(stderr)
	o.flags(f)
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return allMet
	} else if err != nil {
		return failed
	}
	met, err := o.run(ctx, f.Args(), stdout, stderr)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "compare:", err)
		return failed
	case !met:
		return missed
	}
	return allMet
}

// A result can be printed.
type result interface {
	writeText(io.Writer) error
	writeMarkdown(io.Writer) error
	writeJSON(io.Writer) error
}

// run measures, prints, and reports whether all goals are met.
func (o *options) run(ctx context.Context, args []string, stdout, stderr io.Writer) (met bool, err error) {
	if err := o.check(args); err != nil {
		return false, err
	}
	l := launcher{
		bin: o.bin, mpirun: o.mpirun, hosts: o.hosts, agent: o.agent, mpich: o.mpich,
		duration: o.duration, patience: 100 * time.Second, grace: 3 * time.Second, machine: thisMachine(),
	}
	var r result
	met = true
	if o.goals || o.hosts != "" {
		rep, err := o.scenarios(ctx, &l, stderr)
		if err != nil {
			return false, err
		}
		r, met = rep, rep.met()
	} else {
		g, err := o.grid()
		if err != nil {
			return false, err
		}
		if r, err = g.measure(ctx, &l, stderr); err != nil {
			return false, err
		}
	}
	switch {
	case o.json:
		err = r.writeJSON(stdout)
	case o.markdown:
		err = r.writeMarkdown(stdout)
	default:
		err = r.writeText(stdout)
	}
	return met, err
}

// check reports what is wrong with the flags, fills in defaults, and looks for the
// programs.
func (o *options) check(args []string) error {
	if o.duration == 0 {
		o.duration = 300 * time.Millisecond
		if o.goals || o.hosts != "" {
			o.duration = time.Second
		}
	}
	switch {
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	case o.markdown && o.json:
		return errors.New("-markdown and -json exclude each other")
	case o.duration < 10*time.Millisecond:
		return fmt.Errorf("-duration is %v, want at least 10ms", o.duration)
	case o.mpich && o.hosts == "":
		return errors.New("-mpich goes with -hosts")
	case o.goals && o.hosts != "":
		return errors.New("-goals and -hosts exclude each other")
	case o.rounds < 0:
		return fmt.Errorf("-rounds is %d, want at least 1", o.rounds)
	case o.most < 0:
		return fmt.Errorf("-most is %d, want at least 0", o.most)
	}
	programs := []string{ours, cDMCS, cWinLock, cPthread}
	if o.hosts != "" {
		programs = []string{ourFAO, cFAO}
	}
	return found(o.bin, o.mpirun, programs)
}

// found reports what is missing.
func found(bin, mpirun string, programs []string) error {
	if _, err := exec.LookPath(mpirun); err != nil {
		return fmt.Errorf("%w; install Open MPI (openmpi-bin), or name its launcher with -mpirun", err)
	}
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return fmt.Errorf("%w; run make bench, or for -hosts build it as bench/compare/main.go says", err)
		}
	}
	return nil
}

// scenarios measures the comparisons with goals.
func (o *options) scenarios(ctx context.Context, l *launcher, progress io.Writer) (*report, error) {
	all := scenarios()
	if o.hosts != "" {
		all = betweenHosts()
	}
	r := &report{Machine: l.machine, DurationSeconds: o.duration.Seconds()}
	for _, s := range all {
		if o.rounds > 0 {
			s.runs = o.rounds
		}
		s.most = o.most
		m, err := s.measure(ctx, l, progress)
		if err != nil {
			return nil, err
		}
		r.Scenarios = append(r.Scenarios, m)
	}
	return r, nil
}

// grid is what the flags select.
func (o *options) grid() (*grid, error) {
	g := &grid{rounds: o.rounds}
	if g.rounds == 0 {
		g.rounds = 7
	}
	for field := range strings.SplitSeq(o.ranks, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-ranks is %q, want numbers of at least 1, such as 1,2,8", o.ranks)
		}
		g.ranks = append(g.ranks, n)
	}
	for field := range strings.SplitSeq(o.writers, ",") {
		w, err := strconv.ParseFloat(field, 64)
		if err != nil || !(w >= 0 && w <= 1) {
			return nil, fmt.Errorf("-writers is %q, want shares from 0 to 1, such as 0.002,1", o.writers)
		}
		g.writers = append(g.writers, w)
	}
	var names []string
	if o.locks != "" {
		names = strings.Split(o.locks, ",")
	}
	var err error
	if g.rows, err = rowsNamed(names); err != nil {
		return nil, err
	}
	if len(g.cells(1)) == 0 {
		return nil, errors.New("the rows of -locks are exclusive locks: they are measured at -writers 1 alone")
	}
	return g, nil
}
