package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	s, err := parse([]byte(`a line of the launcher's own
{
  "lock": "dmcs", "mode": "ecsb", "ranks": 2, "acquires_per_second": 3e6, "acquires_per_rank": [1, 2],
  "num_gc": 4, "gogc": "off", "transport": "shared memory", "something_else": {}
}
after`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Lock != "dmcs" || s.PerSecond != 3e6 || !slices.Equal(s.PerRank, []int64{1, 2}) || s.NumGC != 4 || s.GOGC != "off" {
		t.Errorf("%+v", s)
	}
	if err := s.check(2); err != nil {
		t.Error(err)
	}
	if err := s.check(8); err == nil || !strings.Contains(err.Error(), "2 ranks, want 8") {
		t.Error(err)
	}
	s.PerSecond = 0
	if err := s.check(2); err == nil {
		t.Error("a result without a figure passes")
	}
	for _, bad := range []string{"", "no result", `{"ranks": "two"}`, `{"ranks": 2`} {
		if _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func TestStatistics(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{5, 1, 3}, 3}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.of); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.of, got, c.want)
		}
	}
	if !math.IsNaN(median(nil)) {
		t.Error("the median of nothing is a number")
	}
	v := []float64{2, 1}
	median(v)
	if v[0] != 2 {
		t.Error("median sorts its argument")
	}
	if got := ratios([]float64{1, 6}, []float64{2, 3}); !slices.Equal(got, []float64{0.5, 2}) {
		t.Error(got)
	}
	low, high := shares([]sample{{PerRank: []int64{10, 10}}, {PerRank: []int64{0, 20}}})
	if low != 0 || high != 2 {
		t.Errorf("shares %v to %v", low, high)
	}
	if got := cpuModel("processor\t: 0\nmodel name\t: A: B\nmodel name\t: C\n"); got != "A: B" {
		t.Errorf("model %q", got)
	}
	if got := cpuModel(""); got != "" {
		t.Errorf("model %q", got)
	}
}

// sides are ours and C D-MCS at two settings.
func sides(uncontended bool, our, worse, better []float64) *comparison {
	m := &comparison{uncontended: uncontended, Contestants: []contestant{
		{Program: ours, Runs: our}, {Program: cDMCS, Name: "worse", Runs: worse}, {Program: cDMCS, Name: "better", Runs: better},
	}}
	m.summarize()
	return m
}

// TestTargets: less time is better and less throughput is worse, C counts at its
// better setting, and ratios are taken within rounds.
func TestTargets(t *testing.T) {
	time := sides(true, []float64{10, 20, 30}, []float64{90, 90, 90}, []float64{40, 40, 40})
	if got := time.best(cDMCS).Name; got != "better" {
		t.Errorf("the best by time is the %s one", got)
	}
	if got := median(oursTo(cDMCS)(time)); got != 0.5 {
		t.Errorf("ratio of times %v", got)
	}
	if got := median(bestOfOurs(time)); got != 10 {
		t.Errorf("best time %v", got)
	}
	rate := sides(false, []float64{10, 20, 60}, []float64{5, 5, 5}, []float64{10, 10, 60})
	if got := rate.best(cDMCS).Name; got != "better" {
		t.Errorf("the best by throughput is the %s one", got)
	}
	if got := median(oursTo(cDMCS)(rate)); got != 1 {
		t.Errorf("ratio of throughputs %v", got)
	}
	if got := median(bestOfOurs(rate)); got != 60 {
		t.Errorf("best throughput %v", got)
	}
	for _, c := range []struct {
		t    target
		want bool
	}{
		{target{limit: 10, atMost: true}, true}, {target{limit: 9.9, atMost: true}, false},
		{target{limit: 10}, true}, {target{limit: 10.1}, false},
	} {
		c.t.of = bestOfOurs
		if v := c.t.judge(time); v.Met != c.want {
			t.Errorf("%+v", v)
		}
	}
}

// TestInterval: against the tables of the sign test, and how often it holds the median of
// values that are drawn.
func TestInterval(t *testing.T) {
	rising := make([]float64, 30)
	for i := range rising {
		rising[len(rising)-1-i] = float64(i + 1)
	}
	for _, c := range []struct {
		n         int
		low, high float64
	}{{0, 0, 0}, {5, 0, 0}, {6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {15, 4, 12}, {25, 8, 18}, {30, 10, 21}} {
		low, high := interval(rising[30-c.n:])
		if low != c.low || high != c.high {
			t.Errorf("of %d: %v to %v, want %v to %v", c.n, low, high, c.low, c.high)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	held := 0
	for range 2000 {
		v := make([]float64, 15)
		for i := range v {
			v[i] = r.ExpFloat64()
		}
		if low, high := interval(v); low <= math.Ln2 && math.Ln2 <= high {
			held++
		}
	}
	if held < 1900 || held > 1990 {
		t.Errorf("holds the median %d of 2000 times", held)
	}
}

// TestGoesOn: a comparison whose limit is within the interval takes more runs, up to the
// most; one that is far from it does not.
func TestGoesOn(t *testing.T) {
	for _, c := range []struct {
		perSecond string
		runs      int
		status    int
	}{{"130", 12, allMet}, {"129", 6, missed}, {"200", 6, allMet}} {
		status, out, _ := start(t, strings.ReplaceAll(ourResult, ":200", ":"+c.perSecond), "-goals", "-json", "-rounds", "3", "-most", "12")
		var r report
		if err := json.Unmarshal([]byte(out), &r); err != nil || status != c.status {
			t.Fatalf("%s: status %d, %v", c.perSecond, status, err)
		}
		if got := len(r.Scenarios[2].Contestants[0].Runs); got != c.runs {
			t.Errorf("%s: %d runs, want %d", c.perSecond, got, c.runs)
		}
	}
}

func TestCommandLine(t *testing.T) {
	l := launcher{bin: "b", mpirun: "m", duration: time.Second, machine: machine{Cores: 2}}
	for _, s := range scenarios() {
		for _, c := range s.contestants(&l) {
			c.job.program, c.job.ranks = c.Program, s.ranks
			line := strings.Join(l.argv(c.job), " ")
			over := s.ranks > 2
			if got := strings.Contains(line, "--oversubscribe --mca mpi_yield_when_idle 1"); got != over {
				t.Errorf("%s: %s", s.title, line)
			}
			if !strings.HasPrefix(line, "m --mca osc sm ") || !strings.Contains(line, " -n "+strconv.Itoa(s.ranks)+" b/"+c.Program+" ") {
				t.Errorf("%s: %s", s.title, line)
			}
			if c.Program == cDMCS && strings.Contains(line, "--yield yes") != over {
				t.Errorf("%s: %s", s.title, line)
			}
		}
	}
	t.Setenv("GOGC", "50")
	t.Setenv("RMALOCK_TEST", "1")
	env := environment([]string{"GOGC=off"})
	if slices.Contains(env, "GOGC=50") || !slices.Contains(env, "GOGC=off") || !slices.Contains(env, "RMALOCK_TEST=1") {
		t.Error(env)
	}
}

// script writes an executable shell script.
func script(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// stub makes a folder with the programs and a launcher that runs its last
// arguments; $N is the number of ranks.
func stub(t *testing.T, our string) (dir, mpirun string) {
	dir = t.TempDir()
	script(t, filepath.Join(dir, ours), our)
	for _, c := range []string{cDMCS, cWinLock, cPthread} {
		script(t, filepath.Join(dir, c), `echo "{\"ranks\":$N,\"ns_per_acquire_median\":60,\"ns_per_acquire_min\":50,\"acquires_per_second\":100,\"acquires_per_rank\":[1,3],\"library\":\"MPI X\",\"component\":\"sm\"}"`)
	}
	return dir, script(t, filepath.Join(dir, "mpirun"), `while [ "$1" != -n ]; do shift; done; N=$2; export N; shift 2; exec "$@"`)
}

const ourResult = `echo "{\"ranks\":$N,\"ns_per_acquire_median\":15,\"ns_per_acquire_min\":14,\"acquires_per_second\":200,\"acquires_per_rank\":[2,2],\"transport\":\"none\",\"gogc\":\"${GOGC:-100}\",\"num_gc\":1}"`

// start runs the program on a stub.
func start(t *testing.T, our string, more ...string) (status int, out, errs string) {
	t.Helper()
	dir, mpirun := stub(t, our)
	var o, e bytes.Buffer
	args := append([]string{"-bin", dir, "-mpirun", mpirun, "-duration", "10ms"}, more...)
	status = compare(ctx, args, &o, &e)
	return status, o.String(), e.String()
}

func TestGoals(t *testing.T) {
	status, out, errs := start(t, ourResult, "-goals")
	if status != allMet {
		t.Fatalf("status %d\n%s%s", status, out, errs)
	}
	for _, want := range []string{"MPI X, one-sided component sm", "Transport of ours: none", "50 to 150 %", "ours, GOGC=off", "at most 0.333  0.25", "at least 1.3   2"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	status, out, _ = start(t, ourResult, "-goals", "-markdown")
	if status != allMet || !strings.Contains(out, "| C MPI_Win_lock | 60.0 | 60.0 | 60.0 | 0.25 |") {
		t.Errorf("status %d\n%s", status, out)
	}
	status, out, _ = start(t, strings.ReplaceAll(ourResult, `:200`, `:110`), "-goals", "-json")
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != missed {
		t.Fatalf("status %d, %v", status, err)
	}
	if len(r.Scenarios) != 3 || len(r.Scenarios[0].Contestants[0].Runs) != 10 || len(r.Scenarios[1].Contestants[4].Runs) != 7 || r.met() {
		t.Errorf("%+v", r)
	}
	v := r.Scenarios[2].Verdicts[0]
	if v.Met || math.Abs(v.Measured-1.1) > 1e-9 || v.Limit != 1.3 || v.AtMost {
		t.Errorf("%+v", v)
	}
}

func TestProgramFails(t *testing.T) {
	for _, c := range []struct {
		name, our string
		args      []string
		says      string
	}{
		{"a job that fails", "echo it hurts >&2; exit 3", nil, "exit status 3\nit hurts"},
		{"a job that fails when it has measured", "echo measured; exit 3", nil, "exit status 3\nmeasured"},
		{"a job that says nothing", "", nil, "it printed nothing"},
		{"a job that is no JSON", "echo hello", nil, "no JSON"},
		{"a job of other size", `echo '{"ranks":1,"acquires_per_second":1}'`, []string{"-ranks", "2"}, "1 ranks, want 2"},
		{"no programs", ourResult, []string{"-bin", "nowhere"}, "run make bench"},
		{"no launcher", ourResult, []string{"-mpirun", "no-such-launcher"}, "install Open MPI"},
		{"two formats", ourResult, []string{"-json", "-markdown"}, "exclude each other"},
		{"no time", ourResult, []string{"-duration", "1ms"}, "at least 10ms"},
		{"fewer than no runs", ourResult, []string{"-most", "-1"}, "-most is -1"},
		{"fewer than no rounds", ourResult, []string{"-rounds", "-1"}, "-rounds is -1"},
		{"an unknown lock", ourResult, []string{"-locks", "c-mutex,ticket"}, `"ticket" (in C: c-mutex, c-mutex-robust, `},
		{"an unknown parameter", ourResult, []string{"-locks", "rmarw:TX=1"}, `no parameter "TX"`},
		{"no rank", ourResult, []string{"-ranks", "1,0"}, `-ranks is "1,0"`},
		{"more than all", ourResult, []string{"-writers", "2"}, `-writers is "2"`},
		{"exclusive locks for readers", ourResult, []string{"-locks", "dmcs", "-writers", "0.5"}, "at -writers 1 alone"},
		{"goals between hosts", ourResult, []string{"-goals", "-hosts", "a:1,b:1"}, "exclude each other"},
		{"an argument", ourResult, []string{"x"}, `unexpected argument "x"`},
		{"an unknown flag", ourResult, []string{"-x"}, "not defined: -x"},
	} {
		if status, _, errs := start(t, c.our, c.args...); status != failed || !strings.Contains(errs, c.says) {
			t.Errorf("%s: status %d\n%s", c.name, status, errs)
		}
	}
}

// TestTimeOut: a job that does not end is ended with all that it started, asked
// first and then killed.
func TestTimeOut(t *testing.T) {
	for _, c := range []struct{ name, trap string }{{"asked", ""}, {"killed", "trap '' TERM\n"}} {
		dir, mpirun := stub(t, c.trap+`sleep 1000 & echo $! $$ >"$PIDS"; wait; sleep 1000`)
		pids := filepath.Join(dir, "pids")
		l := launcher{bin: dir, mpirun: mpirun, duration: 100 * time.Millisecond, patience: 200 * time.Millisecond, grace: 200 * time.Millisecond, machine: machine{Cores: 2}}
		began := time.Now()
		_, err := l.run(ctx, job{program: ours, ranks: 2, env: []string{"PIDS=" + pids}})
		if err == nil || !strings.Contains(err.Error(), "no result within 300ms") {
			t.Errorf("%s: %v", c.name, err)
		}
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("%s: took %v", c.name, d)
		}
		text, err := os.ReadFile(pids)
		if err != nil {
			t.Fatal(err)
		}
		for f := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			if !gone(pid) {
				t.Errorf("%s: process %d is still there", c.name, pid)
			}
		}
	}
}

// gone waits up to a second for a process to end. A zombie has ended.
func gone(pid int) bool {
	for range 100 {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// TestInterrupt: when the program is told to end, it says so and leaves nothing.
func TestInterrupt(t *testing.T) {
	dir, mpirun := stub(t, "sleep 1000")
	ctx, cancel := context.WithCancelCause(ctx)
	time.AfterFunc(200*time.Millisecond, func() { cancel(errors.New("told to end")) })
	var out, errs bytes.Buffer
	status := compare(ctx, []string{"-bin", dir, "-mpirun", mpirun}, &out, &errs)
	if status != failed || !strings.Contains(errs.String(), "told to end") {
		t.Errorf("status %d\n%s", status, errs.String())
	}
}
