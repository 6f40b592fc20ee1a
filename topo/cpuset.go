package topo

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// A Set is a set of processors, of ranks or of parts of a machine, written as
// Linux writes lists of processors: numbers and ranges in ascending order, as in
// "0-3,8". The empty Set says that nothing is known.
//
// A Set in this form comes from ParseSet and MakeSet; Build brings the Sets of its
// places into it. On text of another form the methods see the members up to the
// first mistake.
type Set string

// A run is the numbers from lo to hi.
type run struct{ lo, hi int }

// ParseSet reads a Set from text, with spaces and in any order. Numbers go from 0
// to 16777215. Errors wrap ErrTopology.
func ParseSet(text string) (Set, error) {
	s, err := parseSet(text)
	if err != nil {
		err = fmt.Errorf("topo: %w", err)
	}
	return s, err
}

// parseSet is ParseSet with errors that others put their words before.
func parseSet(text string) (Set, error) {
	var rs []run
	ascending := true
	if strings.TrimSpace(text) != "" {
		for field := range strings.SplitSeq(text, ",") {
			field = strings.TrimSpace(field)
			r, ok := parseRun(field)
			if !ok {
				return "", fmt.Errorf("list %s: %s is neither a number nor a range such as 0-3 of numbers up to %d: %w",
					quote(strings.TrimSpace(text)), quote(field), maxRanks-1, ErrTopology)
			}
			ascending = ascending && (len(rs) == 0 || rs[len(rs)-1].hi < r.lo)
			rs = append(rs, r)
		}
	}
	if !ascending {
		slices.SortFunc(rs, func(a, b run) int { return a.lo - b.lo })
	}
	return formatRuns(rs), nil
}

// MakeSet makes a Set of its members, in any order.
func MakeSet(members ...int) Set {
	if !slices.IsSorted(members) {
		members = slices.Sorted(slices.Values(members))
	}
	var rs []run
	for _, m := range members {
		if k := len(rs); k > 0 && m <= rs[k-1].hi+1 {
			rs[k-1].hi = m
		} else {
			rs = append(rs, run{m, m})
		}
	}
	return formatRuns(rs)
}

// Len is the number of members.
func (s Set) Len() int {
	n := 0
	for r := range s.runs() {
		n += r.hi - r.lo + 1
	}
	return n
}

// One is the only member of a Set that has exactly one.
func (s Set) One() (int, bool) {
	if strings.ContainsAny(string(s), "-,") {
		return 0, false
	}
	r, ok := parseRun(string(s))
	return r.lo, ok
}

// All yields the members in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for r := range s.runs() {
			for m := r.lo; m <= r.hi; m++ {
				if !yield(m) {
					return
				}
			}
		}
	}
}

func (s Set) runs() iter.Seq[run] {
	return func(yield func(run) bool) {
		if s == "" {
			return
		}
		for field := range strings.SplitSeq(string(s), ",") {
			if r, ok := parseRun(field); !ok || !yield(r) {
				return
			}
		}
	}
}

// parseRun reads "8" or "0-3".
func parseRun(text string) (run, bool) {
	a, b, isRange := strings.Cut(text, "-")
	lo, ok := parseNumber(a)
	if !isRange || !ok {
		return run{lo, lo}, ok
	}
	hi, ok := parseNumber(b)
	return run{lo, hi}, ok && lo <= hi
}

// parseNumber reads decimal digits below maxRanks.
func parseNumber(text string) (int, bool) {
	n := 0
	for i := range len(text) {
		d := text[i] - '0'
		if d > 9 {
			return 0, false
		}
		if n = n*10 + int(d); n >= maxRanks {
			return 0, false
		}
	}
	return n, text != ""
}

// formatRuns joins runs that are sorted by lo.
func formatRuns(rs []run) Set {
	var b []byte
	for i := 0; i < len(rs); {
		r := rs[i]
		for i++; i < len(rs) && rs[i].lo <= r.hi+1; i++ {
			r.hi = max(r.hi, rs[i].hi)
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(r.lo), 10)
		if r.hi > r.lo {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(r.hi), 10)
		}
	}
	return Set(b)
}

// quote is text for an error, cut to a readable length.
func quote(text string) string {
	if len(text) > 60 {
		return strconv.Quote(text[:60]) + "..."
	}
	return strconv.Quote(text)
}
