package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rmalock/rmalock/lock"
)

// binary is the program, built without cgo.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rmalock")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "rmalock")
	if err := build(binary, "", "CGO_ENABLED=0"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(to, tags string, env ...string) error {
	cmd := exec.Command("go", "build", "-tags", tags, "-o", to, ".")
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// outcome is what a run of the program left.
type outcome struct {
	stdout, stderr string
	code           int
}

// rmalock runs the program outside of any MPI job.
func rmalock(t *testing.T, args ...string) outcome {
	t.Helper()
	return execute(t, exec.Command(binary, args...))
}

func execute(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OMPI_") && !strings.HasPrefix(v, "PMI") && !strings.HasPrefix(v, "SLURM_") && !strings.HasPrefix(v, "GOMAXPROCS=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// good fails the test unless the run went well and said nothing on stderr.
func (o outcome) good(t *testing.T) outcome {
	t.Helper()
	if o.code != 0 || o.stderr != "" || o.stdout == "" {
		t.Fatalf("exit %d, want 0 with output and silent stderr\nstdout: %s\nstderr: %s", o.code, o.stdout, o.stderr)
	}
	return o
}

// bad fails the test unless the run ended with the code, no output, and all of
// what it should say on stderr.
func (o outcome) bad(t *testing.T, code int, says ...string) {
	t.Helper()
	if o.code != code || o.stdout != "" {
		t.Errorf("exit %d, want %d without output\nstdout: %s\nstderr: %s", o.code, code, o.stdout, o.stderr)
	}
	for _, s := range says {
		if !strings.Contains(o.stderr, s) {
			t.Errorf("stderr does not say %q: %s", s, o.stderr)
		}
	}
	if usage := strings.Contains(o.stderr, "Usage:") || strings.Contains(o.stderr, "Flags:"); usage {
		t.Errorf("usage dumped: %s", o.stderr)
	}
	if code == 1 && strings.Contains(o.stderr, "--help") {
		t.Errorf("a failed job is told to read the help: %s", o.stderr)
	}
}

// object parses a line of JSON.
func (o outcome) object(t *testing.T) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(o.stdout), &m); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, o.stdout)
	}
	if strings.Count(o.stdout, "\n") != 1 {
		t.Errorf("JSON takes more than a line:\n%s", o.stdout)
	}
	return m
}

// mpiOnly is a lock that the inproc backend does not have.
const mpiOnly = "mpi-win-lock"

// locks lists the locks' names.
func locks(t *testing.T) []string {
	t.Helper()
	var list []struct{ Name, Title, Fairness string }
	o := rmalock(t, "locks", "--json").good(t)
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range list {
		if l.Title == "" || l.Fairness == "" {
			t.Errorf("lock %q has title %q and fairness %q", l.Name, l.Title, l.Fairness)
		}
		names = append(names, l.Name)
	}
	return names
}

// steady is a lock whose leases do not run out on a busy machine: the lock with a parameter.
func steady(name string) string {
	if info, err := lock.Lookup(name); err == nil {
		for _, p := range info.Params {
			if p.Name == "LEASE" {
				return name + ":LEASE=10s"
			}
		}
	}
	return name
}

func TestHelp(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"", "mpirun -n 4 rmalock dht"},
		{"--help", "Exit status"},
		{"topo --help", "--bind-to core"},
		{"dht --help", "mpirun -n"},
		{"bench --help", "mpirun -n 16 rmalock bench --mode ecsb"},
		{"locks --help", "fairness"},
		{"version --help", "MPI library"},
		{"completion bash", "__start_rmalock"},
		{"completion --help", "fish"},
	} {
		o := rmalock(t, strings.Fields(c.args)...).good(t)
		if !strings.Contains(o.stdout, c.says) {
			t.Errorf("rmalock %s does not say %q:\n%s", c.args, c.says, o.stdout)
		}
	}
}

// TestWidth: the help of a command fits a screen of 45 lines, the program's one of 60, and no line
// of it, of the topics and of tables has more than 100 columns.
func TestWidth(t *testing.T) {
	for _, args := range []string{
		"--help", "topo --help", "dht --help", "bench --help", "tune --help", "check --help", "locks --help", "version --help", "completion --help", "demo --help",
		"help topo-details", "help dht-details", "help bench-details", "help workloads", "help tune-details", "help check-details", "help observing",
		"locks", "topo --synthetic node:2", "check --lock rmarw --ranks 2 --acquires 1", "dht --backend inproc --ranks 2 --scale 6",
		"bench --backend inproc --ranks 2 --acquires 10 --lock dmcs", "bench --backend inproc --ranks 2 --acquires 10 --mode sob --lock rmarw --writers 0.5",
		"bench --backend inproc --ranks 2 --acquires 10 --mode sob --lock rmarw,dmcs --repeat 2",
		"bench --backend sim --ranks 16,64 --acquires 100 --mode ecsb --lock rmarw:TR=1000 --writers 0.002,1",
		"bench --backend sim --nodes 2 --per-node 2 --acquires 100 --mode ecsb --band",
		"bench --backend sim --nodes 2 --per-node 4 --acquires 100 --mode ecsb --machine cx4 --verbs --qps core --coroutines 2 --memory-nodes 1 --colocated",
		"bench --backend sim --ranks 8 --acquires 100 --mode clients --locks 50 --keys scrambled:0.99 --locality 100 --together 2 --accesses 1 --inside 1us --think 1ms --rate 1e7",
		"tune --backend sim --nodes 2 --per-node 2 --rounds 1 --duration 10us",
	} {
		out := rmalock(t, strings.Fields(args)...).good(t).stdout
		screen := 45
		if args == "--help" { // lists all commands
			screen = 60
		}
		if n := strings.Count(out, "\n"); strings.HasSuffix(args, "--help") && n > screen {
			t.Errorf("rmalock %s has %d lines", args, n)
		}
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
				t.Errorf("rmalock %s has a line of %d columns: %s", args, n, line)
			}
		}
	}
}

// TestManual: --help and the details have each flag once, and each command that takes
// details has them.
func TestManual(t *testing.T) {
	flag := regexp.MustCompile(`(?m)^ +(?:-., )?(--[a-z-]+) `)
	for _, name := range []string{"topo", "dht", "store", "index", "bench", "tune", "check"} {
		usual := rmalock(t, name, "--help").good(t).stdout
		if !strings.Contains(usual, "rmalock help "+name+"-details") {
			t.Errorf("%s --help does not name its details:\n%s", name, usual)
		}
		seen := map[string]bool{}
		_, usual, _ = strings.Cut(usual, "\nFlags:\n")
		_, rare, _ := strings.Cut(rmalock(t, "help", name+"-details").good(t).stdout, "\nFurther flags of ")
		if name == "bench" {
			_, more, _ := strings.Cut(rmalock(t, "help", "workloads").good(t).stdout, "\nFurther flags of ")
			rare += more
		}
		for _, m := range flag.FindAllStringSubmatch(usual+rare, -1) {
			if seen[m[1]] {
				t.Errorf("%s has %s twice", name, m[1])
			}
			seen[m[1]] = true
		}
		if !seen["--json"] || !seen["--help"] || name == "bench" && (!seen["--poll"] || !seen["--mode"] || !seen["--keys"] || len(seen) < 45) {
			t.Errorf("%s has flags %v", name, seen)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	all := locks(t)
	for _, c := range []struct {
		args string
		says []string
	}{
		{"nonsense", []string{`unknown command "nonsense"`, "rmalock --help"}},
		{"topo nonsense", []string{"nonsense", "rmalock topo --help"}},
		{"bench --nonsense", []string{"--nonsense", "rmalock bench --help"}},
		{"help nonsense", []string{`no command or topic is called "nonsense"`, "rmalock --help"}},
		{"bench --writers x", []string{`--writers is "x", want numbers`}},
		{"bench --duration 1", []string{`--duration is "1", want a time such as 10ms`}},
		{"dht --seed -1", []string{`--seed is "-1", want a whole number from 0 on`}},
		{"bench --lock rmarw:TL=1,2", []string{`--lock has "2"`, "TL=20/50"}},
		{"store --size 0", []string{"--size is 0 bytes"}},
		{"kv --objects 0", []string{"--objects is 0"}},
		{"bench --lock nonsense", append(all, `"nonsense"`)},
		{"dht --lock nonsense", append(all, `"nonsense"`)},
		{"bench --mode nonsense", []string{"latency, lb, ecsb, sob, wcsb, warb, dht"}},
		{"bench --backend nonsense", []string{"auto, inproc, mpi"}},
		{"bench --ranks 0", []string{"--ranks is 0"}},
		{"bench --ranks 2 --backend mpi", []string{"mpirun -n"}},
		{"bench --acquires 0", []string{"--acquires is 0"}},
		{"bench --duration 0s", []string{"--duration is 0s"}},
		{"bench --duration 1s --acquires 5", []string{"duration", "acquires"}},
		{"bench --locks 0", []string{"--locks is 0"}},
		{"bench --mode ecsb --keys zipf:1", []string{"--keys goes with --mode clients", "rmalock help workloads"}},
		{"bench --figure 3 --rate 5", []string{"--rate goes with --mode clients"}},
		{"bench --mode clients --keys zipf", []string{`--keys: keys are "zipf", want uniform, zipf:THETA`, "such as zipf:0.99"}},
		{"bench --mode clients --keys zipf:x", []string{`"x" is no number`}},
		{"bench --mode clients --keys zipf:9", []string{"theta of keys is 9, want 0 to 3"}},
		{"bench --mode clients --keys hot:0.1:7", []string{"hot share of keys is 7 of the draws, want 0 to 1"}},
		{"bench --mode clients --locality 101", []string{"--locality is 101 percent, want more than 0 and at most 100"}},
		{"bench --mode clients --locality 0", []string{"--locality is 0 percent"}},
		{"bench --mode clients --together 0", []string{"--together is 0, want at least 1"}},
		{"bench --mode clients --together 3 --locks 2", []string{"3 locks together of 2 with keys uniform, want 1 to 2"}},
		{"bench --mode clients --accesses -1", []string{"--accesses is -1, want 0 or more"}},
		{"bench --mode clients --think -1s", []string{"--think is -1s, want 0 or more"}},
		{"bench --mode clients --rate 0", []string{"--rate is 0 visits per second, want more than 0"}},
		{"bench --writers 1.5", []string{"--writers is 1.5"}},
		{"bench --writers NaN", []string{"--writers is NaN"}},
		{"bench --writers 0.5 --lock dmcs", []string{"dmcs", "no shared mode"}},
		{"bench --json --csv", []string{"json", "csv"}},
		{"bench --lock dmcs:tr=5", []string{"dmcs", `"tr"`}},
		{"bench --lock atomic --mode ecsb", []string{`"atomic"`}},
		{"bench --mode dht --duration 1s", []string{"dht", "acquires"}},
		{"bench --repeat 0", []string{"--repeat is 0"}},
		{"bench --png", []string{"--plot"}},
		{"bench --figure 9", []string{"4a", "all"}},
		{"bench --figure 3 --mode dht", []string{"figure 3"}},
		{"bench --ranks 4,0", []string{"--ranks is 0"}},
		{"bench --ranks 5 --per-node 2", []string{"--per-node"}},
		{"bench --nodes 2", []string{"--per-node"}},
		{"bench --nodes 2 --per-node 0", []string{"--per-node is 0"}},
		{"bench --nodes 2 --ranks 4", []string{"nodes", "ranks"}},
		{"bench --machine aries", []string{"--machine", "sim"}},
		{"bench --band", []string{"--band", "sim"}},
		{"bench --backend mpi --nodes 2 --per-node 2", []string{"--nodes", "launcher"}},
		{"bench --backend sim --machine nonsense", []string{`"nonsense"`, "there are: "}},
		{"bench --backend sim --topology rack:2", []string{"rack:2", "node"}},
		{"bench --backend sim --topology nonsense", []string{`"nonsense"`}},
		{"bench --backend sim --poll 5us", []string{"--poll"}},
		{"bench --backend sim --poll 5us,1us", []string{"--poll"}},
		{"bench --verbs", []string{"--verbs", "sim"}},
		{"bench --backend sim --qps rack", []string{`"rack"`, "thread-pair"}},
		{"bench --backend sim --memory-nodes -1", []string{"--memory-nodes is -1"}},
		{"bench --backend sim --coroutines -1", []string{"-1 coroutines"}},
		{"topo --synthetic node", []string{`"node"`}},
		{"topo --synthetic node:2 --ranks 2", []string{"synthetic", "ranks"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			o := rmalock(t, strings.Fields(c.args)...)
			o.bad(t, 2, c.says...)
			if strings.Contains(o.stderr, "bad configuration") {
				t.Errorf("stderr has the error's class in it: %s", o.stderr)
			}
		})
	}
}

// TestRefusedParameters: a lock says which value it refuses, and what it wants.
func TestRefusedParameters(t *testing.T) {
	for name, says := range map[string]string{
		"rmamcs:TL=0":      `TL is "0": entry 1 is 0`,
		"dslr:LEASE=-1s":   `LEASE is "-1s": want a time such as 10ms`,
		"shiftlock:K=x":    `K is "x": want a whole number from 1 on`,
		"declock:POLICY=x": `POLICY is "x": want none, ts-tf, ts-pf, remote, local or bound`,
	} {
		o := rmalock(t, "bench", "--backend", "inproc", "--lock", name)
		o.bad(t, 1, "rank ", says)
		if strings.Contains(o.stderr, "bad configuration") {
			t.Errorf("stderr has the error's class in it: %s", o.stderr)
		}
	}
}

func TestLocksAndVersion(t *testing.T) {
	text := rmalock(t, "locks").good(t).stdout
	for _, name := range locks(t) {
		if !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("locks does not list %s:\n%s", name, text)
		}
	}
	if o := rmalock(t, "version").good(t); !strings.HasPrefix(o.stdout, "rmalock ") || !strings.Contains(o.stdout, "MPI library: none") {
		t.Errorf("version says %q", o.stdout)
	}
}

func TestMPIWithoutCgo(t *testing.T) {
	rmalock(t, "bench", "--backend", "mpi").bad(t, 1, "built without cgo")
}

func TestTopo(t *testing.T) {
	m := rmalock(t, "topo", "--backend", "inproc", "--ranks", "3", "--json").good(t).object(t)
	if m["ranks"] != 3.0 || len(m["levels"].([]any)) < 2 {
		t.Errorf("topo --json says %v", m)
	}
	m = rmalock(t, "topo", "--synthetic", "node:2 core:4", "--json").good(t).object(t)
	if m["ranks"] != 8.0 || len(m["levels"].([]any)) != 3 {
		t.Errorf("topo --synthetic --json says %v", m)
	}
	text := rmalock(t, "topo", "--synthetic", "node:2 core:4").good(t).stdout
	for _, want := range []string{"machine", "node 0-1", "core 0-3", "rank  node  core"} {
		if !strings.Contains(text, want) {
			t.Errorf("topo --synthetic does not show %q:\n%s", want, text)
		}
	}
}

func TestBenchModes(t *testing.T) {
	for _, mode := range []string{"latency", "ecsb", "sob", "wcsb", "warb"} {
		for _, length := range []string{"--acquires=300", "--duration=30ms"} {
			t.Run(mode+length, func(t *testing.T) {
				m := rmalock(t, "bench", "--backend", "inproc", "--ranks", "3", "--mode", mode, length, "--json").good(t).object(t)
				sane(t, m)
				if m["mode"] != mode || m["lock"] != "dmcs" || m["ranks"] != 3.0 {
					t.Errorf("result of mode %v, lock %v, %v ranks", m["mode"], m["lock"], m["ranks"])
				}
			})
		}
	}
}

func TestBenchLocks(t *testing.T) {
	for _, name := range locks(t) {
		if name == mpiOnly {
			rmalock(t, "bench", "--backend", "inproc", "--ranks", "3", "--lock", name).bad(t, 1, "rank ", name, "mpi backend")
			continue
		}
		if info, err := lock.Lookup(name); err == nil && info.Serves {
			rmalock(t, "bench", "--backend", "inproc", "--ranks", "1", "--lock", name).bad(t, 1, "1 ranks of 1 serve")
			sane(t, rmalock(t, "bench", "--backend", "inproc", "--ranks", "3", "--lock", name, "--mode", "wcsb", "--acquires", "200", "--json").good(t).object(t))
			continue
		}
		sane(t, rmalock(t, "bench", "--backend", "inproc", "--ranks", "3", "--lock", name, "--mode", "wcsb", "--acquires", "200", "--json").good(t).object(t))
		sane(t, rmalock(t, "bench", "--backend", "inproc", "--ranks", "1", "--lock", name, "--locks", "3", "--acquires", "200", "--json").good(t).object(t))
	}
}

// sane checks a benchmark's JSON.
func sane(t *testing.T, m map[string]any) {
	t.Helper()
	number := func(key string) float64 {
		v, ok := m[key].(float64)
		if !ok || math.IsNaN(v) || v < 0 {
			t.Errorf("%s is %v", key, m[key])
		}
		return v
	}
	sum, ranks := 0.0, m["acquires_per_rank"].([]any)
	for _, v := range ranks {
		sum += v.(float64)
	}
	if sum == 0 || sum != number("acquires") || float64(len(ranks)) != number("ranks") {
		t.Errorf("%v acquires by rank %v", m["acquires"], ranks)
	}
	if number("ns_per_acquire_min") > number("ns_per_acquire_median") || number("ns_per_acquire_median") > number("ns_per_acquire_p99") ||
		number("ns_per_acquire_p99") > number("ns_per_acquire_p999") {
		t.Errorf("quantiles not in order: %v", m)
	}
	if number("acquires_per_second") == 0 || number("duration_seconds") == 0 || number("cores") < 1 || number("nodes") < 1 {
		t.Errorf("no time or place: %v", m)
	}
	number("share_deviation")
	number("num_gc")
	if ops := m["ops_per_acquire"].(map[string]any); len(ops) == 0 {
		t.Errorf("no operations counted")
	}
	for _, key := range []string{"transport", "gogc"} {
		if s, ok := m[key].(string); !ok || s == "" {
			t.Errorf("%s is %v", key, m[key])
		}
	}
	if _, ok := m["oversubscribed"].(bool); !ok {
		t.Errorf("oversubscribed is %v", m["oversubscribed"])
	}
}

// TestBenchMemory: locks that the machine has no room for are refused, at once.
func TestBenchMemory(t *testing.T) {
	for _, args := range []string{"--backend inproc --lock dmcs", "--backend inproc --lock rmarw", "--backend sim --lock fompi-rw", "--backend inproc --lock dmcs --mode wcsb"} {
		for _, n := range []string{"1000000000000", "1000000000000000000"} {
			rmalock(t, append(strings.Fields("bench --ranks 4 --locks "+n), strings.Fields(args)...)...).bad(t, 1, "locks is "+n, "at each", "take fewer")
		}
	}
	rmalock(t, strings.Fields("bench --backend inproc --ranks 4 --locks 1000000 --acquires 10 --json")...).good(t)
}

func TestBenchCSVAndText(t *testing.T) {
	csv := rmalock(t, "bench", "--backend", "inproc", "--ranks", "2", "--acquires", "100", "--csv").good(t).stdout
	if lines := strings.Split(strings.TrimSpace(csv), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "mode,lock,") || !strings.HasPrefix(lines[1], "latency,dmcs,") {
		t.Errorf("CSV:\n%s", csv)
	}
	text := rmalock(t, "bench", "--backend", "inproc", "--ranks", "2", "--acquires", "100", "--mode", "ecsb").good(t).stdout
	for _, want := range []string{"dmcs, ecsb: 2 ranks on 1 node", "throughput", "latency", "shares", "operations"} {
		if !strings.Contains(text, want) {
			t.Errorf("text does not show %q:\n%s", want, text)
		}
	}
}
