package examples_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

// A program is an example and what it says if all is well. Each checks its own result
// and fails otherwise.
type program struct {
	name  string
	args  []string
	says  func(ranks int) string
	large bool // too large for hosts that are pretended
}

func programs(t *testing.T) []program {
	list := []program{
		{name: "counters", says: func(n int) string {
			return fmt.Sprintf("counters: %d ranks made %d updates of 1000 counters: all right\n", n, 20000*n)
		}},
		{name: "workqueue", says: func(int) string { return "workqueue: 10 queens: 724 ways, right; 1847 tasks, " }},
		{name: "workqueue", args: []string{"-queens", "4"}, says: func(int) string { return "workqueue: 4 queens: 2 ways, right; 1 tasks, " }},
		{name: "components", args: []string{"-edges", islands(t)}, says: func(n int) string {
			return fmt.Sprintf("9 vertices, 8 edges, 3 components, found by %d ranks: as in the sequential answer\n", n)
		}},
		{name: "bank", says: func(n int) string {
			return fmt.Sprintf("bank: %d ranks made %d transfers between %d accounts, ", n, 1000*n, 8*n)
		}},
		{name: "config", says: func(n int) string {
			return fmt.Sprintf("config: %d ranks made %d reads and %d writes: no entry torn, no write lost\n", n, 2000*n, 20*n)
		}},
		{name: "seats", says: func(n int) string {
			return fmt.Sprintf("seats: %d ranks sold 320 seats of 16 flights: none twice, none left\n", n)
		}},
		{name: "sessions", says: func(n int) string {
			return fmt.Sprintf("sessions: %d ranks made %d updates of 50 users: each has the last one\n", n, 1000*n)
		}},
	}
	social := program{name: "components", large: true, says: func(n int) string {
		return fmt.Sprintf("65536 edges, 1 components, found by %d ranks: as in the sequential answer\n", n)
	}}
	const path = "../../shared/data/facebook_combined.txt"
	if _, err := os.Stat(path); err == nil {
		social.args = []string{"-edges", path}
		social.says = func(n int) string {
			return fmt.Sprintf("4039 vertices, 88234 edges, 1 components, found by %d ranks: as in the sequential answer\n", n)
		}
	}
	return append(list, social)
}

// islands writes a graph of three components, with numbers that are no vertices.
func islands(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte("# three\n1 5\n5 9\n9 1\n2 3\n30 2\n7 7\n20 21\n21 30\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "islands.gz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// dir is where the programs are built, once, for the MPI that this test is built for.
var dir string

var build = sync.OnceValue(func() error {
	args, env := []string{"build", "-o", dir + "/"}, append(os.Environ(), "CGO_ENABLED=1")
	switch mpi.Library {
	case "MPICH": // gompi names Open MPI's headers and library
		args = append(args, "-tags", "mpich")
		flags := func(of string) string {
			out, _ := exec.Command("pkg-config", of, "mpich").Output() // what is missing the compiler will say
			return strings.TrimSpace(string(out))
		}
		env = append(env, "CGO_CFLAGS="+flags("--cflags"), "CGO_LDFLAGS=-Wl,--as-needed "+flags("--libs"))
	case "none":
		env = append(env, "CGO_ENABLED=0")
	}
	cmd := exec.Command("go", append(args, "./...")...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
})

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "rmalock-examples-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// path is a built program.
func path(t *testing.T, name string) string {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// an outcome is what became of a program.
type outcome struct {
	stdout, stderr string
	code           int
}

func execute(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// good fails the test unless the program said one line, with that text in it, and
// ended well.
func (o outcome) good(t *testing.T, text string) {
	t.Helper()
	if o.code != 0 || strings.Count(o.stdout, "\n") != 1 || !strings.Contains(o.stdout, text) {
		t.Errorf("exit %d, want a line with %q\nstdout: %s\nstderr: %s", o.code, text, o.stdout, o.stderr)
	}
}

// bad fails the test unless the program ended with a status, and said why.
func (o outcome) bad(t *testing.T, code int, text string) {
	t.Helper()
	if o.code != code || o.stdout != "" || !strings.Contains(o.stderr, text) {
		t.Errorf("exit %d, want %d and %q\nstdout: %s\nstderr: %s", o.code, code, text, o.stdout, o.stderr)
	}
}

func inproc(t *testing.T, name string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return execute(t, exec.CommandContext(ctx, path(t, name), args...))
}

// job runs a program under mpirun, and skips the test where that cannot be.
func job(t *testing.T, j mpitest.Job, name string, args ...string) outcome {
	t.Helper()
	if testing.Short() {
		t.Skip("no jobs in short mode")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd, err := mpitest.Command(ctx, t.TempDir(), j, path(t, name), args...)
	if err != nil {
		t.Skip(err)
	}
	return execute(t, cmd)
}

func TestInproc(t *testing.T) {
	for _, p := range programs(t) {
		for ranks := 1; ranks <= 3; ranks++ {
			args := append([]string{"-backend", "inproc", "-ranks", strconv.Itoa(ranks)}, p.args...)
			inproc(t, p.name, args...).good(t, p.says(ranks))
		}
	}
}

// jobs are 1, 2 and 3 ranks on this host, and 2 on two pretended ones.
func jobs() []mpitest.Job { return append(mpitest.OneHost(1, 2, 3), mpitest.Job{Ranks: 2, Hosts: 2}) }

func TestMPI(t *testing.T) {
	for i, p := range programs(t) {
		for _, j := range jobs() {
			t.Run(fmt.Sprintf("%d,%s,%v", i, p.name, j), func(t *testing.T) {
				if p.large && j.Hosts > 1 {
					t.Skip("a find reads several far words for each of so many edges: a quarter of a minute")
				}
				job(t, j, p.name, p.args...).good(t, p.says(j.Ranks))
			})
		}
	}
}

// Programs for memory nodes: under MPI one of the ranks is one, and sells or updates nothing.
func TestMemoryNodes(t *testing.T) {
	for _, name := range []string{"seats", "sessions"} {
		inproc(t, name, "-ranks", "2", "-memory-nodes", "0").good(t, name+": 2 ranks ")
		inproc(t, name, "-ranks", "2", "-memory-nodes", "3").good(t, name+": 2 ranks ")
		t.Run(name, func(t *testing.T) {
			job(t, mpitest.Job{Ranks: 3}, name, "-memory-nodes", "1").good(t, name+": 2 ranks ")
		})
	}
}

func TestGompi(t *testing.T) {
	for _, start := range []string{"single", "multiple", "library"} {
		for _, j := range jobs() {
			t.Run(start+","+j.String(), func(t *testing.T) {
				o := job(t, j, "gompi", "-start", start)
				if start == "multiple" && j.Hosts > 1 && mpi.Library == "Open MPI" {
					if o.code == 0 || !strings.Contains(o.stderr, "refuses MPI_THREAD_MULTIPLE") {
						t.Errorf("exit %d, want a refusal\nstdout: %s\nstderr: %s", o.code, o.stdout, o.stderr)
					}
					return
				}
				o.good(t, fmt.Sprintf("gompi: %d ranks counted %d numbers", j.Ranks, 2000*j.Ranks))
			})
		}
	}
}

// What goes wrong is said, and is no success.
func TestFailures(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.txt")
	broken := filepath.Join(t.TempDir(), "broken.txt")
	if err := os.WriteFile(broken, []byte("1 2\n3 x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inproc(t, "components", "-edges", missing).bad(t, 1, "missing.txt: no such file")
	inproc(t, "components", "-edges", broken).bad(t, 1, "broken.txt:2:")
	inproc(t, "counters", "-ranks", "0").bad(t, 1, "want at least 1 rank")
	inproc(t, "bank", "-backend", "nonsense").bad(t, 1, `no backend is called "nonsense"`)
	inproc(t, "workqueue", "-queens", "99").bad(t, 2, "want 1 to 16")
	inproc(t, "config", "-nonsense").bad(t, 2, "flag provided but not defined")
	if mpi.Library == "none" {
		inproc(t, "bank", "-backend", "mpi").bad(t, 1, "built without cgo")
		inproc(t, "gompi").bad(t, 1, "built without cgo")
	}
	o := job(t, mpitest.Job{Ranks: 3}, "components", "-edges", missing)
	if o.code == 0 || o.stdout != "" || !strings.Contains(o.stderr, "missing.txt: no such file") {
		t.Errorf("exit %d\nstdout: %s\nstderr: %s", o.code, o.stdout, o.stderr)
	}
}
