package main_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// slice is an event of a timeline; times are microseconds.
type slice struct {
	Name, Ph string
	Pid, Tid int
	Ts, Dur  float64
	Args     struct {
		Lock, Mode string
		ID         int
	}
}

// timeline reads a file of --trace, whose exclusive holds of a lock must not meet by
// more than clocks are off, in microseconds. It returns the number of holds by rank.
func timeline(t *testing.T, path string, off float64) map[int]int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Events []slice `json:"traceEvents"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	ranks := map[int]int{}
	holds := map[int][]slice{}
	for _, e := range file.Events {
		if e.Name == "hold" {
			ranks[e.Tid]++
			holds[e.Args.ID] = append(holds[e.Args.ID], e)
		}
	}
	for id, of := range holds {
		slices.SortFunc(of, func(a, b slice) int { return cmp.Compare(a.Ts, b.Ts) })
		for i := range of[1:] {
			if end := of[i].Ts + of[i].Dur; end > of[i+1].Ts+off {
				t.Errorf("lock %d is held by rank %d until %v and by rank %d from %v", id, of[i].Tid, end, of[i+1].Tid, of[i+1].Ts)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".trace-*")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	return ranks
}

func TestTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	rmalock(t, "bench", "--backend", "inproc", "--mode", "wcsb", "--ranks", "3", "--acquires", "500", "--trace", path).good(t)
	if ranks := timeline(t, path, 0.001); len(ranks) != 3 {
		t.Errorf("holds by rank %v, want some of 3 ranks", ranks)
	}
	dht(t, "--ranks", "2", "--scale", "6", "--trace", path).good(t)
	if ranks := timeline(t, path, 0.001); len(ranks) != 2 {
		t.Errorf("holds by rank %v, want some of 2 ranks", ranks)
	}
}

func TestTraceWrong(t *testing.T) {
	rmalock(t, "bench", "--backend", "sim", "--trace", "t").bad(t, 2, "not in virtual time")
	rmalock(t, "bench", "--mode", "lb,ecsb", "--trace", "t").bad(t, 2, "one run")
	rmalock(t, "bench", "--counters", "9100").bad(t, 2, "HOST:PORT")
	dht(t, "--lock", "atomic", "--trace", "t").bad(t, 2, "is none")
	dht(t, "--trace", filepath.Join(t.TempDir(), "no", "t.json")).bad(t, 1, "no such file")
}

// TestCounters: counters are served while a job runs, in both forms, and without a host
// to this machine alone.
func TestCounters(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(at)
	cmd := exec.Command(binary, "bench", "--backend", "inproc", "--ranks", "2", "--mode", "ecsb", "--duration", "60s", "--counters", ":"+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	get := func(path string) string {
		r, err := http.Get("http://" + at + path)
		if err != nil {
			return ""
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return string(text)
	}
	acquires := func() (n float64) {
		for line := range strings.Lines(get("/metrics")) {
			if v, ok := strings.CutPrefix(line, `rmalock_acquires_total{table="dmcs",mode="exclusive"} `); ok {
				_, _ = fmt.Sscan(v, &n) // 0 is wrong enough
			}
		}
		return n
	}
	first := 0.0
	for end := time.Now().Add(30 * time.Second); first == 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		first = acquires()
	}
	if c, err := net.Dial("tcp", "127.0.0.2:"+port); err == nil { // reaches a listener at all addresses
		c.Close()
		t.Errorf("--counters :%s listens at 127.0.0.2 too", port)
	}
	time.Sleep(20 * time.Millisecond)
	if more := acquires(); first == 0 || more <= first {
		t.Errorf("%v acquires, and later %v", first, more)
	}
	var vars struct {
		Rmalock []struct {
			Name      string
			Exclusive struct {
				Acquires int64
				HoldNs   int64 `json:"hold_ns"`
			}
		}
	}
	text := get("/debug/vars")
	if err := json.Unmarshal([]byte(text), &vars); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(vars.Rmalock) != 1 || vars.Rmalock[0].Name != "dmcs" || vars.Rmalock[0].Exclusive.Acquires < int64(first) || vars.Rmalock[0].Exclusive.HoldNs == 0 {
		t.Errorf("expvar says %+v", vars.Rmalock)
	}
}
