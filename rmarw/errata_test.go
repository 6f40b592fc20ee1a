package rmarw_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/topo"
)

// TestListingsAsPrinted: each hole of Listings 4 to 10 has a schedule, which
// docs/errata.md tells.
func TestListingsAsPrinted(t *testing.T) {
	doc, err := os.ReadFile("../docs/errata.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		printing
		plan     check.Plan
		want     error
		schedule string // the one in docs/errata.md
	}{
		{"no line sets done", printing{tr: 4}, check.Plan{Ranks: 1, Acquires: 1, MaxSteps: 3}, sim.ErrEndless, "3"},
		{"the node of the climber", printing{tr: 1, done: true}, check.Plan{Ranks: 2, Acquires: 1, Writers: 2}, sim.ErrDeadlock, "6a21"},
		{"no second check", printing{tr: 1, done: true}, check.Plan{Ranks: 2, Acquires: 1, Writers: 1}, check.ErrExclusion, "ba4"},
		{"the writer has gone", printing{tr: 1, done: true, check: true}, check.Plan{Ranks: 2, Acquires: 2, Writers: 1}, sim.ErrDeadlock, "29a6"},
		{"a reader resets WRITE", printing{tr: 1, done: true, check: true}, check.Plan{Ranks: 2, Acquires: 2, Writers: 1}, check.ErrExclusion, "1a4b2a4a2a"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			k, p := c.printing, c.plan
			machine := fmt.Sprintf("rank:%d", p.Ranks)
			if p.Writers > 1 {
				machine = "node:1 " + machine // two levels
			}
			k.tl, k.tw = 2, 2
			if k.topo, err = topo.Parse(machine); err != nil {
				t.Fatal(err)
			}
			p.Info = k.info()
			if p.MaxSteps == 0 {
				p.MaxSteps = 150
			}
			t.Logf("found: %s", found(t, p, c.want))
			events, f, err := check.Replay(p, c.schedule)
			if err != nil || !is(f, c.want) {
				t.Fatalf("schedule %s: %v, %v, want %v", c.schedule, f, err, c.want)
			}
			var b strings.Builder
			if err := sim.WriteTrace(&b, events); err != nil {
				t.Fatal(err)
			}
			for _, told := range []string{"`" + c.schedule + "`", f.Error(), strings.TrimRight(b.String(), "\n")} {
				if !strings.Contains(string(doc), told) {
					t.Errorf("docs/errata.md does not tell:\n%s", told)
				}
			}
		})
	}
}

// found is the shortest of the first schedules drawn in which an error comes up, each
// shortened.
func found(t *testing.T, p check.Plan, want error) (best string) {
	t.Helper()
	for seed, n := uint64(0), 0; n < 30 && seed < 5000; seed++ {
		for _, s := range []sim.Scheduler{sim.Random(seed, 0, 1), sim.PCT(seed, 3, 0, 1)} {
			r, err := check.Run(p, s)
			if err != nil {
				t.Fatal(err)
			}
			if !is(r.Failure, want) {
				continue
			}
			n++
			f, err := check.Shrink(p, r.Failure, 500)
			if err != nil {
				t.Fatal(err)
			}
			if is(f, want) && (best == "" || len(f.Schedule) < len(best)) {
				best = f.Schedule
			}
		}
	}
	if best == "" {
		t.Errorf("no schedule is found with %v", want)
	}
	return best
}

func is(f *sim.Failure, want error) bool { return f != nil && errors.Is(f, want) }
