package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A table is the result of a grid.
type table struct {
	Machine         machine `json:"machine"`
	DurationSeconds float64 `json:"duration_seconds"` // of each run
	Rounds          int     `json:"rounds"`
	Locks           []row   `json:"locks"`
	Cells           []cell  `json:"cells"`

	grid *grid
}

func (t *table) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(t)
}

// about says how the runs were made and how the table is to be read.
func (t *table) about() []string {
	lines := []string{fmt.Sprintf("Machine: %s, %d cores, %s", t.Machine.CPU, t.Machine.Cores, t.Machine.Go)}
	for _, c := range t.Cells {
		if c.row.Language == inC {
			lines = append(lines, fmt.Sprintf("MPI of the C programs: %s, one-sided component %s", c.samples[0].Library, c.samples[0].Component))
			break
		}
	}
	return append(lines,
		fmt.Sprintf("Runs: %d rounds of %g s each, all rows by turns; empty critical section (ecsb)", t.Rounds, t.DurationSeconds),
		"M/s: million acquires of all ranks per second, median of the rounds",
		"/ C: ratio to the best row in C (*) of the column, median of the ratios in a round",
		"shares: fewest and most acquires of a rank in a round, in % of the mean",
	)
}

// notes say what must be known to compare rows.
func (t *table) notes() []string {
	var notes []string
	has := func(lock string) bool { return len(t.Cells) > 0 && t.find(lock, t.Cells[0].Ranks, 1) != nil }
	if has("mpi-win-lock") {
		notes = append(notes, "mpi-win-lock is MPI_Win_lock called from Go: each call crosses from Go to C and back.",
			"c-win-lock is the same lock in a C program.")
	}
	if has("c-mutex") || has("c-mutex-robust") {
		notes = append(notes, "A mutex excludes readers too.")
	}
	return notes
}

func ranksTitle(ranks, cores int) string {
	s := fmt.Sprintf("%d ranks", ranks)
	if ranks == 1 {
		s = "1 rank"
	}
	if ranks > cores {
		s += fmt.Sprintf(" on %d cores", cores)
	}
	return s
}

// figures are the texts of a cell; empty ones where there is none.
func (c *cell) figures() (perSecond, ratio, share string) {
	if c == nil {
		return "", "", ""
	}
	perSecond = digits(c.PerSecond/1e6, 3)
	switch {
	case c.BestC:
		ratio = "*"
	case c.ToBestC > 0:
		ratio = digits(c.ToBestC, 2)
	}
	if c.Ranks > 1 {
		share = fmt.Sprintf("%.0f-%.0f", 100*c.Least, 100*c.Most)
	}
	return perSecond, ratio, share
}

// digits are the first n of v, or those down to the fourth behind the point.
func digits(v float64, n int) string {
	if v < 0.01 {
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf("%.*g", n, v)
}

// writeText writes lines of at most 100 columns for three numbers of ranks.
func (t *table) writeText(w io.Writer) error {
	var b strings.Builder
	for _, line := range t.about() {
		fmt.Fprintln(&b, line)
	}
	width := 18
	for _, r := range t.Locks {
		width = max(width, len(r.Lock))
	}
	line := func(cells ...string) {
		fmt.Fprintln(&b, strings.TrimRight(strings.Join(cells, ""), " "))
	}
	for _, writers := range t.grid.writers {
		ranks := []string{fmt.Sprintf("%-*s  in", width, fmt.Sprintf("F_W %g %%", 100*writers))}
		head := []string{fmt.Sprintf("%-*s    ", width, "")}
		for _, n := range t.grid.ranks {
			ranks = append(ranks, fmt.Sprintf("  |%22s", ranksTitle(n, t.Machine.Cores)))
			head = append(head, fmt.Sprintf("  |%6s%7s%9s", "M/s", "/ C", "shares"))
		}
		fmt.Fprintln(&b)
		line(ranks...)
		line(head...)
		for _, r := range t.Locks {
			if !r.at(writers) {
				continue
			}
			cells := []string{fmt.Sprintf("%-*s  %-2s", width, r.Lock, r.Language)}
			for _, n := range t.grid.ranks {
				perSecond, ratio, share := t.find(r.Lock, n, writers).figures()
				cells = append(cells, fmt.Sprintf("  |%6s%7s%9s", perSecond, ratio, share))
			}
			line(cells...)
		}
	}
	fmt.Fprintln(&b)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range t.guarantees() {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	tw.Flush()
	fmt.Fprintln(&b)
	for _, note := range t.notes() {
		fmt.Fprintln(&b, note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *table) writeMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Locks on one node\n\n")
	for _, line := range t.about() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	for _, writers := range t.grid.writers {
		fmt.Fprintf(&b, "\n## F_W %g %%\n\n", 100*writers)
		rows := [][]string{{"", "in"}}
		for _, n := range t.grid.ranks {
			rows[0] = append(rows[0], ranksTitle(n, t.Machine.Cores)+": M/s", "/ C", "shares")
		}
		for _, r := range t.Locks {
			if !r.at(writers) {
				continue
			}
			cells := []string{r.Lock, r.Language}
			for _, n := range t.grid.ranks {
				perSecond, ratio, share := t.find(r.Lock, n, writers).figures()
				cells = append(cells, perSecond, ratio, share)
			}
			rows = append(rows, cells)
		}
		markdown(&b, rows)
	}
	b.WriteString("\n## What a lock gives\n\n")
	markdown(&b, t.guarantees())
	b.WriteString("\n")
	for _, note := range t.notes() {
		fmt.Fprintf(&b, "%s\n", note)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// guarantees says what each lock gives beside mutual exclusion, and what it does not.
func (t *table) guarantees() [][]string {
	rows := [][]string{{"", "in", "fairness", "other nodes", "its holder dies"}}
	for _, r := range t.Locks {
		nodes := "no"
		if r.Nodes {
			nodes = "yes"
		}
		rows = append(rows, []string{r.Lock, r.Language, r.Fairness, nodes, r.Death})
	}
	return rows
}
