package topo

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

// A TDC says how many ranks share a physical counter: the threshold T_DC of rma-rw,
// section 3.2.1. More counters are better for readers, fewer for writers, who visit
// all of them. The zero value is one counter per node, which section 6 recommends.
//
// Either Ranks is set, or one of Each and Every, or none.
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
// An error wraps ErrTopology.
func ParseTDC(text string) (TDC, error) {
	bad := fmt.Errorf("topo: T_DC: want for example \"16\" (ranks), \"2 per node\" or \"every 2nd node\", not %s: %w", quote(text), ErrTopology)
	f := strings.Fields(text)
	n, level := 1, ""
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
	n, ok := parseNumber(digits)
	if !ok && !strings.HasPrefix(digits, "-") {
		return TDC{}, bad
	}
	if n < 1 {
		return TDC{}, fmt.Errorf("topo: T_DC is %s, want at least 1: %w", quote(text), ErrTopology)
	}
	level = f[2]
	switch {
	case !validName(level):
		return TDC{}, bad
	case level == "rank" && per && n == 1:
		return TDC{Ranks: 1}, nil
	case level == "rank" && per:
		return TDC{}, fmt.Errorf("topo: T_DC is %s, but a rank has at most one counter: %w", quote(text), ErrTopology)
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

// Counters places the physical counters of a distributed counter (DC): the map
// c(p) of rma-rw, section 3.2.1. Ranks in the order of the tree, in which those of
// an element are together whatever their numbers, are cut into stretches; each has
// a counter, which the first rank of the stretch hosts. Where ranks follow on from
// one element to the next, that is Listing 6's p = 0, T_DC, 2*T_DC and so on.
//
// It takes 4 bytes per rank and per counter, does not change, and may be used by
// many goroutines.
type Counters struct {
	spec  TDC
	t     *Topology // never a view
	index []int32   // rank -> its counter
	start []int32   // counter -> place of its first rank in t.order; and the end
}

// Counters places the physical counters. All levels of the topology that t is a
// view of may be named. Ranks of one process that ask for the same get one and the
// same Counters.
//
// An element with fewer ranks than Each has a counter per rank; the last stretch
// may be shorter than the others. An error wraps ErrTopology and names the field
// that is impossible.
func (t *Topology) Counters(d TDC) (*Counters, error) {
	f := t.whole()
	d, err := f.settle(d)
	if err != nil {
		return nil, err
	}
	return recall(f.memo, &f.memo.counters, d, func() *Counters {
		c := &Counters{spec: d, t: f, index: make([]int32, f.Size()), start: f.stretches(d)}
		for k := range c.Len() {
			for _, r := range c.part(k) {
				c.index[r] = int32(k)
			}
		}
		return c
	}), nil
}

// settle checks a TDC and fills in what was left out.
func (t *Topology) settle(d TDC) (TDC, error) {
	fail := func(format string, args ...any) (TDC, error) {
		return TDC{}, fmt.Errorf("topo: T_DC: %s: %w", fmt.Sprintf(format, args...), ErrTopology)
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
		d.Level = "node"
		if _, ok := t.Find("node"); !ok {
			d.Level = "machine"
		}
	}
	level, ok := t.Find(d.Level)
	if !ok {
		return fail("Level is %s; there are: %s", quote(d.Level), t.names())
	}
	most := 0
	for e := range t.Elements(level) {
		most = max(most, t.Count(level, e))
	}
	switch {
	case d.Each != 0 && d.Every != 0:
		return fail("Each is %d and Every is %d; only one of them can be", d.Each, d.Every)
	case d.Each < 0 || d.Each > most:
		return fail("Each is %d, want from 1 to the most ranks of a %s, %d", d.Each, d.Level, most)
	case d.Every < 0 || d.Every > t.Elements(level):
		return fail("Every is %d, want from 1 to the number of elements at level %s, %d", d.Every, d.Level, t.Elements(level))
	case d.Every <= 1: // each one
		d.Each, d.Every = max(d.Each, 1), 0
	}
	return d, nil
}

// stretches cuts the order of ranks, given a TDC that is settled.
func (t *Topology) stretches(d TDC) []int32 {
	var start []int32
	size := len(t.order)
	if d.Ranks > 0 {
		for at := 0; at < size; at += d.Ranks {
			start = append(start, int32(at))
		}
		return append(start, int32(size))
	}
	level, _ := t.Find(d.Level)
	l := &t.levels[level]
	for at, nth := 0, 0; at < size; nth++ {
		n := int(l.count[l.of[t.order[at]]])
		if d.Every > 0 {
			if nth%d.Every == 0 {
				start = append(start, int32(at))
			}
		} else {
			k := min(d.Each, n)
			for i := range k {
				start = append(start, int32(at+n*i/k))
			}
		}
		at += n
	}
	return append(start, int32(size))
}

// TDC is what was asked for, with all that was left out filled in.
func (c *Counters) TDC() TDC { return c.spec }

// Len is the number of physical counters, which a writer visits.
func (c *Counters) Len() int { return len(c.start) - 1 }

// Of is c(p): the rank that hosts the counter of a rank. Two loads.
func (c *Counters) Of(rank int) int { return c.Host(int(c.index[rank])) }

// Index is the number of the counter of a rank, from 0 to Len()-1.
func (c *Counters) Index(rank int) int { return int(c.index[rank]) }

// Host is the rank that hosts a counter. No rank hosts two, and each is one of the
// ranks that its counter counts.
func (c *Counters) Host(counter int) int { return int(c.t.order[c.start[counter]]) }

// Hosts lists the hosts of the counters, in a slice of the caller's.
func (c *Counters) Hosts() []int {
	out := make([]int, c.Len())
	for k := range out {
		out[k] = c.Host(k)
	}
	return out
}

// Ranks lists the ranks that a counter counts in ascending order, in a slice of the
// caller's.
func (c *Counters) Ranks(counter int) []int { return ascending(c.part(counter)) }

func (c *Counters) part(counter int) []int32 {
	return c.t.order[c.start[counter]:c.start[counter+1]]
}

// Within reports whether every rank is in the same element of a level as the host
// of its counter; at level "node", a reader then never leaves its node. Where the
// topology, view or not, has no such level, it is false.
func (c *Counters) Within(level string) bool {
	i, ok := c.t.Find(level)
	if !ok {
		return false
	}
	for r := range c.index {
		if c.t.Element(r, i) != c.t.Element(c.Of(r), i) {
			return false
		}
	}
	return true
}

// Near reports whether all ranks that a counter counts are in a node, so that words
// which only they change may be near words.
func (c *Counters) Near(counter int, n rma.Node) bool {
	for _, r := range c.part(counter) {
		if !n.Has(int(r)) {
			return false
		}
	}
	return true
}

// HostOf is Host for one of many locks that share the counters, numbered from 0: each
// next lock has its counter at the next rank of those it counts, and round again.
func (c *Counters) HostOf(counter, lock int) int {
	part := c.part(counter)
	return int(part[lock%len(part)])
}

// Count is the number of ranks that a counter counts.
func (c *Counters) Count(counter int) int { return int(c.start[counter+1] - c.start[counter]) }
