package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// compared is the JSON of bench --lock all.
type compared struct {
	Runs []struct {
		Lock      string  `json:"lock"`
		Ranks     int     `json:"ranks"`
		Writers   float64 `json:"writers"`
		Shared    bool    `json:"shared_mode"`
		PerSecond float64 `json:"acquires_per_second"`
	} `json:"runs"`
	LeftOut []struct {
		Lock   string `json:"lock"`
		Reason string `json:"reason"`
	} `json:"left_out"`
}

func all(t *testing.T, args ...string) compared {
	t.Helper()
	var c compared
	out := rmalock(t, append([]string{"bench", "--lock", "all", "--json", "--acquires", "20"}, args...)...).good(t).stdout
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i, r := range c.Runs[1:] {
		before := c.Runs[i]
		if before.Ranks == r.Ranks && before.Writers == r.Writers && before.PerSecond < r.PerSecond {
			t.Errorf("%s with %g/s comes before %s with %g/s", before.Lock, before.PerSecond, r.Lock, r.PerSecond)
		}
	}
	return c
}

// Every lock of the registry has a run for each choice, or a reason why it has none.
func TestAllLocks(t *testing.T) {
	var list []struct {
		Name   string `json:"name"`
		Shared bool   `json:"shared_mode"`
	}
	out := rmalock(t, "locks", "--json").good(t).stdout
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	for where, choices := range map[string]int{
		"--ranks 8,16 --per-node 4 --locks 16 --locality 90 --writers 0.1,1 --inside 1us": 4,
		"--machine cx4 --verbs --memory-nodes 1 --ranks 8 --writers 0.5":                  1,
		"--backend inproc --ranks 2 --mode ecsb --writers 0.5":                            1,
	} {
		c := all(t, strings.Fields(where)...)
		runs, left := map[string]int{}, map[string]bool{}
		for _, r := range c.Runs {
			runs[r.Lock]++
		}
		for _, l := range c.LeftOut {
			left[l.Lock] = true
			if l.Reason == "" || strings.Contains(l.Reason, "\n") {
				t.Errorf("%s: %s is left out because %q", where, l.Lock, l.Reason)
			}
		}
		for _, l := range list {
			if n := runs[l.Name]; left[l.Name] && n > 0 || !left[l.Name] && n != choices {
				t.Errorf("%s: %s has %d runs, left out: %t", where, l.Name, n, left[l.Name])
			}
		}
		atRanks := !strings.Contains(where, "memory-nodes")
		if runs["dmcs"] > 0 != atRanks || runs["dslr"] == 0 || !left["traditional"] {
			t.Errorf("%s: runs %v, left out %v", where, runs, left)
		}
	}
}

func TestAllText(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	args := []string{"bench", "--lock", "all", "--ranks", "4", "--writers", "0.5", "--acquires", "20", "--plot", dir}
	out := rmalock(t, args...).good(t).stdout
	for _, want := range []string{"4 ranks on 1 node: keys uniform, 1 lock, 50 % writers", "  dmcs *", "\nleft out\n", "\n  mpi-win-lock    baseline", "figures drawn"} {
		if !strings.Contains(out, want) {
			t.Errorf("does not say %q:\n%s", want, out)
		}
	}
	again := rmalock(t, args...).good(t).stdout
	first, _, _ := strings.Cut(out, "\nleft out")
	if second, _, _ := strings.Cut(again, "\nleft out"); first != second || !strings.Contains(again, "0 runs made") {
		t.Errorf("runs of the folder are not shown again:\n%s", again)
	}
	if info, err := os.Stat(filepath.Join(dir, "report.html")); err != nil || info.Size() == 0 {
		t.Errorf("no report: %v", err)
	}
	if rows := rmalock(t, "bench", "--lock", "all", "--ranks", "4", "--acquires", "10", "--csv").good(t).stdout; strings.Count(rows, "\n") < 15 {
		t.Errorf("CSV is\n%s", rows)
	}
	for wrong, want := range map[string]string{
		"--lock all,dmcs":                           "every lock already",
		"--lock all --figure 3":                     "does not go with --figure",
		"--lock all --mode tpcc":                    "deadlock",
		"--lock all --repeat 2":                     "does not go with --repeat",
		"--lock all --backend mpi":                  "name the locks",
		"--lock all --backend inproc --machine cx3": "goes with --backend sim",
	} {
		rmalock(t, append([]string{"bench"}, strings.Fields(wrong)...)...).bad(t, 2, want)
	}
}
