package main

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

var ctx context.Context // ends with an interrupt, so that no job outlives the tests

func TestMain(m *testing.M) {
	var stop func()
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := m.Run()
	stop()
	os.Exit(code)
}

// TestCPrograms builds the C programs and runs them in all settings. Contended they
// check themselves that the lock excludes.
func TestCPrograms(t *testing.T) {
	for _, tool := range []string{"mpicc.openmpi", "mpirun.openmpi"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	if testing.Short() {
		t.Skip("short mode: it starts MPI jobs")
	}
	dir := t.TempDir()
	for program, source := range map[string]string{cDMCS: "dmcs.c", cWinLock: "winlock.c"} {
		build := exec.Command("mpicc.openmpi", "-O3", "-Wall", "-Wextra", "-Werror", "-o", filepath.Join(dir, program), filepath.Join("..", "c", source))
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", build, err, out)
		}
	}
	l := launcher{bin: dir, mpirun: "mpirun.openmpi", duration: 50 * time.Millisecond, patience: time.Minute, grace: 5 * time.Second, machine: thisMachine()}
	for _, s := range scenarios() {
		for _, c := range s.contestants(&l) {
			if c.Program == ours {
				continue
			}
			c.job.program, c.job.ranks = c.Program, s.ranks
			got, err := l.run(ctx, c.job)
			if err != nil {
				t.Error(err)
				continue
			}
			if s.uncontended != (got.Median > 0) || s.uncontended == (got.PerSecond > 0) || got.Library == "" || got.Component != "sm" {
				t.Errorf("%s, %s: %+v", s.title, c.Name, got)
			}
			if want := s.ranks; !s.uncontended && len(got.PerRank) != want {
				t.Errorf("%s, %s: figures of %d ranks, want %d", s.title, c.Name, len(got.PerRank), want)
			}
		}
	}
	// A wrong option is refused, and does not hang.
	if _, err := l.run(ctx, job{program: cDMCS, ranks: 2, args: []string{"--mode", "contended", "--own", "guess"}}); err == nil {
		t.Error("--own guess passes")
	}
}
