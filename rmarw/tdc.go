package rmarw

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/topo"
)

// A TDC says how many ranks share a physical counter: the threshold T_DC of rma-rw,
// section 3.2.1. More counters are better for readers, fewer for writers, which visit
// all of them. The zero value is the default for the topology.
//
// Otherwise either Ranks is set, or one of Each and Every.
type TDC struct {
	Ranks int    // T_DC itself: a counter for every so many ranks, from 1 to P
	Each  int    // counters in each element of Level; 1 unless Every is set
	Every int    // or one counter for every so many elements of Level
	Level string // "" means node, and the machine where no nodes are known
}

// ParseTDC reads a TDC from text:
//
//	16               a counter for every 16 ranks
//	every 16th rank  the same
//	2 per node       two counters in each node
//	every 2nd node   one for two nodes; the name is that of any level
//
// An error wraps lock.ErrConfig.
func ParseTDC(text string) (TDC, error) {
	bad := fmt.Errorf("rmarw: T_DC: want for example \"16\" (ranks), \"2 per node\" or \"every 2nd node\", not %.60q: %w", text, lock.ErrConfig)
	f := strings.Fields(text)
	switch {
	case len(f) == 1:
		f = []string{"every", f[0], "rank"}
	case len(f) == 2 && f[0] == "every":
		f = []string{"every", "1", f[1]}
	case len(f) != 3:
		return TDC{}, bad
	}
	per := f[1] == "per"
	count := f[1]
	if per {
		count = f[0]
	} else if f[0] != "every" {
		return TDC{}, bad
	}
	digits := count
	for _, ending := range []string{"st", "nd", "rd", "th"} {
		if rest, ok := strings.CutSuffix(count, ending); ok && !per {
			digits = rest
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return TDC{}, bad
	}
	if n < 1 {
		return TDC{}, fmt.Errorf("rmarw: T_DC is %.60q, want at least 1: %w", text, lock.ErrConfig)
	}
	level := f[2]
	switch {
	case level == "rank" && per && n == 1:
		return TDC{Ranks: 1}, nil
	case level == "rank" && per:
		return TDC{}, fmt.Errorf("rmarw: T_DC is %.60q, but a rank has at most one counter: %w", text, lock.ErrConfig)
	case level == "rank":
		return TDC{Ranks: n}, nil
	case per || n == 1:
		return TDC{Each: n, Level: level}, nil
	}
	return TDC{Every: n, Level: level}, nil
}

// String is a text that ParseTDC reads back.
func (d TDC) String() string {
	level := d.Level
	if level == "" {
		level = "node"
	}
	switch {
	case d.Ranks != 0:
		return "every " + ordinal(d.Ranks) + " rank"
	case d.Every != 0:
		return "every " + ordinal(d.Every) + " " + level
	}
	return fmt.Sprintf("%d per %s", max(d.Each, 1), level)
}

func ordinal(n int) string {
	ending := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			ending = "st"
		case 2:
			ending = "nd"
		case 3:
			ending = "rd"
		}
	}
	return strconv.Itoa(n) + ending
}

// maxDefault is the most counters that the default puts on one node. A writer visits each of
// them, with cache lines that move between cores; up to this many it issues in one batch.
const maxDefault = batch

// defaultTDC is the default of T_DC for a topology that is no view.
//
// Where ranks are on several nodes it is one counter per node. On one node readers of one
// counter pass its cache line from core to core, and those of one core do not. So it is a
// counter per core, or, of more than maxDefault cores, for as many neighbouring cores of a
// cache, NUMA node or node as makes at most maxDefault. Where ranks are not bound to cores
// nothing says which of them share one. Then there are as many counters as the ranks have
// processors, within the innermost level to whose parts they are bound.
func defaultTDC(t *topo.Topology) TDC {
	level, ok := t.Find("node")
	if !ok || t.Elements(level) > 1 {
		return TDC{Each: 1, Level: nodeLevel(t)}
	}
	levels := t.Levels()
	inner := level + 1
	for ; inner < len(levels) && !merged(t, inner) && levels[inner].Elements <= maxDefault; inner++ {
		level = inner
	}
	each := 1
	switch {
	case inner < len(levels) && !merged(t, inner): // too many elements for a counter each
		each = mostOf(t, level, func(e int) int { return t.Arity(level, e) })
	case levels[level].Name != "core":
		each = mostOf(t, level, func(e int) int { return processors(t, level, e) })
	}
	each = min(each, maxDefault/levels[level].Elements, mostRanks(t, level))
	return TDC{Each: max(each, 1), Level: levels[level].Name}
}

// merged reports whether an element of a level stands for several parts.
func merged(t *topo.Topology, level int) bool {
	for e := range t.Elements(level) {
		if t.Merged(level, e) {
			return true
		}
	}
	return false
}

// processors is the number of processors that the ranks of an element may run on, 0 if
// unknown.
func processors(t *topo.Topology, level, element int) int {
	masks, cpus := map[topo.Set]bool{}, map[int]bool{}
	for _, r := range t.Ranks(level, element) {
		mask := t.CPUs(r)
		if masks[mask] {
			continue
		}
		masks[mask] = true
		for c := range mask.All() {
			cpus[c] = true
		}
	}
	return len(cpus)
}

// settle checks a TDC for a topology, which is no view, and fills in what was left out.
func (d TDC) settle(t *topo.Topology) (TDC, error) {
	fail := func(format string, args ...any) (TDC, error) {
		return TDC{}, fmt.Errorf("rmarw: T_DC: %s: %w", fmt.Sprintf(format, args...), lock.ErrConfig)
	}
	if d.Ranks != 0 {
		switch {
		case d.Ranks < 1 || d.Ranks > t.Size():
			return fail("Ranks is %d, want from 1 to the number of ranks, %d", d.Ranks, t.Size())
		case d.Each != 0 || d.Every != 0 || d.Level != "":
			return fail("Ranks is %d; then Each, Every and Level are to be left out", d.Ranks)
		}
		return d, nil
	}
	if d.Level == "" {
		d.Level = nodeLevel(t)
	}
	level, ok := t.Find(d.Level)
	if !ok {
		return fail("Level is %.60q; there are: %s", d.Level, levelNames(t))
	}
	switch {
	case d.Each != 0 && d.Every != 0:
		return fail("Each is %d and Every is %d; only one of them can be", d.Each, d.Every)
	case d.Each < 0 || d.Each > 1 && d.Each > mostRanks(t, level):
		return fail("Each is %d, want from 1 to the most ranks of a %s, %d", d.Each, d.Level, mostRanks(t, level))
	case d.Every < 0 || d.Every > t.Elements(level):
		return fail("Every is %d, want from 1 to the number of elements at level %s, %d", d.Every, d.Level, t.Elements(level))
	case d.Every <= 1: // each one
		d.Each, d.Every = max(d.Each, 1), 0
	}
	return d, nil
}

// nodeLevel is the name of the level of nodes, "machine" where none are known.
func nodeLevel(t *topo.Topology) string {
	if _, ok := t.Find("node"); ok {
		return "node"
	}
	return "machine"
}

// levelNames lists the levels for an error.
func levelNames(t *topo.Topology) string {
	var names []string
	for _, l := range t.Levels() {
		names = append(names, l.Name)
	}
	return strings.Join(names, ", ")
}

// mostRanks is the number of ranks of the largest element of a level.
func mostRanks(t *topo.Topology, level int) int {
	return mostOf(t, level, func(e int) int { return t.Count(level, e) })
}

// mostOf is the largest of what the elements of a level have.
func mostOf(t *topo.Topology, level int, of func(element int) int) int {
	most := 0
	for e := range t.Elements(level) {
		most = max(most, of(e))
	}
	return most
}
