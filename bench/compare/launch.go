package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The programs.
const (
	ours     = "rmalock"
	cDMCS    = "bench-c-dmcs"
	cWinLock = "bench-c-winlock"
	cPthread = "bench-c-pthread"
	ourFAO   = "bench-fao"
	cFAO     = "bench-c-fao"
)

// A launcher runs programs as MPI jobs on this machine.
type launcher struct {
	bin, mpirun string
	hosts       string        // of a job across hosts, as in "h1:1,h2:1"; "" for this one
	agent       string        // remote shell of such a job
	mpich       bool          // mpirun is MPICH's
	duration    time.Duration // of the measurement in a job
	patience    time.Duration // for start and end of a job
	grace       time.Duration // between asking a job to end and killing it
	machine     machine
}

// A job is a program with its arguments and environment.
type job struct {
	program string
	args    []string
	env     []string // beside that of this process
	ranks   int
}

// argv is the command line of a job.
func (l *launcher) argv(j job) []string {
	var argv []string
	switch {
	case l.hosts != "" && l.mpich:
		argv = []string{l.mpirun, "-launcher", "ssh", "-launcher-exec", l.agent, "-hosts", l.hosts}
	case l.hosts != "":
		// osc/pt2pt, which Debian's file excludes, and not what Open MPI would choose: see
		// rma/mpi.
		argv = []string{l.mpirun, "--mca", "osc", "sm,pt2pt", "--bind-to", "none", "--mca", "plm_rsh_agent", l.agent, "-H", l.hosts}
	default:
		argv = l.localArgs(j)
	}
	argv = append(argv, "-n", strconv.Itoa(j.ranks), filepath.Join(l.bin, j.program))
	return append(argv, j.args...)
}

// localArgs are the launcher's arguments of a job on this host, under Open MPI.
func (l *launcher) localArgs(j job) []string {
	// osc/sm, because what Open MPI would choose itself on one node, osc/rdma, is
	// slower and crashes in MPI_Compare_and_swap.
	argv := []string{l.mpirun, "--mca", "osc", "sm"}
	if l.machine.oversubscribed(j.ranks) {
		argv = append(argv, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1")
	}
	return argv
}

// run runs a job and returns what it measured.
func (l *launcher) run(ctx context.Context, j job) (sample, error) {
	argv := l.argv(j)
	fail := func(err error) (sample, error) {
		return sample{}, fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	limit := l.duration + l.patience
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no result within %v", limit))
	defer cancel()
	out, err := l.output(ctx, argv, environment(j.env))
	if err != nil {
		return fail(err)
	}
	s, err := parse(out)
	if err == nil {
		err = s.check(j.ranks)
	}
	if err != nil {
		return fail(err)
	}
	return s, nil
}

// environment is that of this process without Go's own settings, which would make
// the results depend on the caller's shell, and with more.
func environment(more []string) []string {
	var env []string
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG":
		default:
			env = append(env, v)
		}
	}
	if os.Geteuid() == 0 { // mpirun asks root for these
		env = append(env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	}
	return append(env, more...)
}

// output runs a command in a process group of its own and returns its standard
// output. When ctx ends, the group is asked to end, and killed after grace.
func (l *launcher) output(ctx context.Context, argv, env []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// mpirun passes SIGTERM on to the ranks, which it puts into groups of their own.
	var kill *time.Timer
	cmd.Cancel = func() error {
		group := -cmd.Process.Pid
		kill = time.AfterFunc(l.grace, func() { syscall.Kill(group, syscall.SIGKILL) })
		return syscall.Kill(group, syscall.SIGTERM)
	}
	cmd.WaitDelay = l.grace + time.Second
	err := cmd.Run()
	if kill != nil {
		kill.Stop()
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return nil, fmt.Errorf("%w%s%s", err, tail(errs.String()), tail(out.String()))
	}
	if out.Len() == 0 {
		return nil, errors.New("it printed nothing" + tail(errs.String()))
	}
	return out.Bytes(), nil
}

// tail is the end of what a program said, for an error message.
func tail(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	const most = 2000
	if len(s) > most {
		s = "..." + s[len(s)-most:]
	}
	return "\n" + s
}
