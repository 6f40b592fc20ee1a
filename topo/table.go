package topo

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// WriteRanks prints a table: for each rank its element at each level, numbered as
// by Element, and the processors that it may run on. Labels stand in brackets at
// discovered levels where they are not the numbers. Successive ranks whose columns
// stay the same or go up by one share a line: "0..3" against ranks 0-3 is one for
// each of them in order.
func (t *Topology) WriteRanks(w io.Writer) error {
	cols := t.columns()
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := "rank"
	for _, c := range cols {
		line += "\t" + c.name
	}
	fmt.Fprintln(tw, line)
	runs := false
	ways := make([]way, 2*len(cols))
	for r := 0; r < t.Size(); {
		end := t.stretch(cols, ways, r)
		line = strconv.Itoa(r)
		if end > r {
			line += "-" + strconv.Itoa(end)
		}
		for i, c := range cols {
			cell := between(c.value, ways[2*i], r, end)
			if c.label != nil {
				cell += " (" + between(c.label, ways[2*i+1], r, end) + ")"
			}
			line += "\t" + cell
			runs = runs || ways[2*i] == up || ways[2*i+1] == up
		}
		fmt.Fprintln(tw, line)
		r = end + 1
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if runs {
		_, err := fmt.Fprintln(w, "(a..b: one for each rank of the line, in order)")
		return err
	}
	return nil
}

// A column is what the table tells of a rank.
type column struct {
	name  string
	value func(rank int) string
	label func(rank int) string // nil for none
}

func (t *Topology) columns() []column {
	var cols []column
	for i := 1; i < len(t.levels); i++ {
		l := &t.levels[i]
		c := column{name: l.name, value: func(r int) string { return strconv.Itoa(int(l.of[r])) }}
		for e, label := range l.label {
			if !t.plain && label != strconv.Itoa(e) {
				c.label = func(r int) string { return l.label[l.of[r]] }
				break
			}
		}
		cols = append(cols, c)
	}
	if t.cpus != nil {
		cols = append(cols, column{name: "cpus", value: func(r int) string {
			if t.cpus[r] == "" {
				return "unknown"
			}
			return string(t.cpus[r])
		}})
	}
	return cols
}

// A way is how a column changes from rank to rank.
type way uint8

const (
	same way = iota
	up       // by one
	jump     // otherwise
)

// step is how a value changes.
func step(a, b string) way {
	switch {
	case a == b:
		return same
	case isNumber(a) && isNumber(b) && follows(a, b):
		return up
	}
	return jump
}

func isNumber(text string) bool {
	prefix, _ := number(text)
	return prefix == ""
}

// stretch finds the last rank of the line that begins at a rank, and the ways in
// which the columns, and after each its labels, change in it.
func (t *Topology) stretch(cols []column, ways []way, from int) int {
	clear(ways)
	for r := from; r+1 < t.Size(); r++ {
		for i := range ways {
			f := cols[i/2].value
			if i%2 == 1 {
				f = cols[i/2].label
			}
			if f == nil {
				continue
			}
			s := step(f(r), f(r+1))
			if r == from {
				ways[i] = s
			}
			if s == jump || s != ways[i] {
				if r == from {
					clear(ways)
				}
				return r
			}
		}
	}
	return t.Size() - 1
}

// between is the cell of the ranks from a to b.
func between(f func(int) string, w way, a, b int) string {
	if w == up {
		return f(a) + ".." + f(b)
	}
	return f(a)
}
