// Compare measures D-MCS of this module against C on MPI-3 RMA: the same algorithm
// (bench/c/dmcs.c) and MPI_Win_lock (bench/c/winlock.c), under Open MPI's osc/sm.
//
//	mpicc.openmpi -O3 -march=native -o bin/bench-c-dmcs bench/c/dmcs.c
//	mpicc.openmpi -O3 -march=native -o bin/bench-c-winlock bench/c/winlock.c
//	go build -o bin/rmalock ./cmd/rmalock
//	go run ./bench/compare
//
// All programs run by turns, each round in another order, so that what the machine
// does beside hits all of them; ratios are medians of the ratios within a round. C
// gets its best setting: D-MCS is measured with both ways to read a rank's own
// words, and the better one counts; it yields when there are more ranks than cores.
// Ours runs with Go's default collector and with GOGC=off; the default counts.
//
// With -hosts it measures FetchAndOp and Flush between two hosts instead, with the
// progress helper and without, against bench/c/fao.c; scripts/test-hosts does so
// between hosts that one machine pretends:
//
//	mpicc.openmpi -O3 -march=native -o bin/bench-c-fao bench/c/fao.c
//	go build -o bin/bench-fao ./bench/compare/fao
//	go run ./bench/compare -hosts node1:1,node2:1
//
// The targets are stated for 2 cores. On a larger machine: taskset -c 0,1 go run
// ./bench/compare.
//
// The status is 0 if all targets are met, 1 if one is missed, 2 for an error.
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
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(compare(ctx, os.Args[1:], scenarios(), os.Stdout, os.Stderr))
}

// The statuses of the program.
const (
	allMet = 0
	missed = 1
	failed = 2
)

// compare is the program.
func compare(ctx context.Context, args []string, all []scenario, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.SetOutput(stderr)
	bin := f.String("bin", "bin", "folder with rmalock, bench-c-dmcs and bench-c-winlock")
	mpirun := f.String("mpirun", "mpirun.openmpi", "Open MPI's launcher")
	hosts := f.String("hosts", "", "two hosts to compare a FetchAndOp and a flush between, such as node1:1,node2:1")
	agent := f.String("agent", "ssh", "remote shell for --hosts")
	mpich := f.Bool("mpich", false, "the launcher is MPICH's; for --hosts")
	runs := f.Int("runs", 0, "runs of each contestant; 0: as the comparison says")
	most := f.Int("most", 0, "go on up to so many runs while the limit of a ratio lies within its 95 % interval")
	duration := f.Duration("duration", time.Second, "time of each run")
	markdown := f.Bool("markdown", false, "print Markdown")
	asJSON := f.Bool("json", false, "print JSON")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return allMet
		}
		return failed
	}
	err := func() error {
		switch {
		case f.NArg() > 0:
			return fmt.Errorf("unexpected argument %q", f.Arg(0))
		case *markdown && *asJSON:
			return errors.New("--markdown and --json exclude each other")
		case *duration < 10*time.Millisecond:
			return fmt.Errorf("--duration is %v, want at least 10ms", *duration)
		case *mpich && *hosts == "":
			return errors.New("--mpich goes with --hosts")
		case *runs < 0:
			return fmt.Errorf("--runs is %d, want at least 0", *runs)
		case *most < 0:
			return fmt.Errorf("--most is %d, want at least 0", *most)
		}
		programs := []string{ours, cDMCS, cWinLock}
		if *hosts != "" {
			all, programs = between(), []string{ourFAO, cFAO}
		}
		return check(*bin, *mpirun, programs)
	}()
	if err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return failed
	}
	l := launcher{bin: *bin, mpirun: *mpirun, hosts: *hosts, agent: *agent, mpich: *mpich, duration: *duration, patience: 100 * time.Second, grace: 3 * time.Second, machine: thisMachine()}
	r := report{Machine: l.machine, DurationSeconds: duration.Seconds()}
	for _, s := range all {
		if *runs > 0 {
			s.runs = *runs
		}
		s.most = *most
		m, err := s.measure(ctx, &l, stderr)
		if err != nil {
			fmt.Fprintln(stderr, "compare:", err)
			return failed
		}
		r.Scenarios = append(r.Scenarios, m)
	}
	switch {
	case *asJSON:
		err = r.writeJSON(stdout)
	case *markdown:
		err = r.writeMarkdown(stdout)
	default:
		err = r.writeText(stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return failed
	}
	if !r.met() {
		return missed
	}
	return allMet
}

// check says what is not there.
func check(bin, mpirun string, programs []string) error {
	if _, err := exec.LookPath(mpirun); err != nil {
		return fmt.Errorf("%w; install Open MPI (openmpi-bin), or name its launcher with --mpirun", err)
	}
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return fmt.Errorf("%w; build it as the first lines of bench/compare/main.go say, or run make bench", err)
		}
	}
	return nil
}
