package main_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// printing are command lines that print something on standard output.
var printing = []string{
	"topo --backend inproc", "topo --synthetic node:2 --json",
	"dht --backend inproc --ranks 2 --scale 6", "dht --backend inproc --ranks 2 --scale 6 --json",
	"bench --backend inproc --ranks 2 --acquires 10", "bench --backend inproc --ranks 2 --acquires 10 --json",
	"bench --backend inproc --ranks 2 --acquires 10 --csv", "bench --backend inproc --ranks 2 --acquires 10 --repeat 2",
	"bench --backend sim --ranks 2 --acquires 10",
	"tune --backend sim --nodes 2 --per-node 2 --rounds 1 --duration 10us",
	"tune --backend inproc --ranks 2 --rounds 1 --duration 1ms --json",
	"check --lock dmcs --ranks 2", "check --lock dmcs --ranks 2 --json", "check --lock dmcs --ranks 2 --acquires 1 --replay 0",
	"check --lock rmamcs --ranks 2 --explore time --schedules 2",
	"locks", "locks --json", "version", "completion bash", "help", "bench --help", "help bench-details", "",
}

// full fails the test unless a command whose output cannot be written ends with status 1
// and one line that says so.
func full(t *testing.T, line, says string, cmd *exec.Cmd) {
	t.Helper()
	o := execute(t, cmd)
	if o.code != 1 || !strings.Contains(o.stderr, says) || strings.Count(o.stderr, "\n") != 1 {
		t.Errorf("rmalock %s: exit %d, want 1 and %q: %s", line, o.code, says, o.stderr)
	}
}

// TestOutputFull: a result that cannot be written is a failure of every command.
func TestOutputFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	for _, line := range printing {
		full(t, line, "no space left on device", exec.Command("sh", append([]string{"-c", `exec "$0" "$@" >/dev/full`, binary}, strings.Fields(line)...)...))
	}
}
