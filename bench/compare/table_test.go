package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestTable: all rows, one result each; ours make twice what C makes.
func TestTable(t *testing.T) {
	status, out, errs := start(t, ourResult, "-rounds", "2")
	if status != allMet {
		t.Fatalf("status %d\n%s%s", status, out, errs)
	}
	for _, want := range []string{
		"MPI X, one-sided component sm", "Runs: 2 rounds of 0.01 s each",
		"F_W 0.2 % ", "F_W 25 % ", "F_W 100 % ", "    1 rank  |", "   2 ranks  |", "8 ranks on ",
		"c-mutex             C   |0.0001      *           |",
		"rmarw               Go  |0.0002      2           |",
		"mpi-win-lock is MPI_Win_lock called from Go", "the next owner recovers",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "\ndmcs "); n != 2 { // at F_W 100 %, and what it gives
		t.Errorf("%d lines begin with dmcs, want 2:\n%s", n, out)
	}
	for line := range strings.Lines(out) {
		if len(line) > 101 {
			t.Errorf("a line of %d columns: %s", len(line)-1, line)
		}
	}
	if n := strings.Count(errs, " of 174: "); n != 174 {
		t.Errorf("%d of 174 runs shown:\n%s", n, errs)
	}
}

// TestTableSelection: rows, ranks and shares of writers can be selected, with parameters.
func TestTableSelection(t *testing.T) {
	args := []string{"-locks", "rmarw:TR=7,c-rwlock-readers,dmcs", "-ranks", "2,3", "-writers", "0.5,1", "-rounds", "1"}
	status, out, errs := start(t, ourResult, append(args, "-json")...)
	var got table
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != allMet {
		t.Fatalf("status %d, %v\n%s", status, err, errs)
	}
	var cells []string
	for _, c := range got.Cells {
		cells = append(cells, c.Lock)
	}
	each := []string{"rmarw:TR=7", "c-rwlock-readers", "rmarw:TR=7", "c-rwlock-readers", "dmcs"}
	if !slices.Equal(cells, append(each, each...)) {
		t.Errorf("cells of %v", cells)
	}
	if c := got.Cells[0]; c.Ranks != 2 || c.Writers != 0.5 || c.ToBestC != 2 || c.BestC || !slices.Equal(c.Runs, []float64{200}) {
		t.Errorf("%+v", c)
	}
	if c := got.Cells[1]; !c.BestC || c.Least != 0.5 || c.Most != 1.5 {
		t.Errorf("%+v", c)
	}
	if l := got.Locks[1]; l.Language != "C" || l.Nodes || l.Death != waitersHang {
		t.Errorf("%+v", l)
	}
	status, out, _ = start(t, ourResult, append(args, "-markdown")...)
	if status != allMet || !strings.Contains(out, "| rmarw:TR=7 | Go | 0.0002 | 2 | 100-100 | 0.0002 | 2 | 100-100 |") {
		t.Errorf("status %d\n%s", status, out)
	}
	status, out, _ = start(t, ourResult, "-locks", "dmcs", "-ranks", "2", "-writers", "1", "-rounds", "1")
	if status != allMet || strings.Contains(out, "MPI X") || !strings.Contains(out, "dmcs                Go  |0.0002         100-100\n") {
		t.Errorf("without C: status %d\n%s", status, out)
	}
}

// TestCells: medians of the rounds, the best in C, and ratios within a round.
func TestCells(t *testing.T) {
	cells := []cell{
		{Lock: "slow", Writers: 1, Runs: []float64{1, 5, 3}, row: row{Language: inC}},
		{Lock: "fast", Writers: 1, Runs: []float64{8, 1, 4}, row: row{Language: inC}},
		{Lock: "other share", Writers: 0.5, Runs: []float64{9, 9, 9}, row: row{Language: inC}},
		{Lock: "ours", Writers: 1, Runs: []float64{2, 6, 2}, row: row{Language: inGo}},
	}
	summarizeCells(cells)
	var best []bool
	for _, c := range cells {
		best = append(best, c.BestC)
	}
	if !slices.Equal(best, []bool{false, true, true, false}) {
		t.Errorf("best in C: %v", best)
	}
	if c := cells[3]; c.PerSecond != 2 || math.Abs(c.ToBestC-0.5) > 1e-9 { // of 0.25, 6 and 0.5
		t.Errorf("%+v", c)
	}
}
