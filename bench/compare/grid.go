package main

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// A grid is what the table shows: locks x ranks x shares of writers (F_W), in the
// workload ecsb.
type grid struct {
	rows    []row
	ranks   []int
	writers []float64
	rounds  int
}

// A cell is a lock at a number of ranks and a share of writers.
type cell struct {
	Lock      string    `json:"lock"`
	Ranks     int       `json:"ranks"`
	Writers   float64   `json:"writers"`
	PerSecond float64   `json:"acquires_per_second"` // median of the rounds
	ToBestC   float64   `json:"to_best_in_c"`        // median of the ratios in a round; 0 without a row in C
	BestC     bool      `json:"best_in_c"`           // no row in C has a greater median
	Least     float64   `json:"least_share"`         // of the rank with the fewest acquires in any round, of the mean of the round
	Most      float64   `json:"most_share"`
	Runs      []float64 `json:"runs"` // acquires per second

	row     row
	samples []sample
}

// count is the number of jobs.
func (g *grid) count() int {
	n := 0
	for _, c := range g.cells(1) {
		if c.row.at(c.Writers) {
			n++
		}
	}
	return n * len(g.ranks) * g.rounds
}

// cells are those of a number of ranks, without results.
func (g *grid) cells(ranks int) []cell {
	var cells []cell
	for _, w := range g.writers {
		for _, r := range g.rows {
			if r.at(w) {
				cells = append(cells, cell{Lock: r.Lock, Ranks: ranks, Writers: w, row: r})
			}
		}
	}
	return cells
}

// measure runs all cells of a number of ranks by turns, each round in another order.
func (g *grid) measure(ctx context.Context, l *launcher, progress io.Writer) (*table, error) {
	t := &table{Machine: l.machine, DurationSeconds: l.duration.Seconds(), Rounds: g.rounds, Locks: g.rows, grid: g}
	done, all := 0, g.count()
	for _, ranks := range g.ranks {
		cells := g.cells(ranks)
		for round := range g.rounds {
			for i := range cells {
				c := &cells[(round+i)%len(cells)]
				done++
				fmt.Fprintf(progress, "%d of %d: %d ranks, F_W %g %%, %s\n", done, all, ranks, 100*c.Writers, c.Lock)
				got, err := l.run(ctx, c.row.job(l, ranks, c.Writers))
				if err != nil {
					return nil, err
				}
				c.Runs = append(c.Runs, got.PerSecond)
				c.samples = append(c.samples, got)
			}
		}
		summarizeCells(cells)
		t.Cells = append(t.Cells, cells...)
	}
	return t, nil
}

// summarizeCells fills in the figures that follow from the runs.
func summarizeCells(cells []cell) {
	best := map[float64]*cell{} // of C, by share of writers
	for i := range cells {
		c := &cells[i]
		c.PerSecond = median(c.Runs)
		c.Least, c.Most = shares(c.samples)
		if b := best[c.Writers]; c.row.Language == inC && (b == nil || c.PerSecond > b.PerSecond) {
			best[c.Writers] = c
		}
	}
	for i := range cells {
		c := &cells[i]
		if b := best[c.Writers]; b != nil {
			c.ToBestC, c.BestC = median(ratios(c.Runs, b.Runs)), b == c
		}
	}
}

// find is the cell of a lock, or nil.
func (t *table) find(lock string, ranks int, writers float64) *cell {
	i := slices.IndexFunc(t.Cells, func(c cell) bool { return c.Lock == lock && c.Ranks == ranks && c.Writers == writers })
	if i < 0 {
		return nil
	}
	return &t.Cells[i]
}
