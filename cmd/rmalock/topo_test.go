package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTopoShowsWhatLocksMakeOfIt(t *testing.T) {
	text := rmalock(t, "topo", "--synthetic", "rack:2 node:4 core:4").good(t).stdout
	for _, want := range []string{
		"level    T_L  elements  ranks each  tails at\n",
		"machine  5    1         32          ",
		"rack     20   2         16          ",
		"node     10   8         4           ",
		"T_W 1000, T_R 4096\n",
		"T_DC 1 per node: 8 counters for 4 ranks each, at ranks 0-28:4\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("topo does not show %q:\n%s", want, text)
		}
	}
	text = rmalock(t, "topo", "--synthetic", "rack:2 node:4 core:4", "--levels", "node, core", "--counters", "every 2nd node").good(t).stdout
	for _, want := range []string{"rack 0-1 ×2", "core     ", "T_DC every 2nd node: 4 counters for 8 ranks each, at ranks 0-24:8\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("topo --levels does not show %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "rack     ") {
		t.Errorf("topo --levels node,core has thresholds of racks:\n%s", text)
	}
}

func TestTopoFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	table := put("table", "0-3 rack=A node=n1\n4,6 rack=B node=n2\n5,7 rack=B node=n3\n")
	first := rmalock(t, "topo", "--file", table, "--json", "--levels", "rack", "--counters", "4").good(t)
	m := first.object(t)
	th := m["thresholds"].(map[string]any)
	counters := m["counters"].([]any)
	if m["ranks"] != 8.0 || len(m["levels"].([]any)) != 3 || len(th["levels"].([]any)) != 2 || th["t_dc"] != "every 4th rank" || len(counters) != 2 {
		t.Errorf("topo --file --json says %v", m)
	}
	if c := counters[1].(map[string]any); c["host"] != 4.0 || c["ranks"] != "4-7" {
		t.Errorf("the second counter is %v", c)
	}
	// JSON reads back as the same, and edited as another.
	json := put("json", first.stdout)
	if again := rmalock(t, "topo", "--file", json, "--json", "--levels", "rack", "--counters", "4").good(t).stdout; again != first.stdout {
		t.Errorf("read back:\n%s\nwas:\n%s", again, first.stdout)
	}
	edited := strings.NewReplacer(`"n2","parent":1,"host":6,"ranks":"4,6"`, `"n2","ranks":"4,6-7"`, `"n3","parent":1,"host":7,"ranks":"5,7"`, `"n3","ranks":"5"`).Replace(first.stdout)
	text := rmalock(t, "topo", "--file", put("edited", edited)).good(t).stdout
	if !strings.Contains(text, "node n2  ranks 4,6-7") || !strings.Contains(text, "node n3  rank 5") {
		t.Errorf("the edited file shows\n%s", text)
	}
	// And in place of what a job finds.
	t.Setenv("RMALOCK_TOPO", table)
	text = rmalock(t, "topo", "--backend", "inproc", "--ranks", "8").good(t).stdout
	if !strings.Contains(text, "rack A") || !strings.Contains(text, "note: read from "+table) {
		t.Errorf("with RMALOCK_TOPO topo shows\n%s", text)
	}
	text = rmalock(t, "topo", "--backend", "inproc", "--ranks", "7").good(t).stdout
	if !strings.Contains(text, "note: 7 of 8 places are used") {
		t.Errorf("with 7 ranks of 8 topo shows\n%s", text)
	}
	rmalock(t, "topo", "--backend", "inproc", "--ranks", "9").bad(t, 1, "RMALOCK_TOPO", table, "8 places", "9 ranks")
}

func TestTopoUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{"--synthetic", "node:2", "--levels", "numa"}, []string{`"numa"`, "machine, node"}},
		{[]string{"--synthetic", "node:2", "--counters", "0"}, []string{"T_DC", "at least 1"}},
		{[]string{"--synthetic", "node:2", "--counters", "3"}, []string{"T_DC", "Ranks is 3", "number of ranks, 2"}},
		{[]string{"--synthetic", "node:2", "--counters", "every 3rd node"}, []string{"T_DC", "Every is 3"}},
		{[]string{"--counters", "many", "--ranks", "2"}, []string{"T_DC", `"2 per node"`, `"many"`}},
		{[]string{"--levels", "numa", "--backend", "inproc", "--ranks", "2"}, []string{`"numa"`, "machine, node"}},
		{[]string{"--file", "/nonexistent/machine"}, []string{"/nonexistent/machine", "no such file"}},
		{[]string{"--file", "x", "--synthetic", "node:2"}, []string{"file", "synthetic"}},
		{[]string{"--file", "x", "--ranks", "2"}, []string{"file", "ranks"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			o := rmalock(t, append([]string{"topo"}, c.args...)...)
			o.bad(t, 2, c.says...)
			if strings.Contains(o.stderr, "bad description") {
				t.Errorf("stderr has the error's class in it: %s", o.stderr)
			}
		})
	}
}
