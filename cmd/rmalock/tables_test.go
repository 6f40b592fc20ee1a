package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/bench/plot"
)

const performancePage = "../../docs/performance.md"

// figureTables are the tables of the page that show the points of a figure, with its
// unit and the lines of which ratios are wanted.
var figureTables = []struct {
	id, unit string
	ratios   [][2]string
}{
	{"3-lb", "us", [][2]string{{"RMA-MCS", "foMPI-Spin"}, {"RMA-MCS", "D-MCS"}}},
	{"4e", "M/s", nil},
	{"5-ecsb", "M/s", [][2]string{
		{"RMA-RW, F_W = 0.2 %", "foMPI-RW, F_W = 0.2 %"},
		{"RMA-RW, F_W = 2 %", "foMPI-RW, F_W = 2 %"},
		{"RMA-RW, F_W = 5 %", "foMPI-RW, F_W = 5 %"},
	}},
}

// TestFiguresTables: the tables of docs/performance.md that show a figure hold its points.
func TestFiguresTables(t *testing.T) {
	page, err := os.ReadFile(performancePage)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figureTables {
		text, err := os.ReadFile(filepath.Join(figuresDir, "figure-"+f.id+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var kept plot.Figure
		if err := json.Unmarshal(text, &kept); err != nil {
			t.Fatal(err)
		}
		want := "<!-- figure-" + f.id + ", by make figures -->\n" + figureTable(t, &kept, f.unit, f.ratios)
		mark, _, _ := strings.Cut(want, "\n")
		there := regexp.MustCompile(regexp.QuoteMeta(mark) + `\n(?:\|.*\n)*`)
		if n := len(there.FindAll(page, -1)); n != 1 {
			t.Fatalf("%s has %q %d times, want it once", performancePage, mark, n)
		}
		if *update {
			page = there.ReplaceAllLiteral(page, []byte(want))
		} else if got := string(there.Find(page)); got != want {
			t.Errorf("a table of %s is not that of the figure: make figures\n%s", performancePage, want)
		}
	}
	if *update {
		if err := os.WriteFile(performancePage, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// figureTable is a table with a column for each line of a figure, a column for each
// ratio of two lines, and a row for each number of ranks.
func figureTable(t *testing.T, f *plot.Figure, unit string, ratios [][2]string) string {
	t.Helper()
	line := func(name string) plot.Series {
		i := slices.IndexFunc(f.Series, func(s plot.Series) bool { return s.Name == name })
		if i < 0 {
			t.Fatalf("figure %s has no line %q", f.ID, name)
		}
		return f.Series[i]
	}
	at := func(s plot.Series, x float64) float64 {
		i := slices.IndexFunc(s.Points, func(p plot.Point) bool { return p.X == x })
		if i < 0 {
			t.Fatalf("figure %s: %s has no point at %g", f.ID, s.Name, x)
		}
		return s.Points[i].Y
	}
	head := []string{"ranks"}
	for _, s := range f.Series {
		head = append(head, s.Name+", "+unit)
	}
	for _, r := range ratios {
		head = append(head, r[0]+" / "+r[1][:strings.IndexAny(r[1]+",", ",")])
	}
	rows := [][]string{head}
	for _, x := range f.X.Ticks {
		row := []string{fmt.Sprint(x)}
		for _, s := range f.Series {
			row = append(row, threeDigits(at(s, x)))
		}
		for _, r := range ratios {
			row = append(row, threeDigits(at(line(r[0]), x)/at(line(r[1]), x)))
		}
		rows = append(rows, row)
	}
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return b.String()
}

// threeDigits is a number with at most two digits behind the point, and three in all
// unless it is greater: 0.91, 12.1, 131, 1,928.
func threeDigits(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	case v < 1000:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%d,%03d", int(v+0.5)/1000, int(v+0.5)%1000)
}
