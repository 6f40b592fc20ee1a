package plot

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/bench"
)

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

// Write draws all figures that the runs are enough for into a folder, as SVG and if
// wanted as PNG too, and the report over all of them, report.html. It returns the
// paths of what it wrote, the report's first. Notes are for the report's reader.
func Write(dir string, records []bench.Record, png bool, notes ...string) ([]string, error) {
	paths := []string{filepath.Join(dir, "report.html")}
	save := func(name string, b []byte) error {
		path := filepath.Join(dir, name)
		paths = append(paths, path)
		return os.WriteFile(path, b, 0o666)
	}
	r := report{Notes: notes, Runs: len(records)}
	for i, where := range places(records) {
		s := newSection(where, records)
		for _, f := range figuresOf(where, records) {
			svg, err := f.SVG()
			if err != nil {
				return nil, err
			}
			name := fmt.Sprintf("figure-%s", strings.NewReplacer(" ", "-", "%", "").Replace(f.ID))
			if i > 0 {
				name += fmt.Sprintf("-place%d", i+1)
			}
			if err := save(name+".svg", svg); err != nil {
				return nil, err
			}
			if png {
				b, err := f.PNG()
				if err != nil {
					return nil, err
				}
				if err := save(name+".png", b); err != nil {
					return nil, err
				}
			}
			s.Figures = append(s.Figures, newShown(f, svg))
		}
		r.Sections = append(r.Sections, s)
	}
	r.Commands = commands(records)
	f, err := os.Create(paths[0])
	if err != nil {
		return nil, err
	}
	if err := r.write(f); err != nil {
		f.Close()
		return nil, err
	}
	return paths, f.Close()
}

// report is what the page shows.
type report struct {
	Runs     int
	Notes    []string
	Sections []*section
	Commands []command
}

func (r *report) write(out io.Writer) error { return page.Execute(out, r) }

// section is the runs of one place.
type section struct {
	Where          string
	Simulated      bool
	Oversubscribed string // which runs had more ranks than cores
	About          []fact
	Constants      []bench.Constant
	Summaries      []summary
	Figures        []shown
}

type fact struct{ Name, Text string }

// shown is a Figure on the page.
type shown struct {
	SVG   template.HTML
	Table table
}

// table is the numbers of a Figure.
type table struct {
	Unit  string
	Head  []string
	Rows  [][]string
	Bands bool
}

// summary compares locks at the largest number of ranks of a workload.
type summary struct {
	Title string
	Rows  []summaryRow
}

type summaryRow struct {
	perSecond                                                            float64
	Share                                                                int // percent of the highest throughput in the table
	Lock, Writers, PerSecond, Mean, Median, P99, P999, Deviation, Remote string
}

type command struct {
	Line  string
	Runs  int
	First string
	Host  string
}

func newSection(where string, records []bench.Record) *section {
	s := &section{Where: where}
	var hosts, transports, machines, oversubscribed []string
	add := func(to *[]string, text string) {
		if text != "" && !slices.Contains(*to, text) {
			*to = append(*to, text)
		}
	}
	least, most, runs := 0, 0, 0
	var here []*bench.Result
	for i := range records {
		r := records[i].Result
		if records[i].Where != where {
			continue
		}
		here = append(here, r)
		runs++
		if least == 0 || r.Ranks < least {
			least = r.Ranks
		}
		most = max(most, r.Ranks)
		s.Simulated = s.Simulated || r.Simulated
		if r.About != "" {
			add(&machines, r.Machine+": "+r.About)
		} else {
			add(&machines, r.Machine)
		}
		if !r.Simulated {
			add(&hosts, records[i].Host.String())
			add(&transports, r.Transport)
		}
		if r.Oversubscribed {
			add(&oversubscribed, strconv.Itoa(r.Ranks))
		}
		if s.Constants == nil {
			s.Constants = r.Weak
		}
	}
	s.Oversubscribed = strings.Join(oversubscribed, ", ")
	span := strconv.Itoa(most)
	if least < most {
		span = fmt.Sprintf("%d to %d", least, most)
	}
	s.About = append(s.About, fact{"runs", strconv.Itoa(runs)}, fact{"ranks", span})
	for _, f := range []struct {
		name string
		list []string
	}{{"machine, simulated", machines}, {"transport", transports}, {"host", hosts}} {
		for _, text := range f.list {
			s.About = append(s.About, fact{f.name, text})
		}
	}
	s.Summaries = summaries(here)
	return s
}

// summaries has one table for each workload, at its largest number of ranks.
func summaries(results []*bench.Result) []summary {
	var out []summary
	for _, mode := range bench.Modes() {
		most := 0
		for _, r := range results {
			if r.Mode == mode {
				most = max(most, r.Ranks)
			}
		}
		s := summary{Title: fmt.Sprintf("At P = %d: %s", most, modeTitles[mode])}
		seen := map[string]bool{}
		for _, r := range results {
			key := fmt.Sprint(r.Lock, taskOf(r))
			if r.Mode != mode || r.Ranks != most || seen[key] {
				continue
			}
			seen[key] = true // the first of several runs of the same
			label := lockTitle(r) + locks(r)
			if r.Workload != "" {
				label += ", " + r.Workload
			}
			s.Rows = append(s.Rows, summaryRow{
				perSecond: r.PerSecond,
				Lock:      label, Writers: percent(r.Writers) + " %",
				PerSecond: number(r.PerSecond / 1e6), Mean: number(r.Mean / 1e3), Median: number(r.Median / 1e3),
				P99: number(r.P99 / 1e3), P999: number(r.P999 / 1e3),
				Deviation: number(100*r.ShareDeviation) + " %", Remote: number(r.RemoteOps),
			})
		}
		if len(s.Rows) == 0 {
			continue
		}
		best := slices.MaxFunc(s.Rows, func(a, b summaryRow) int { return cmp.Compare(a.perSecond, b.perSecond) }).perSecond
		for i := range s.Rows {
			if best > 0 {
				s.Rows[i].Share = int(math.Round(100 * s.Rows[i].perSecond / best))
			}
		}
		out = append(out, s)
	}
	return out
}

func newShown(f *Figure, svg []byte) shown {
	t := table{Unit: f.Y.Label, Head: []string{f.X.Label}}
	for _, s := range f.Series {
		t.Head = append(t.Head, s.Name)
	}
	for _, x := range f.X.Ticks {
		row := []string{number(x)}
		for _, s := range f.Series {
			cell := "–"
			for _, p := range s.Points {
				if p.X != x {
					continue
				}
				cell = number(p.Y)
				if p.Low < p.High {
					cell += fmt.Sprintf(" (%s to %s)", number(p.Low), number(p.High))
					t.Bands = true
				}
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	// The document is this package's own, whose texts the SVG writer has escaped.
	return shown{SVG: template.HTML(inline(svg, f.Title)), Table: t}
}

// commands lists the lines that made the runs.
func commands(records []bench.Record) []command {
	var out []command
	for i := range records {
		r := &records[i]
		n := slices.IndexFunc(out, func(c command) bool { return c.Line == r.Command && c.Host == r.Host.String() })
		if n < 0 {
			n = len(out)
			out = append(out, command{Line: r.Command, First: r.Made.Format("2006-01-02 15:04"), Host: r.Host.String()})
		}
		out[n].Runs++
	}
	return out
}

// number is a figure with four digits that say something.
func number(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
