package papers_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/bench/papers"
)

// TestClasses: each class accepts what it says and nothing beyond.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		class    papers.Class
		unit     string
		paper    papers.Range
		in, out  []float64
		min, max float64 // of the band; 0 for none
	}{
		{papers.E, "", papers.Exactly(2), []float64{2, 1.95, 2.05}, []float64{1.8, 2.2}, 0, 0},
		{papers.R, "x", papers.Range{Low: 1.8, High: 2.5}, []float64{1.4, 2, 3.1}, []float64{1.3, 3.2}, 0, 0},
		{papers.R, "x", papers.Exactly(2), []float64{4}, nil, 1.9, 4},
		{papers.K, "x", papers.Exactly(40), []float64{20, 400}, []float64{19}, 0, 0},
		{papers.O, "x", papers.Exactly(24), []float64{24, 170}, []float64{23}, 0, 0},
		{papers.T, "x", papers.Exactly(10), []float64{5, 20}, []float64{4, 21}, 0, 0},
		{papers.T, "%", papers.Exactly(-90), []float64{-99, -81}, []float64{-79}, 0, 0},
		{papers.A, "%", papers.Range{High: 15}, []float64{0, 15}, []float64{16}, 0, 0},
	} {
		for i, values := range [][]float64{c.in, c.out} {
			for _, v := range values {
				claim := papers.Claim{Paper: c.paper, Unit: c.unit, Class: c.class, Of: func(papers.Runs) float64 { return v }}
				if c.max > 0 {
					claim.Band = func(papers.Runs) papers.Range { return papers.Range{Low: c.min, High: c.max} }
				}
				want := []papers.Verdict{papers.Met, papers.Red}[i]
				if got := judge(claim, nil).Verdict; got != want {
					t.Errorf("class %c, paper %v, ours %v: %s, want %s", c.class, c.paper, v, got, want)
				}
			}
		}
	}
}

// judge is the row of one claim.
func judge(c papers.Claim, err error) papers.Row {
	x := papers.Experiment{ID: "X", Claims: []papers.Claim{c}}
	return x.Judge("a paper", false, nil, err)[0]
}

// TestGap: a figure outside of the tolerance has a gap where its reason says that it lies, and
// is red elsewhere, as is one whose run failed.
func TestGap(t *testing.T) {
	claim := func(v float64) papers.Claim {
		return papers.Claim{Paper: papers.Exactly(10), Class: papers.R, Of: func(papers.Runs) float64 { return v },
			Gap: "the model has no caches", Known: papers.Range{Low: 3, High: 4}}
	}
	for v, want := range map[float64]papers.Verdict{3.5: papers.Gap, 2: papers.Red, 9: papers.Met, math.NaN(): papers.Skipped} {
		if got := judge(claim(v), nil).Verdict; got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	noted := claim(9)
	noted.Note = "one-sided"
	if r := judge(noted, nil); r.Verdict != papers.Met || r.Reason != "one-sided" {
		t.Errorf("a figure with a note: %s, %q", r.Verdict, r.Reason)
	}
	if r := judge(claim(9), errors.New("it hangs")); r.Verdict != papers.Red || r.Reason != "it hangs" {
		t.Errorf("a run that failed: %s, %q", r.Verdict, r.Reason)
	}
	order := func(ok bool, seen, gap string) papers.Verdict {
		return judge(papers.Claim{Class: papers.S, Holds: func(papers.Runs) (bool, string) { return ok, seen }, Gap: gap}, nil).Verdict
	}
	if a, b, c, d := order(true, "1 < 2", ""), order(false, "2 < 1", ""), order(false, "2 < 1", "why"), order(false, "", ""); a != papers.Met || b != papers.Red || c != papers.Gap || d != papers.Skipped {
		t.Errorf("orders: %s %s %s %s", a, b, c, d)
	}
}

// TestBest: of several runs of a lock the one with the highest throughput counts, also for
// latencies.
func TestBest(t *testing.T) {
	runs := papers.Runs{
		{Mode: bench.Clients, Lock: "a:tries=1", VisitsPerSecond: 1, Mean: 10},
		{Mode: bench.Clients, Lock: "a:tries=5", VisitsPerSecond: 3, Mean: 30},
		{Mode: bench.Clients, Lock: "ab", VisitsPerSecond: 6, Mean: 5},
	}
	if v := papers.Over(papers.Throughput, "ab", "a")(runs); v != 2 {
		t.Errorf("throughput is %v times, want 2", v)
	}
	if v := papers.Over(papers.Mean, "a", "ab")(runs); v != 6 {
		t.Errorf("mean is %v times, want 6", v)
	}
	if v := papers.Over(papers.Mean, "c", "ab")(runs); !math.IsNaN(v) {
		t.Errorf("a lock without runs has %v, want NaN", v)
	}
}

// TestTable: identifiers are unique, and each claim says what it needs to.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range papers.All() {
		for _, x := range p.Experiments {
			if seen[x.ID] || x.ID == "" || x.Figure == "" || x.What == "" || len(x.Claims) == 0 {
				t.Errorf("%s: experiment %q is there twice, or says too little", p.Name, x.ID)
			}
			seen[x.ID] = true
			for _, c := range x.Claims {
				if c.What == "" || (c.Of == nil) == (c.Holds == nil) || !strings.ContainsRune("ERKOTSA", rune(c.Class)) {
					t.Errorf("%s: claim %q says too little", x.ID, c.What)
				}
				if (c.Gap == "") != (c.Known == papers.Range{}) && c.Of != nil {
					t.Errorf("%s: claim %q has a gap without its range, or a range without its reason", x.ID, c.What)
				}
			}
		}
	}
}

// TestPages: the pages hold each claim and each reason.
func TestPages(t *testing.T) {
	x := papers.Experiment{ID: "X1", Figure: "9", What: "A run", Flags: "--lock 'a:b=1 per node'", Claims: []papers.Claim{
		{What: "a over b", Paper: papers.Exactly(2), Unit: "x", Class: papers.R, Of: func(papers.Runs) float64 { return 4 },
			Gap: "B waits. A does not.", Known: papers.Range{Low: 3, High: 5}},
		{What: "a over c", Paper: papers.Exactly(2), Unit: "x", Class: papers.R, Of: func(papers.Runs) float64 { return 4 },
			Gap: "A does not. C waits 1.5 µs.", Known: papers.Range{Low: 3, High: 5}},
	}}
	list := []papers.Paper{{Name: "p", Title: "P", Testbed: "A table.", Experiments: []papers.Experiment{x}}}
	rows := x.Judge("p", false, nil, nil)
	var md, html, text bytes.Buffer
	if err := errors.Join(papers.WriteMarkdown(&md, list, rows), papers.WriteHTML(&html, list, rows, nil), papers.WriteText(&text, rows)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"### X1: Figure 9", "| a over b | 2x | 4x | 2 | R | gap |", "B waits.\nA does not.", "rmalock bench --lock 'a:b=1 per node'"} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("the page has no %q:\n%s", want, md.String())
		}
	}
	if n := strings.Count(md.String(), "A does not."); n != 1 || !strings.Contains(md.String(), "\n\nC waits 1.5 µs.") {
		t.Errorf("a statement of two reasons is there %d times, or the rest of the second is not:\n%s", n, md.String())
	}
	if !strings.Contains(html.String(), "B waits.") || !strings.Contains(text.String(), "2 with a gap") {
		t.Errorf("the other pages:\n%s\n%s", html.String(), text.String())
	}
	if args := papers.Args(x.Lines(false)[0]); len(args) != 2 || args[1] != "a:b=1 per node" {
		t.Errorf("the flags are %q", args)
	}
}
