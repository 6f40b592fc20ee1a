package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// A machine is where the comparison ran.
type machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"` // that this process may use
	Go    string `json:"go"`
}

func thisMachine() machine {
	m := machine{CPU: "unknown CPU", Cores: runtime.NumCPU(), Go: runtime.Version()}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if name := cpuModel(string(info)); name != "" {
			m.CPU = name
		}
	}
	return m
}

// cpuModel is the model name in the text of /proc/cpuinfo, or "".
func cpuModel(info string) string {
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (m *machine) oversubscribed(ranks int) bool { return ranks > m.Cores }

// A report is all that the program found.
type report struct {
	Machine         machine       `json:"machine"`
	DurationSeconds float64       `json:"duration_seconds"` // of each run
	Scenarios       []*comparison `json:"scenarios"`
}

// met reports whether all targets are met.
func (r *report) met() bool {
	for _, s := range r.Scenarios {
		for _, v := range s.Verdicts {
			if !v.Met {
				return false
			}
		}
	}
	return true
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *report) writeText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range r.about() {
		fmt.Fprintln(t, line)
	}
	for _, s := range r.Scenarios {
		fmt.Fprintf(t, "\n%s\n", s.heading())
		for _, row := range s.table() {
			fmt.Fprintf(t, "  %s\n", strings.Join(row, "\t"))
		}
		t.Flush()
	}
	fmt.Fprintln(t, "\nTargets")
	for _, row := range r.targets() {
		fmt.Fprintf(t, "  %s\n", strings.Join(row, "\t"))
	}
	return t.Flush()
}

func (r *report) writeMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# D-MCS against C on MPI-3 RMA\n\n")
	for _, line := range r.about() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	for _, s := range r.Scenarios {
		fmt.Fprintf(&b, "\n## %s\n\n", s.heading())
		markdown(&b, s.table())
	}
	b.WriteString("\n## Targets\n\n")
	markdown(&b, r.targets())
	_, err := io.WriteString(w, b.String())
	return err
}

// markdown writes a table whose first row is the heading.
func markdown(b *strings.Builder, rows [][]string) {
	for i, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(b, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
}

// about says where and how the runs were made.
func (r *report) about() []string {
	first := r.Scenarios[0]
	our := first.Contestants[0].Samples[0]
	c := first.Contestants[len(first.Contestants)-1].Samples[0]
	return []string{
		fmt.Sprintf("Machine: %s, %d cores, %s", r.Machine.CPU, r.Machine.Cores, r.Machine.Go),
		fmt.Sprintf("MPI of the C programs: %s, one-sided component %s", c.Library, c.Component),
		"Transport of ours: " + our.Transport,
		fmt.Sprintf("Runs of %g s, by turns; ratios are medians of the ratios within a round", r.DurationSeconds),
	}
}

// heading is a scenario in a line.
func (m *comparison) heading() string {
	h := fmt.Sprintf("%s: %d ranks, %s, %d runs each", m.Title, m.Ranks, m.unit(), len(m.Contestants[0].Runs))
	if m.Oversubscribed {
		h += ", oversubscribed (more ranks than cores)"
	}
	return h
}

func (m *comparison) unit() string {
	if m.far {
		return "ns per operation of rank 0 while rank 1 does the same"
	}
	if m.uncontended {
		return "ns per acquire and release by rank 0 alone"
	}
	return "acquires per second of all ranks"
}

// table has a row for each contestant.
func (m *comparison) table() [][]string {
	head := []string{"", "median", "best run", "worst run", "ours / it", "share", "GOGC", "NumGC"}
	if m.uncontended {
		head[5] = "best batch"
	}
	rows := [][]string{head}
	for _, c := range m.Contestants {
		worst := slices.Min(c.Runs)
		row := []string{c.Name, m.figure(c.Median), m.figure(c.Best), "", fmt.Sprintf("%.2f", c.Ratio), "", "", ""}
		if m.uncontended {
			worst = slices.Max(c.Runs)
			batch := c.Samples[0].Min
			for _, s := range c.Samples {
				batch = min(batch, s.Min)
			}
			row[5] = m.figure(batch)
		} else {
			low, high := shares(c.Samples)
			row[5] = fmt.Sprintf("%.0f to %.0f %%", 100*low, 100*high)
		}
		row[3] = m.figure(worst)
		if c.Program == ours {
			collections := int64(0)
			for _, s := range c.Samples {
				collections += s.NumGC
			}
			row[6], row[7] = c.Samples[0].GOGC, fmt.Sprint(collections)
		}
		rows = append(rows, row)
	}
	return rows
}

func (m *comparison) figure(v float64) string {
	if m.uncontended {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// shares are the acquires of the least and the most favoured rank of all runs,
// relative to the mean of the run.
func shares(samples []sample) (low, high float64) {
	low = 1
	for _, s := range samples {
		sum := int64(0)
		for _, n := range s.PerRank {
			sum += n
		}
		for _, n := range s.PerRank {
			share := float64(n) * float64(len(s.PerRank)) / float64(max(1, sum))
			low, high = min(low, share), max(high, share)
		}
	}
	return low, high
}

// targets has a row for each target.
func (r *report) targets() [][]string {
	rows := [][]string{{"", "target", "wanted", "measured", "95 % interval"}}
	for _, s := range r.Scenarios {
		for _, v := range s.Verdicts {
			verdict, wanted := "MISSED", "at least"
			if v.Met {
				verdict = "met"
			}
			if v.AtMost {
				wanted = "at most"
			}
			within := ""
			if v.High > 0 {
				within = fmt.Sprintf("%.3g to %.3g", v.Low, v.High)
			}
			rows = append(rows, []string{verdict, v.What, fmt.Sprintf("%s %.3g", wanted, v.Limit), fmt.Sprintf("%.3g", v.Measured), within})
		}
	}
	return rows
}
