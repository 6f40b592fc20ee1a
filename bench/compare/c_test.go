package main

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
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

// compile builds a program of bench/c, with more flags of the compiler.
func compile(t *testing.T, dir, program, source string, more ...string) {
	t.Helper()
	for _, tool := range []string{"mpicc.openmpi", "mpirun.openmpi"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	if testing.Short() {
		t.Skip("short mode: it starts MPI jobs")
	}
	args := append([]string{"-O3", "-Wall", "-Wextra", "-Werror", "-I" + filepath.Join("..", "c"), "-o", filepath.Join(dir, program), source}, more...)
	if out, err := exec.Command("mpicc.openmpi", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func fromC(name string) string { return filepath.Join("..", "c", name) }

func testLauncher(dir string) *launcher {
	return &launcher{bin: dir, mpirun: "mpirun.openmpi", duration: 50 * time.Millisecond, patience: time.Minute, grace: 5 * time.Second, machine: thisMachine()}
}

// TestCPrograms runs the C programs in all settings. In mode ecsb they check themselves
// that the lock excludes.
func TestCPrograms(t *testing.T) {
	dir := t.TempDir()
	for program, source := range map[string]string{cDMCS: "dmcs.c", cWinLock: "winlock.c", cPthread: "pthread.c"} {
		compile(t, dir, program, fromC(source))
	}
	l := testLauncher(dir)
	for _, s := range scenarios() {
		for _, c := range s.contestants(l) {
			if !s.uncontended || c.Program == ours {
				continue
			}
			c.job.program, c.job.ranks = c.Program, s.ranks
			got, err := l.run(ctx, c.job)
			if err != nil {
				t.Error(err)
			} else if got.Median <= 0 || got.PerSecond > 0 || got.Library == "" || got.Component != "sm" {
				t.Errorf("%s, %s: %+v", s.title, c.Name, got)
			}
		}
	}
	for i, r := range rowsInC() {
		writers, ranks := 0.25, 1+i%3
		if !r.at(writers) {
			writers = 1
		}
		got, err := l.run(ctx, r.job(l, ranks, writers))
		if err != nil {
			t.Error(err)
		} else if got.PerSecond <= 0 || got.Median > 0 || len(got.PerRank) != ranks || got.Component != "sm" {
			t.Errorf("%s, %d ranks, F_W %g: %+v", r.Lock, ranks, writers, got)
		}
	}
	// A batch longer than the run, as on a busy machine, counts.
	got, err := l.run(ctx, job{program: cPthread, ranks: 1, args: []string{"--mode", "latency", "--duration", "1e-9"}})
	if err != nil || got.Median <= 0 {
		t.Errorf("a run shorter than a batch: %+v, %v", got, err)
	}
	// A wrong option is refused, and does not hang.
	for _, j := range []job{
		{program: cDMCS, ranks: 2, args: []string{"--mode", "ecsb", "--own", "guess"}},
		{program: cPthread, ranks: 2, args: []string{"--mode", "ecsb", "--lock", "ticket"}},
		{program: cWinLock, ranks: 1, args: []string{"--mode", "ecsb", "--writers", "2"}},
		{program: cWinLock, ranks: 1, args: []string{"--mode", "wcsb"}},
	} {
		if _, err := l.run(ctx, j); err == nil {
			t.Errorf("%s %v passes", j.program, j.args)
		}
	}
}

// TestCProgramsCheck: the C programs detect a mutex that does not exclude, and a
// reader-writer lock whose readers do not lock. Each Get and Put first sleeps up to 200 us, so
// that sections overlap on every machine.
func TestCProgramsCheck(t *testing.T) {
	const sleeps = "#define _GNU_SOURCE\n#include <mpi.h>\n#include <pthread.h>\n#include <stdlib.h>\n#include <unistd.h>\n" +
		"#define MPI_Get(...) (usleep(rand() % 200), MPI_Get(__VA_ARGS__))\n" +
		"#define MPI_Put(...) (usleep(rand() % 200), MPI_Put(__VA_ARGS__))\n"
	for lock, broken := range map[string]string{
		"mutex":          "#define pthread_mutex_lock(m) 0\n#define pthread_mutex_unlock(m) 0\n",
		"rwlock-readers": "#define pthread_rwlock_rdlock(l) 0\n#define pthread_rwlock_unlock(l) (shared ? 0 : pthread_rwlock_unlock(l))\n",
	} {
		dir := t.TempDir()
		header := filepath.Join(dir, "broken.h")
		if err := os.WriteFile(header, []byte(sleeps+broken), 0o600); err != nil {
			t.Fatal(err)
		}
		compile(t, dir, cPthread, fromC("pthread.c"), "-include", header)
		_, err := testLauncher(dir).run(ctx, job{program: cPthread, ranks: 4, args: []string{"--mode", "ecsb", "--writers", "0.5", "--lock", lock}})
		if err == nil || !strings.Contains(err.Error(), "the lock does not exclude") {
			t.Errorf("broken %s: %v", lock, err)
		}
	}
}

// TestCChoices: a rank in C draws the same readers and writers as a rank in Go.
func TestCChoices(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "choices.c")
	if err := os.WriteFile(source, []byte(`#include "modes.h"
static inline void acquire(int shared) { (void)shared; }
static inline void release(int shared) { (void)shared; }
int main(int argc, char **argv) {
	bench b = bench_init(&argc, &argv, "choices");
	b.rank = 3;
	choices c = choices_of(&b);
	for (int i = 0; i < 1000; i++)
		putchar(next_shared(&c) ? 'r' : 'w');
	MPI_Finalize();
	return 0;
	bench_run(&b, MPI_WIN_NULL, 0);
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	compile(t, dir, "choices", source)
	l := testLauncher(dir)
	got, err := l.output(ctx, l.argv(job{program: "choices", ranks: 1, args: []string{"--mode", "ecsb", "--writers", "0.25"}}), environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 0x9E3779B97F4A7C15)) // as package bench has it
	var want strings.Builder
	for range 1000 {
		if rng.Uint64()>>1 < 3<<61 {
			want.WriteByte('r')
		} else {
			want.WriteByte('w')
		}
	}
	if string(got) != want.String() {
		t.Errorf("C draws\n%s\nGo\n%s", got, want.String())
	}
}
