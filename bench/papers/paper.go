package papers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rmalock/rmalock/bench"
)

// A Paper is a paper's experiments.
type Paper struct {
	Name        string // as in rmalock papers --paper
	Title       string
	Testbed     string // what its experiments ran on, and what they run on here
	Experiments []Experiment
}

// An Experiment is a command, and what the paper says of its runs.
type Experiment struct {
	ID     string // of the claims' group, unique in all papers
	Figure string // figure, table or section of the paper
	What   string // what runs, in a line
	// Flags are those of rmalock bench; Quick and Full are more of them for the two lengths. No
	// Full means Quick. Flags are separated by blanks; one with blanks is in single quotes.
	Flags, Quick, Full string
	// Each is flags of several commands that the experiment takes; nil for one.
	Each   []string
	Claims []Claim
}

// A Claim is a number or an order of a paper. Of or Holds is set.
type Claim struct {
	What  string // in a line
	Paper Range  // what the paper states, for Of
	Unit  string // of Paper: "x" for a factor, "%", or a unit
	Class Class
	// Of is the figure of the runs; NaN where they are not enough, as in a quick run.
	Of func(Runs) float64
	// Band is the same with weak constants at the ends of their ranges; nil for none.
	Band func(Runs) Range
	// Holds says whether the order holds, and what was seen.
	Holds func(Runs) (bool, string)
	// Gap is why the figure lies outside of the tolerance, and Known is where it then is. A claim
	// outside of both is red.
	Gap   string
	Known Range
	// Note is what else a reader is to know of a figure of Of that is met: of a one-sided one that
	// lies far from the paper's.
	Note string
}

// A Range is a number, or from the least to the greatest.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Exactly is the range of one number.
func Exactly(v float64) Range { return Range{v, v} }

// UpTo is the range of "up to v": the greatest of several figures.
func UpTo(v float64) Range { return Exactly(v) }

// has reports whether v is in the range.
func (r Range) has(v float64) bool { return r.Low <= v && v <= r.High }

// String is the number, or both.
func (r Range) String() string {
	if r.Low == r.High {
		return number(r.Low)
	}
	return number(r.Low) + " to " + number(r.High)
}

// number is a figure with three digits.
func number(v float64) string {
	if math.Abs(v) >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// All lists the papers.
func All() []Paper { return []Paper{dslr, declock, alock, cider, rmarw} }

// Select lists the experiments of a paper, or of all for "", with one of some figures: an ID, its
// beginning, or a figure's name in the paper; none for all. An error wraps bench.ErrConfig.
func Select(paper string, figures ...string) ([]Paper, error) {
	var out []Paper
	var names []string
	found := map[string]bool{}
	for _, p := range All() {
		names = append(names, p.Name)
		if paper != "" && paper != p.Name {
			continue
		}
		p.Experiments = slices.DeleteFunc(slices.Clone(p.Experiments), func(x Experiment) bool {
			keep := len(figures) == 0
			for _, f := range figures {
				if x.has(f) {
					keep, found[f] = true, true
				}
			}
			return !keep
		})
		if len(p.Experiments) > 0 {
			out = append(out, p)
		}
	}
	if paper != "" && !slices.Contains(names, paper) {
		return nil, fmt.Errorf("no paper is called %q; there are: %s: %w", paper, strings.Join(names, ", "), bench.ErrConfig)
	}
	for _, f := range figures {
		if !found[f] {
			return nil, fmt.Errorf("no experiment has figure %q; rmalock papers --list shows them: %w", f, bench.ErrConfig)
		}
	}
	return out, nil
}

// has reports whether an experiment is of a figure.
func (x *Experiment) has(figure string) bool {
	return strings.HasPrefix(x.ID, figure) || slices.Contains(strings.Split(x.Figure, ", "), figure)
}

// Lines are the flags of each command of an experiment, of a length.
func (x *Experiment) Lines(full bool) []string {
	more := x.Quick
	if full && x.Full != "" {
		more = x.Full
	}
	each := x.Each
	if len(each) == 0 {
		each = []string{""}
	}
	var out []string
	for _, e := range each {
		out = append(out, strings.Join(strings.Fields(x.Flags+" "+e+" "+more), " "))
	}
	return out
}

// Command is the lines that make its runs.
func (x *Experiment) Command(full bool) string {
	return "rmalock bench " + strings.Join(x.Lines(full), "\nrmalock bench ")
}

// Args splits flags at blanks outside of single quotes.
func Args(text string) []string {
	quoted := false
	out := strings.FieldsFunc(text, func(c rune) bool {
		if c == '\'' {
			quoted = !quoted
		}
		return c == ' ' && !quoted
	})
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "'", "")
	}
	return out
}
