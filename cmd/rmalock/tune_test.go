package main_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestTune: in virtual time, where a run is what it is, and among goroutines.
func TestTune(t *testing.T) {
	args := []string{"tune", "--backend", "sim", "--nodes", "4", "--per-node", "4", "--rounds", "1", "--duration", "300us", "--json"}
	first := rmalock(t, args...).good(t)
	m := first.object(t)
	best, _ := m["best"].(string)
	if !strings.HasPrefix(best, "rmarw:TL=") || m["default"] != "rmarw:TL=20/50:TR=4096:TDC=1 per node" || len(m["trials"].([]any)) < 15 {
		t.Errorf("tune says %v", m)
	}
	if again := rmalock(t, args...).good(t).stdout; again != first.stdout {
		t.Errorf("the same seed came to another result:\n%s%s", first.stdout, again)
	}
	rmalock(t, "bench", "--backend", "sim", "--nodes", "4", "--per-node", "4", "--lock", best, "--duration", "100us").good(t) // it is a lock

	// What is given stays: T_R is not looked for.
	m = rmalock(t, append(args, "--lock", "rmarw:tr=77:LEAF=mcs")...).good(t).object(t)
	if m["default"] != "rmarw:TL=20/50:TR=77:TDC=1 per node:LEAF=mcs" || !strings.Contains(m["best"].(string), ":TR=77:") || strings.Contains(fmt.Sprint(m["trials"]), "T_R") {
		t.Errorf("tune says %v", m)
	}

	text := rmalock(t, "tune", "--backend", "inproc", "--ranks", "2", "--lock", "rmamcs", "--rounds", "1", "--duration", "5ms").good(t).stdout
	if !strings.Contains(text, "best   'rmamcs:TL=") || !strings.Contains(text, "99 % us") {
		t.Errorf("tune says:\n%s", text)
	}
}

func TestTuneUsage(t *testing.T) {
	for _, c := range []struct {
		args, want string
	}{
		{"--lock dmcs", "want rmarw or rmamcs"},
		{"--lock rmarw:TX=1", `no parameter "TX"`},
		{"--writers 1.5", "--writers is 1.5, want 0 to 1"},
		{"--rounds 0", "--rounds is 0"},
		{"--duration -1s", "--duration is -1s"},
		{"--mode none", `no workload is called "none"`},
		{"--ranks 2,4", "want one"},
		{"--nodes 2", "--nodes wants --per-node"},
		{"--machine aries", "--machine goes with --backend sim"},
	} {
		o := rmalock(t, append([]string{"tune"}, strings.Fields(c.args)...)...)
		if o.code == 0 || !strings.Contains(o.stderr, c.want) {
			t.Errorf("tune %s: exit %d, %q, want %q", c.args, o.code, o.stderr, c.want)
		}
	}
}
