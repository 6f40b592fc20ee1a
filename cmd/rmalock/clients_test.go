package main_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestClients: the flags of mode clients reach the run, whose output has what they ask for, as
// text, as JSON and drawn.
func TestClients(t *testing.T) {
	args := strings.Fields("--ranks 8 --mode clients --lock rmarw --writers 0.5 --locks 200 --keys zipf:0.99 --accesses 2 --think 3us --rate 1e6 --acquires 200")
	text := sim(t, args...).stdout
	for _, want := range []string{"rmarw, clients: 8 ranks", "workload    keys zipf:0.99, accesses 2, think 3µs", "of 1e+06 that were to begin", "busiest     lock 0: ", "locks       200, of which"} {
		if !strings.Contains(text, want) {
			t.Errorf("text does not show %q:\n%s", want, text)
		}
	}
	m := sim(t, append(args, "--json")...).object(t)
	if m["workload"] != "keys zipf:0.99, accesses 2, think 3µs" || m["visits"] != 8*180.0 || m["offered_per_second"] != 1e6 || len(m["latency_per_rank"].([]any)) != 8 {
		t.Errorf("result %v", m)
	}
	busiest := m["busiest_locks"].([]any)[0].(map[string]any)
	if busiest["lock"] != 0.0 || !(busiest["share"].(float64) > 0.1) || len(busiest["cdf"].([]any)) == 0 {
		t.Errorf("busiest lock %v", busiest)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if out := sim(t, append(args, "--plot", dir)...).stdout; !strings.Contains(out, "4 figures drawn") {
		t.Errorf("not drawn: %s", out)
	}
	// Another workload is another run.
	if out := sim(t, append(args, "--plot", dir, "--accesses", "3")...).stdout; !strings.Contains(out, "1 runs made, 1 were there") || !strings.Contains(out, "6 figures drawn") {
		t.Errorf("another workload: %s", out)
	}
}
