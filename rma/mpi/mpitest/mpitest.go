// Package mpitest runs tests as MPI jobs: a test binary starts itself again under
// mpirun, on one host or on several pretended ones.
//
//	func TestMain(m *testing.M) { mpitest.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		mpitest.Each(t, mpitest.OneHost(1, 2, 4), func(t *testing.T, c rma.Comm) { ... })
//	}
//
// The package takes mpirun of the MPI that rma/mpi was built for. Several hosts on
// one machine are MPICH's fork launcher, which keeps nodes apart by name, or, for
// Open MPI, daemons in UTS namespaces of their own, which needs root or user
// namespaces; without, those jobs are skipped with the reason.
package mpitest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
)

// A Job says how ranks are started.
type Job struct {
	Ranks int
	Hosts int // 0 or 1: this one; else pretended hosts with Ranks/Hosts ranks each
	// MemoryNodes of the ranks are memory nodes, and run no test.
	MemoryNodes int
}

func (j Job) String() string {
	s := "ranks=" + strconv.Itoa(j.Ranks)
	if j.Hosts > 1 {
		s += ",hosts=" + strconv.Itoa(j.Hosts)
	}
	if j.MemoryNodes > 0 {
		s += memoryField + strconv.Itoa(j.MemoryNodes)
	}
	return s
}

const memoryField = ",memory-nodes="

// OneHost makes jobs on this host.
func OneHost(ranks ...int) []Job {
	jobs := make([]Job, len(ranks))
	for i, n := range ranks {
		jobs[i].Ranks = n
	}
	return jobs
}

// All is the jobs that every backend and lock is tested with.
func All() []Job {
	return append(OneHost(1, 2, 3, 4, 8), Job{Ranks: 2, Hosts: 2}, Job{Ranks: 4, Hosts: 2})
}

// jobVariable tells a rank that it is one, and of which job.
const jobVariable = "RMALOCK_TEST_JOB"

var world rma.Comm

// Main is the TestMain of a package with Each.
func Main(m *testing.M) {
	if os.Getenv(jobVariable) == "" {
		os.Exit(m.Run())
	}
	var cfg mpi.Config
	if _, k, ok := strings.Cut(os.Getenv(jobVariable), memoryField); ok {
		cfg.MemoryNodes, _ = strconv.Atoi(k) // as String wrote it
	}
	w, err := mpi.Open(cfg)
	if errors.Is(err, mpi.ErrServed) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	world = w
	code := m.Run()
	if code != 0 {
		w.Abort(code) // the others may be anywhere
	}
	if err := w.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Each runs f as every job, except in short mode. f must be collective: all ranks
// run the same tests in the same order.
func Each(t *testing.T, jobs []Job, f func(t *testing.T, c rma.Comm)) {
	t.Helper()
	if me := os.Getenv(jobVariable); me != "" {
		f(t, world)
		return
	}
	if testing.Short() {
		t.Skip("no jobs in short mode")
	}
	for _, j := range jobs {
		t.Run(j.String(), func(t *testing.T) {
			name := strings.Split(t.Name(), "/")[0]
			out, err := Rerun(t, j, name)
			if err != nil {
				t.Fatalf("%v: %v\n%s", j, err, report(out))
			}
			if !bytes.Contains(out, []byte("--- PASS: "+name)) {
				t.Fatalf("%v: no test ran:\n%s", j, report(out))
			}
		})
	}
}

// World is the communicator of the job that this test binary is a rank of, or nil.
func World() rma.Comm { return world }

// Rerun runs the test called name as a job, with variables added to its
// environment, and returns what it printed. It skips t where the machine cannot
// start such a job.
func Rerun(t *testing.T, j Job, name string, env ...string) ([]byte, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	limit := 400 * time.Second
	if os.Getenv("RMALOCK_FULL") != "" { // tests that do all there is to do
		limit = time.Hour
	}
	args := []string{"-test.run=^" + name + "$", "-test.v", "-test.timeout=" + limit.String()}
	ctx, cancel := context.WithTimeout(context.Background(), limit+20*time.Second)
	defer cancel()
	cmd, err := Command(ctx, t.TempDir(), j, self, args...)
	if err != nil {
		t.Skip(err)
	}
	cmd.Env = append(append(cmd.Env, jobVariable+"="+j.String()), env...)
	return cmd.CombinedOutput()
}

// report is what of a job's output tells why it failed: all but the lines on tests
// that passed or began, of which a conformance suite prints thousands, and of a long
// rest the beginning, where the failure is, and the end.
func report(out []byte) []byte {
	const most = 8 << 10
	var kept []byte
	for line := range bytes.Lines(out) {
		switch text := bytes.TrimSpace(line); {
		case bytes.HasPrefix(text, []byte("--- PASS:")), bytes.HasPrefix(text, []byte("--- SKIP:")),
			bytes.HasPrefix(text, []byte("=== ")), len(text) == 0:
		default:
			kept = append(kept, line...)
		}
	}
	if len(kept) <= 2*most {
		return kept
	}
	return slices.Concat(kept[:most], []byte("\n...\n"), kept[len(kept)-most:])
}

// Mpirun is the name of the launcher that fits the MPI which rma/mpi was built for.
func Mpirun() (string, error) {
	suffix := map[string]string{"Open MPI": "openmpi", "MPICH": "mpich"}[mpi.Library]
	if suffix == "" {
		return "", errors.New("built without MPI")
	}
	for _, name := range []string{"mpirun." + suffix, "mpirun"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no mpirun.%s and no mpirun on PATH: install %s (make setup)", suffix, mpi.Library)
}

// Command makes the command that starts a program as a job. dir is for scripts
// that it needs. When ctx ends, mpirun gets SIGTERM and ends its ranks.
func Command(ctx context.Context, dir string, j Job, program string, args ...string) (*exec.Cmd, error) {
	mpirun, err := Mpirun()
	if err != nil {
		return nil, err
	}
	var line []string
	env := os.Environ()
	if mpi.Library == "Open MPI" {
		if os.Geteuid() == 0 {
			env = append(env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
		}
		line = append(line, "--oversubscribe")
		if j.Hosts > 1 {
			agent, err := utsAgent(dir)
			if err != nil {
				return nil, err
			}
			line = append(line, "--bind-to", "none", "--mca", "plm_rsh_agent", agent, "-H", hosts(j))
		}
	} else if j.Hosts > 1 {
		line = append(line, "-launcher", "fork", "-hosts", hosts(j))
	}
	line = append(line, "-n", strconv.Itoa(j.Ranks), program)
	cmd := exec.CommandContext(ctx, mpirun, append(line, args...)...)
	cmd.Env = append(env, "GOMAXPROCS="+strconv.Itoa(max(min(2, j.Hosts+2*j.MemoryNodes), runtime.NumCPU()/j.Ranks)))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd, nil
}

// hosts is the host list of a job: "hostA:2,hostB:2".
func hosts(j Job) string {
	names := make([]string, j.Hosts)
	for i := range names {
		names[i] = fmt.Sprintf("rmahost%d:%d", i+1, j.Ranks/j.Hosts)
	}
	return strings.Join(names, ",")
}

// utsAgent writes the remote shell with which Open MPI starts its daemons: it
// drops ssh's options and runs the command under the host's name.
func utsAgent(dir string) (string, error) {
	unshare := "unshare --uts"
	if os.Geteuid() != 0 {
		unshare = "unshare --map-root-user --uts"
	}
	probe := strings.Fields(unshare + " hostname probe")
	if out, err := exec.Command(probe[0], probe[1:]...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("several hosts of Open MPI on one machine need root or user namespaces: %s: %v: %s", strings.Join(probe, " "), err, bytes.TrimSpace(out))
	}
	path := filepath.Join(dir, "agent.sh")
	script := `#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ` + unshare + ` /bin/sh -c 'hostname "$0"; exec /bin/sh -c "$*"' "$host" "$*"
`
	return path, os.WriteFile(path, []byte(script), 0o755)
}
