package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// broken is a lock whose CompareAndSwap is a Get and a Put.
type broken struct {
	w    *rma.Window
	home int
}

func (t *broken) Len() int             { return 1 }
func (t *broken) Home(int) int         { return t.home }
func (t *broken) Free() error          { return t.w.Free() }
func (t *broken) Mutex(int) lock.Mutex { return nil }

func (t *broken) TryLock(int, lock.Mode) (bool, error) {
	last, err := t.w.GetFlush(t.home, 0)
	if err != nil || last != 0 {
		return false, err
	}
	return true, t.w.PutFlush(1, t.home, 0)
}

func (t *broken) Lock(context.Context, int, lock.Mode) error {
	for try := 0; ; try++ {
		if got, err := t.TryLock(0, lock.Exclusive); got || err != nil {
			return err
		}
		if err := t.w.Backoff(t.home, 0, 1, try); err != nil {
			return err
		}
	}
}

func (t *broken) Unlock(int, lock.Mode) error { return t.w.PutFlush(0, t.home, 0) }

// twisted is how the broken lock was opened last.
var twisted lock.Setting

func init() {
	open := func(c rma.Comm, _, home int) (lock.Table, error) {
		w, err := c.Allocate(rma.CounterSpec("broken", 1))
		return &broken{w, home}, err
	}
	lock.Register(lock.Info{
		Name: "broken", Title: "torn on purpose", Fair: "none", Open: open,
		Params: []lock.Param{{Name: "twist", Help: "nothing depends on it"}},
		OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
			if c.Rank() == 0 {
				twisted = s
			}
			return open(c, s.Locks, s.Home)
		},
	})
}

// checkCommand runs "rmalock check" in this process, so that it knows the broken lock.
func checkCommand(t *testing.T, args string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := newCheck()
	var out bytes.Buffer
	words := []string{}
	for _, w := range regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`).FindAllString(args, -1) {
		words = append(words, strings.Trim(w, `"'`))
	}
	cmd.SetArgs(words)
	cmd.SetOut(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	var failed *failure
	switch {
	case err == nil:
		return out.String(), "", 0
	case errors.As(err, &failed):
		return out.String(), message(err), exitFailed
	}
	return out.String(), message(err), exitUsage
}

func TestCheckPasses(t *testing.T) {
	for _, c := range []struct {
		args string
		says []string
	}{
		{"--lock dmcs --ranks 2", []string{"2 ranks, 2 acquires each\n", "all: ", "nothing goes wrong", "at most 1 bypasses", "at most 2 remote operations to acquire, 2 to release"}},
		{"--lock dmcs --ranks 2 --tries --guard", []string{"some only try"}},
		{"--lock fompi-spin --ranks 2 --acquires 1 --ticks 2 --tick 500 --memory-nodes 3", []string{"memory nodes: 3, ticks of 500 ns: up to 2\n", "all: "}},
		{"--lock dmcs --bound 1", []string{"all with up to 1 preemptions"}},
		{"--lock dmcs --schedules 10", []string{"not all"}},
		{"--lock fompi-rw --ranks 2 --writers 1", []string{"1 writers", "no bound on bypasses", "shared"}},
		{"--lock fompi-rw --ranks 4 --explore random --schedules 300 --seed 7", []string{"modes drawn", "300 at random, seed 7"}},
		{`--lock dmcs --ranks 8 --explore pct --schedules 300 --topology "node:2 core:4" --depth 2`, []string{"300 of PCT with depth 2", "node:2 core:4"}},
		{"--lock dmcs --ranks 16 --explore time --schedules 30 --seed 4", []string{"30 in virtual time, seeds from 4 on", "nothing goes wrong"}},
		{`--lock rmamcs:TL=2,2,1 --ranks 4 --acquires 3 --explore pct --schedules 300 --topology "node:2 core:2"`, []string{"rmamcs:TL=2,2,1", "nothing goes wrong"}},
		{`--lock rmamcs:TL=/1/2/1 --ranks 6 --explore random --schedules 50 --topology "node:2 numa:2 core:2"`, []string{"rmamcs:TL=/1/2/1", "nothing goes wrong"}},
		{`--lock "rmarw:TR=2:TDC=1 per node" --ranks 4 --explore random --schedules 300 --topology "node:2 core:2"`, []string{"TDC=1 per node", "nothing goes wrong"}},
		{"--lock dmcs --ranks 3 --explore random --schedules 300 --stop 0@3+20", []string{"rank 0@3+20 stops", "nothing goes wrong"}},
	} {
		out, _, code := checkCommand(t, c.args)
		if code != 0 {
			t.Errorf("check %s: exit %d\n%s", c.args, code, out)
		}
		for _, s := range c.says {
			if !strings.Contains(out, s) {
				t.Errorf("check %s does not say %q:\n%s", c.args, s, out)
			}
		}
	}
}

// TestCheckFails: a failure is told, and its command replays it exactly.
func TestCheckFails(t *testing.T) {
	for _, args := range []string{
		"--lock broken --ranks 2 --acquires 1",
		"--lock broken --ranks 3 --bound 2 --guard",
		`--lock broken --ranks 4 --explore random --topology "node:2 core:2" --seed 3`,
		"--lock broken --ranks 8 --explore pct --tries --guard",
		"--lock dmcs --ranks 2 --stop 0@4",
		"--lock dmcs --ranks 2 --ticks 1 --crashes 1 --rejoins 1",
	} {
		out, stderr, code := checkCommand(t, args)
		if code != exitFailed || !strings.Contains(out, "FAILS in execution") || stderr == "" {
			t.Errorf("check %s: exit %d, %q\n%s", args, code, stderr, out)
			continue
		}
		if !strings.Contains(out, "enters") || !strings.Contains(out, "schedule  ") || !strings.Contains(out, "@0: 0") {
			t.Errorf("check %s has no trace:\n%s", args, out)
		}
		_, told, _ := strings.Cut(out, "\n\n")
		_, command, ok := strings.Cut(out, "replay    rmalock check ")
		if !ok {
			t.Errorf("check %s does not say how to see it again:\n%s", args, out)
			continue
		}
		again, _, code := checkCommand(t, strings.TrimSpace(command))
		if code != exitFailed || again != told {
			t.Errorf("check %s: exit %d, and this is not what was told:\n%s\n--- but\n%s", command, code, again, told)
		}
	}
}

// TestCheckTime: a failure in virtual time is told with its seed, and comes up again.
func TestCheckTime(t *testing.T) {
	out, stderr, code := checkCommand(t, `--lock broken:twist=2 --ranks 4 --explore time --seed 3 --tries --topology "node:2 core:2"`)
	_, command, ok := strings.Cut(out, "again     rmalock check ")
	if code != exitFailed || !ok || !strings.Contains(stderr, "mutual exclusion") || !strings.Contains(command, "--lock broken:twist=2") {
		t.Fatalf("exit %d, %q\n%s", code, stderr, out)
	}
	again, same, code := checkCommand(t, strings.TrimSpace(command))
	if code != exitFailed || same != stderr || !strings.Contains(again, "execution 1\n") {
		t.Errorf("check %s: exit %d, %q, want %q\n%s", command, code, same, stderr, again)
	}
}

// TestCheckParameters: the lock gets its parameters and the machine, and the command
// that replays a failure has them.
func TestCheckParameters(t *testing.T) {
	const args = `--lock "broken:twist=more than one" --ranks 4 --explore random --topology "node:2 core:2"`
	out, _, code := checkCommand(t, args)
	_, command, ok := strings.Cut(out, "replay    rmalock check ")
	if code != exitFailed || !ok || !strings.Contains(command, "--lock 'broken:twist=more than one'") || !strings.Contains(command, "node:2 core:2") {
		t.Fatalf("exit %d\n%s", code, out)
	}
	if seen := twisted; seen.Params["twist"] != "more than one" || seen.Topology.String() != "node:2 core:2" {
		t.Errorf("the lock was opened with %+v", seen)
	}
	if again, _, code := checkCommand(t, strings.TrimSpace(command)); code != exitFailed || !strings.HasSuffix(out, again) {
		t.Errorf("check %s: exit %d\n%s", command, code, again)
	}
}

func TestCheckJSON(t *testing.T) {
	for _, c := range []struct {
		args string
		ok   bool
	}{
		{"--json --lock broken --ranks 2 --explore time", false},
		{"--json --lock dmcs --ranks 2", true}, {"--json --lock broken --ranks 2", false}, {"--json --lock broken --ranks 2 --replay 2a", false},
		{"--json --lock dmcs --replay -", true},
	} {
		out, _, _ := checkCommand(t, c.args)
		var r checkReport
		if err := json.Unmarshal([]byte(out), &r); err != nil || strings.Count(out, "\n") != 1 {
			t.Errorf("check %s: %v\n%s", c.args, err, out)
			continue
		}
		if r.OK != c.ok && !strings.Contains(c.args, "2a") || (r.Failure == nil) != r.OK || r.Ranks < 2 || r.Seed != 1 {
			t.Errorf("check %s: %s", c.args, out)
		}
		if f := r.Failure; f != nil && r.Explore == exploreTime {
			if f.Error == "" || f.Schedule != "" || !strings.Contains(f.Replay, "--explore time --schedules 1") {
				t.Errorf("check %s: %s", c.args, out)
			}
		} else if f != nil && (len(f.Trace) < 3 || f.Schedule == "" || !strings.Contains(f.Replay, f.Schedule) || f.Error == "") {
			t.Errorf("check %s: %s", c.args, out)
		}
	}
}

func TestCheckUsage(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"--lock nonsense", "dmcs"},
		{"--lock dmcs --ranks 0", "--ranks is 0"},
		{"--lock dmcs --ranks 9", "up to 8"},
		{"--lock dmcs --acquires 0", "--acquires is 0"},
		{"--lock dmcs --writers 1", "no shared mode"},
		{"--lock fompi-rw --writers 4", "--writers is 4"},
		{"--lock dmcs --explore nonsense", "dfs, random, pct or time"},
		{"--lock dmcs --explore time --stop 1@3", "--stop does not go"},
		{"--lock dmcs:TL=1", "no parameter"},
		{"--lock rmarw:TR", "name=value"},
		{"--lock rmarw:TR=x", "TR"},
		{"--lock dmcs --explore random --schedules 0", "--schedules is 0"},
		{"--lock dmcs --bound -2", "--bound is -2"},
		{"--lock dmcs --explore pct --depth 0", "--depth is 0"},
		{"--lock dmcs --topology node", "node"},
		{`--lock dmcs --topology "node:1 core:2"`, "topology has 2 places, the job has 3 ranks"},
		{"--lock rmarw:TR=0", `TR is "0"`},
		{"--lock rmamcs:TL=0/5", `TL is "0/5": entry 1 is 0`},
		{"--lock dmcs --stop 1", "rank@step"},
		{"--lock dmcs --stop 1@x", "rank@step"},
		{"--lock dmcs --stop 3@1", "no rank 3"},
		{"--lock dmcs --stop 1@2+0", "rank@step"},
		{"--lock dmcs --replay ?", "?"},
		{"--lock dmcs --replay 1 --explore pct", "replay"},
	} {
		out, stderr, code := checkCommand(t, c.args)
		if code != exitUsage || !strings.Contains(stderr, c.says) || strings.Contains(stderr, "bad configuration") {
			t.Errorf("check %s: exit %d, %q, want it to say %q\n%s", c.args, code, stderr, c.says, out)
		}
	}
}
