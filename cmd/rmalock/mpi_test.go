//go:build cgo

package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma/mpi"
)

// mpiBinary is the program built with cgo, once.
var mpiBinary = sync.OnceValues(func() (string, error) {
	path, tags := binary+"-mpi", ""
	if mpi.Library == "MPICH" {
		tags = "mpich"
	}
	return path, build(path, tags, "CGO_ENABLED=1")
})

// mpirun runs the program in an MPI job of the library that this test is built for.
func mpirun(t *testing.T, ranks string, args ...string) outcome {
	t.Helper()
	launcher, options := "mpirun.openmpi", []string{"--oversubscribe", "-n", ranks}
	if mpi.Library == "MPICH" {
		launcher, options = "mpirun.mpich", []string{"-n", ranks}
	}
	if _, err := exec.LookPath(launcher); err != nil {
		t.Skipf("no MPI to run jobs with: %v", err)
	}
	program, err := mpiBinary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return execute(t, exec.CommandContext(ctx, launcher, append(append(options, program), args...)...))
}

// saysOnce fails the test unless stderr, launcher's remarks aside, says it once.
func (o outcome) saysOnce(t *testing.T, says string) {
	t.Helper()
	if n := strings.Count(o.stderr, says); n != 1 || o.stdout != "" || o.code == 0 {
		t.Errorf("exit %d; %q said %d times, want once, and a failure without output\nstdout: %s\nstderr: %s", o.code, says, n, o.stdout, o.stderr)
	}
}

// TestMPIOutputClosed: so is one for which there is no standard output. The program
// without cgo cannot tell.
func TestMPIOutputClosed(t *testing.T) {
	program, err := mpiBinary()
	if err != nil {
		t.Skip(err)
	}
	for _, line := range printing {
		full(t, line, "standard output is closed", exec.Command("sh", append([]string{"-c", `exec "$0" "$@" >&-`, program}, strings.Fields(line)...)...))
	}
}

func TestMPIResultsComeFromRankZero(t *testing.T) {
	for _, name := range append(locks(t), "atomic") {
		if info, err := lock.Lookup(name); err == nil && info.Serves || name == "drtm" {
			m := mpirun(t, "3", "bench", "--mode", "wcsb", "--acquires", "100", "--lock", name, "--json").good(t).object(t)
			if m["lock"] != name {
				t.Errorf("%s: result %v", name, m)
			}
			continue
		}
		ranks, scale := "4", "8"
		if name == mpiOnly { // MPICH's takes milliseconds per acquire when ranks outnumber cores
			ranks, scale = "2", "4"
		}
		m := mpirun(t, ranks, "dht", "--scale", scale, "--lock", steady(name), "--json").good(t).object(t)
		if m["verified"] != true || fmt.Sprint(m["ranks"]) != ranks || !strings.Contains(m["transport"].(string), mpi.Library) {
			t.Errorf("%s: result %v", name, m)
		}
	}
	m := mpirun(t, "3", "topo", "--json").good(t).object(t)
	if m["ranks"] != 3.0 {
		t.Errorf("topo says %v", m)
	}
	for _, c := range []struct{ args, line string }{
		{"tune --duration 2ms --rounds 1", "best "}, {"topo --synthetic node:2", "level "}, {"locks", "name "}, {"version", "rmalock "}, {"bench --acquires 10", "dmcs, latency"},
	} {
		o := mpirun(t, "3", strings.Fields(c.args)...).good(t)
		if strings.Count("\n"+o.stdout, "\n"+c.line) != 1 {
			t.Errorf("%s: not printed by one rank:\n%s", c.args, o.stdout)
		}
	}
}

func TestMPIBench(t *testing.T) {
	for _, mode := range []string{"latency", "ecsb", "wcsb", "clients"} {
		m := mpirun(t, "2", "bench", "--mode", mode, "--duration", "50ms", "--json").good(t).object(t)
		sane(t, m)
		if m["ranks"] != 2.0 || m["nodes"] != 1.0 {
			t.Errorf("result %v", m)
		}
	}
	// More ranks than cores, on most machines that run tests.
	m := mpirun(t, "5", "bench", "--mode", "ecsb", "--acquires", "50", "--json").good(t).object(t)
	sane(t, m)
}

// A job adds the runs of its size to a folder; rank 0 knows which are there.
func TestMPISweep(t *testing.T) {
	dir := t.TempDir()
	args := []string{"bench", "--mode", "ecsb,dht", "--lock", "dmcs", "--acquires", "100", "--plot", dir}
	for _, c := range []struct{ ranks, says string }{{"2", "2 runs made, 0 were there"}, {"2", "0 runs made, 2 were there"}, {"3", "2 runs made, 2 were there"}} {
		if o := mpirun(t, c.ranks, args...).good(t); strings.Count(o.stdout, c.says) != 1 {
			t.Errorf("%s ranks: does not say %q once:\n%s", c.ranks, c.says, o.stdout)
		}
	}
	mpirun(t, "2", "bench", "--plot", filepath.Join(bad(t), "out")).saysOnce(t, "not a directory")
}

// TestMPITrace: one file for all ranks, whose clocks it compares.
func TestMPITrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	mpirun(t, "3", "bench", "--mode", "wcsb", "--acquires", "200", "--trace", path).good(t)
	if ranks := timeline(t, path, 5); len(ranks) != 3 {
		t.Errorf("holds by rank %v, want some of 3 ranks", ranks)
	}
	mpirun(t, "3", "dht", "--trace", filepath.Join(bad(t), "t.json")).saysOnce(t, "not a directory")
}

// bad is the path of a file, where a folder is wanted.
func bad(t *testing.T) string { return write(t, "file", "x") }

func TestMPIErrorsAreSaidOnce(t *testing.T) {
	bad := write(t, "bad.txt", strings.Repeat("1 2\n", 1000)+"3 x\n")
	mpirun(t, "3", "dht", "--edges", bad).saysOnce(t, "bad.txt:1001:")
	mpirun(t, "3", "dht", "--edges", filepath.Join(t.TempDir(), "missing.txt")).saysOnce(t, "missing.txt")
	mpirun(t, "3", "dht", "--lock", "nonsense").saysOnce(t, `"nonsense"`)
	mpirun(t, "3", "bench", "--ranks", "3").saysOnce(t, "mpirun -n")
	mpirun(t, "3", "dht", "--scale", "8", "--slots", "4", "--heap", "5").saysOnce(t, "no free heap element")
}

// TestMPIMemoryNodes: ranks that only serve are in no result, and end when the others do.
func TestMPIMemoryNodes(t *testing.T) {
	if m := mpirun(t, "4", "topo", "--memory-nodes", "2", "--json").good(t).object(t); m["ranks"] != 2.0 {
		t.Errorf("4 ranks, 2 memory nodes among them, are %v", m)
	}
	m := mpirun(t, "3", "bench", "--memory-nodes", "1", "--mode", "ecsb", "--acquires", "50", "--json").good(t).object(t)
	sane(t, m)
	if m["ranks"] != 2.0 || !strings.Contains(fmt.Sprint(m["transport"]), "memory nodes: 1") {
		t.Errorf("result %v", m)
	}
	mpirun(t, "3", "topo", "--memory-nodes", "3").saysOnce(t, "MemoryNodes is 3 and the job has 3 ranks: want 0 to 2")
	mpirun(t, "3", "topo", "--memory-nodes", "-1").saysOnce(t, "--memory-nodes is -1")
	mpirun(t, "3", "dht", "--memory-nodes", "1", "--edges", filepath.Join(t.TempDir(), "missing.txt")).saysOnce(t, "missing.txt")
}

// TestMPIKilledRank: a rank dies in the middle of a job. The job ends at once, with
// the launcher's message and a status other than 0.
func TestMPIKilledRank(t *testing.T) {
	program, err := mpiBinary()
	if err != nil {
		t.Fatal(err)
	}
	killed := make(chan bool, 1)
	go func() {
		for range 600 {
			time.Sleep(50 * time.Millisecond)
			if ranks := running(program); len(ranks) == 3 {
				time.Sleep(500 * time.Millisecond) // into the workload
				killed <- syscall.Kill(ranks[1], syscall.SIGKILL) == nil
				return
			}
		}
		killed <- false
	}()
	start := time.Now()
	o := mpirun(t, "3", "bench", "--mode", "ecsb", "--duration", "60s", "--json")
	if !<-killed {
		t.Fatal("no rank was seen running")
	}
	if o.code == 0 || o.stdout != "" && strings.Contains(o.stdout, "acquires") || time.Since(start) > 50*time.Second {
		t.Errorf("exit %d after %v\nstdout: %s\nstderr: %s", o.code, time.Since(start), o.stdout, o.stderr)
	}
	if says := o.stdout + o.stderr; !strings.Contains(says, "signal 9") {
		t.Errorf("nobody says that a rank was killed:\n%s", says)
	}
	if left := running(program); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// running finds the processes of a program.
func running(program string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil && path == program {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			pids = append(pids, pid)
		}
	}
	return pids
}
