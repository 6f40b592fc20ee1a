package papers

import (
	"fmt"
	"math"
)

// A Class is a tolerance; the package comment has them.
type Class byte

// The classes.
const (
	E Class = 'E' // exact
	R Class = 'R' // ratio
	K Class = 'K' // collapse
	O Class = 'O' // one-sided
	T Class = 'T' // tail
	S Class = 'S' // shape
	A Class = 'A' // abort, availability
)

// A Verdict says how a figure stands to the paper.
type Verdict string

// The verdicts.
const (
	Met     Verdict = "met"     // within the tolerance
	Gap     Verdict = "gap"     // outside, where the reason says
	Red     Verdict = "red"     // outside, or not run to its end
	Skipped Verdict = "not run" // the runs are not enough, as in a quick run
)

// A Row is a claim with what the runs made of it.
type Row struct {
	Paper      string  `json:"paper"`
	ID         string  `json:"id"`
	Figure     string  `json:"figure"`
	Experiment string  `json:"experiment"`
	Command    string  `json:"command"`
	Claim      string  `json:"claim"`
	Class      string  `json:"class"`
	Stated     string  `json:"paper_value,omitempty"`
	Ours       string  `json:"ours,omitempty"`
	Value      float64 `json:"value,omitempty"`
	Band       *Range  `json:"band,omitempty"`
	Ratio      float64 `json:"ratio,omitempty"` // ours over the paper's, 1 within its range
	Verdict    Verdict `json:"verdict"`
	Reason     string  `json:"reason,omitempty"` // of a gap; a note; the error of a run that failed
}

// Judge makes the rows of an experiment of its runs, or of the error of one.
func (x *Experiment) Judge(paper string, full bool, runs Runs, failed error) []Row {
	var rows []Row
	for _, c := range x.Claims {
		row := Row{Paper: paper, ID: x.ID, Figure: x.Figure, Experiment: x.What, Command: x.Command(full), Claim: c.What, Class: string(c.Class)}
		if c.Of != nil {
			row.Stated = c.Paper.String() + unit(c.Unit)
		}
		if failed != nil {
			row.Verdict, row.Reason = Red, failed.Error()
		} else {
			c.judge(&row, runs)
		}
		rows = append(rows, row)
	}
	return rows
}

// unit is a unit after a number.
func unit(u string) string {
	if u == "" || u == "x" {
		return u
	}
	return " " + u
}

// judge fills in what the runs say.
func (c *Claim) judge(row *Row, runs Runs) {
	if c.Holds != nil {
		ok, seen := c.Holds(runs)
		row.Ours = seen
		switch {
		case seen == "":
			row.Verdict = Skipped
		case ok:
			row.Verdict = Met
		case c.Gap != "":
			row.Verdict, row.Reason = Gap, c.Gap
		default:
			row.Verdict = Red
		}
		return
	}
	v := c.Of(runs)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		row.Verdict = Skipped
		return
	}
	row.Value, row.Ours, row.Ratio = v, number(v)+unit(c.Unit), c.Paper.ratio(v)
	band := Exactly(v)
	if c.Band != nil {
		if b := c.Band(runs); b.Low < b.High {
			row.Band, band = &b, b
			row.Ours += fmt.Sprintf(" (%s)", b)
		}
	}
	switch {
	case c.within(v, band):
		row.Verdict, row.Reason = Met, c.Note
	case c.Gap != "" && c.Known.has(v):
		row.Verdict, row.Reason = Gap, c.Gap
	case c.Gap != "":
		row.Verdict, row.Reason = Red, fmt.Sprintf("outside of the known gap, %s: %s", c.Known, c.Gap)
	default:
		row.Verdict = Red
	}
}

// ratio is v over the nearest of what the paper states.
func (r Range) ratio(v float64) float64 {
	switch {
	case v < r.Low && r.Low != 0:
		return v / r.Low
	case v > r.High && r.High != 0:
		return v / r.High
	}
	return 1
}

// within reports whether a figure is within the tolerance.
func (c *Claim) within(v float64, band Range) bool {
	p := c.Paper
	switch c.Class {
	case E:
		return v >= 0.95*p.Low && v <= 1.05*p.High
	case R:
		return v >= 0.75*p.Low && v <= 1.25*p.High || band.Low <= p.High && band.High >= p.Low
	case K:
		return v >= p.Low/2
	case O:
		return v >= p.Low
	case T:
		if c.Unit == "%" {
			return v >= p.Low-10 && v <= p.High+10
		}
		return v >= p.Low/2 && v <= p.High*2
	case S, A:
	}
	return p.has(v)
}
