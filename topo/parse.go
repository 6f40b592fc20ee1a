package topo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parse makes a topology from a synthetic description in the manner of hwloc:
// levels from the outside in, each with its number of elements per element of the
// level before, as in
//
//	rack:2 node:4 numa:2 core:4
//
// which is 64 cores. The machine stands before the first level and may be written
// as machine:1. A field rank:4 (or pu:4) after the levels gives each innermost
// element 4 ranks instead of one.
//
// Ranks are dealt to the innermost elements one after the other. A last field
// by:node deals them round robin to the nodes, as mpirun --map-by node does: ranks
// 0, 1, 2 and so on each go to the next node, to its first place that is free. The
// name is that of any level written before.
//
// Names are free, but each may occur once, and rack or switch, node, group or
// package, numa, cache and core must come in this order. Errors wrap ErrTopology
// and name the field.
func Parse(text string) (*Topology, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return nil, fmt.Errorf("topo: the description is empty; write for example \"node:2 core:4\", or \"rank:8\" for no levels: %w", ErrTopology)
	}
	names, counts := []string{"machine"}, []int{1}
	ranks := 1
	by := -1 // level to which ranks are dealt round robin
	for i, field := range fields {
		fail := func(format string, args ...any) (*Topology, error) {
			return nil, fmt.Errorf("topo: level %d %s: %s: %w", i+1, quote(field), fmt.Sprintf(format, args...), ErrTopology)
		}
		name, number, ok := strings.Cut(field, ":")
		if !ok {
			return fail("want a name and a count, such as %q", "numa:2")
		}
		if !validName(name) {
			return fail("a name is a lower-case letter and then letters, digits, '-' or '_'")
		}
		if name == "by" {
			if by = slices.Index(names, number); by < 0 {
				return fail("no level %s is written before; there are: %s", quote(number), strings.Join(names, ", "))
			}
			if i != len(fields)-1 {
				return fail("how ranks are dealt comes last")
			}
			continue
		}
		count, ok := parseNumber(number)
		if !ok || count == 0 {
			return fail("count must be a positive integer below %d", maxRanks)
		}
		if ranks *= count; ranks > maxRanks {
			return fail("the counts multiply to more than %d ranks", maxRanks)
		}
		switch {
		case name == "rank" || name == "pu":
			if i != len(fields)-1 && (i != len(fields)-2 || !strings.HasPrefix(fields[i+1], "by:")) {
				return fail("ranks per element come after the levels, and only by: after them")
			}
			continue
		case name == "machine" && i == 0 && count == 1:
			continue
		case name == "machine":
			return fail("there is one machine, and it comes first")
		case slices.Contains(names, name):
			return fail("a level of that name has come before; give each level a name of its own")
		case len(names) == maxLevels:
			return fail("more than %d levels", maxLevels)
		}
		if outer := misplaced(names, name); outer != "" {
			return fail("a %s cannot be inside a %s; write levels from the outermost to the innermost", name, outer)
		}
		names, counts = append(names, name), append(counts, count)
	}
	levels := make([]layer, len(names))
	per := ranks
	for i, name := range names {
		per /= counts[i]
		levels[i] = dealt(name, ranks, per, counts[i])
	}
	if by > 0 {
		turns := len(levels[by].label)
		for i := range levels {
			levels[i].deal(turns)
		}
	}
	t := assemble(levels)
	t.plain = true
	return t, nil
}

// dealt is the layer of a level whose elements have per consecutive ranks each, and lie count
// by count in the elements around them.
func dealt(name string, ranks, per, count int) layer {
	l := layer{name: name, of: make([]int32, ranks), label: make([]string, ranks/per)}
	for r := range l.of {
		l.of[r] = int32(r / per)
	}
	labels := make([]string, count)
	for k := range labels {
		labels[k] = strconv.Itoa(k)
	}
	for e := range l.label {
		l.label[e] = labels[e%count]
	}
	return l
}

// deal moves ranks that lie one after the other in a number of equal elements to
// them in turns.
func (l *layer) deal(turns int) {
	was := l.of
	key := make([]int32, len(was))
	for r := range key {
		key[r] = was[r%turns*(len(was)/turns)+r/turns]
	}
	dealt, lows := split(nil, key)
	for e, r := range lows {
		dealt.label[e] = l.label[key[r]]
	}
	l.of, l.label = dealt.of, dealt.label
}

// reserved reports whether a name means something else than a level.
func reserved(name string) bool { return name == "rank" || name == "pu" || name == "by" }

func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z':
		case i > 0 && (c >= '0' && c <= '9' || c == '-' || c == '_'):
		default:
			return false
		}
	}
	return name != ""
}

// depth says how far inside the machine the levels of known names are.
var depth = map[string]int{
	"machine": 0, "rack": 1, "switch": 1, "node": 2, "group": 3, "package": 3, "numa": 4, "cache": 5, "core": 6,
}

// AboveNode reports whether a level of a name can be above the nodes: a valid name, and not
// that of a level which has its place elsewhere.
func AboveNode(name string) bool {
	d, known := depth[name]
	return validName(name) && !reserved(name) && (!known || d == depth["rack"])
}

// misplaced finds a level among names that cannot be outside name.
func misplaced(names []string, name string) string {
	d, known := depth[name]
	for _, outer := range names {
		if o, ok := depth[outer]; known && ok && o > d {
			return outer
		}
	}
	return ""
}
