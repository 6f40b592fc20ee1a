package main_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/bench/plot"
)

var update = flag.Bool("update", false, "write docs/figures anew (make figures)")

const figuresDir = "../../docs/figures"

// docFigures are the figures of docs/figures and the sweeps behind them. Those at the
// first of the numbers of ranks are made in each test.
var docFigures = []struct {
	id, args string
	ranks    []string
}{
	{"3-lb", "--figure 3 --mode lb", []string{"16", "64", "256", "1024"}},
	{"4e", "--figure 4e", []string{"64", "256", "1024"}},
	{"5-ecsb", "--figure 5 --mode ecsb", []string{"16", "64", "256", "1024"}},
}

// TestFigures: the figures of docs/figures are drawn from the JSON files beside them,
// and these hold what the program says now. Virtual time is the same on all machines.
func TestFigures(t *testing.T) {
	var names []string
	for _, f := range docFigures {
		path := filepath.Join(figuresDir, "figure-"+f.id)
		names = append(names, path+".json", path+".svg")
		if *update {
			writeFigure(t, path, sweep(t, f.args, f.ranks))
		}
		text, err := os.ReadFile(path + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var kept plot.Figure
		if err := json.Unmarshal(text, &kept); err != nil {
			t.Fatalf("%s.json: %v", path, err)
		}
		want, err := kept.SVG()
		if err != nil {
			t.Fatal(err)
		}
		if svg, err := os.ReadFile(path + ".svg"); err != nil || !bytes.Equal(svg, want) {
			t.Errorf("%s.svg is not what is drawn of %s.json (%v): make figures", path, filepath.Base(path), err)
		}
		if now := sweep(t, f.args, f.ranks[:1]); older(t, path, &kept, now) {
			t.Errorf("%s.json is older than the code: make figures", path)
		}
	}
	there, err := filepath.Glob(filepath.Join(figuresDir, "*"))
	if err != nil || !slices.Equal(there, names) {
		t.Errorf("docs/figures holds %v, want %v (%v)", there, names, err)
	}
}

// sweep is the figure of a sweep in virtual time.
func sweep(t *testing.T, args string, ranks []string) *plot.Figure {
	t.Helper()
	dir := t.TempDir()
	line := append([]string{"bench", "--backend", "sim", "--band=false", "--plot", dir, "--ranks", strings.Join(ranks, ",")}, strings.Fields(args)...)
	rmalock(t, line...).good(t)
	store, err := bench.OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	figures := plot.Figures(store.Records())
	if len(figures) != 1 {
		t.Fatalf("%s: %d figures, want 1", args, len(figures))
	}
	return figures[0]
}

func writeFigure(t *testing.T, path string, f *plot.Figure) {
	t.Helper()
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	svg, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{path + ".json": append(text, '\n'), path + ".svg": svg} {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// older reports whether a figure differs from one of fewer ranks that was made now.
func older(t *testing.T, path string, kept, now *plot.Figure) bool {
	t.Helper()
	differs := false
	if len(kept.Series) != len(now.Series) || kept.Title != now.Title || kept.Where != now.Where {
		t.Logf("%s: %q, %q with %d lines, now %q, %q with %d", path, kept.Title, kept.Where, len(kept.Series), now.Title, now.Where, len(now.Series))
		return true
	}
	for i, s := range now.Series {
		for _, p := range s.Points {
			at := slices.IndexFunc(kept.Series[i].Points, func(q plot.Point) bool { return q.X == p.X })
			if at < 0 || kept.Series[i].Name != s.Name {
				t.Logf("%s: no point of %q at %g ranks", path, s.Name, p.X)
				differs = true
			} else if q := kept.Series[i].Points[at]; math.Abs(q.Y-p.Y) > 1e-9*p.Y {
				t.Logf("%s: %s at %g ranks is %.4g, the program says %.4g", path, s.Name, p.X, q.Y, p.Y)
				differs = true
			}
		}
	}
	return differs
}
