package topo

import (
	"fmt"
	"slices"
	"strings"
)

// maxRanks bounds a topology: ranks, elements and processors are numbered below it.
const maxRanks = 1 << 24

// maxLevels bounds the depth of a topology.
const maxLevels = 16

// A Level is one level of the machine.
type Level struct {
	Name     string `json:"name"`  // "machine", "rack", "node", "numa", ...
	Elements int    `json:"count"` // N_i: elements at this level that have ranks
}

// A Topology is the machine as a tree of levels, and the place of every rank in
// it. It does not change, may be used by many goroutines, and is the same on all
// ranks of the job.
//
// Every rank is in exactly one element per level, and two ranks in one element are
// in one element at every level outside it.
type Topology struct {
	levels []layer
	order  []int32 // ranks, sorted by element at every level at once
	cpus   []Set   // by rank: processors it may run on; nil when unknown for all
	notes  []string
	plain  bool      // labels are positions in a description, and say nothing new
	full   *Topology // what this is a view of; nil when it is none
	memo   *memo     // what was made of it; shared by its views
}

// A layer is one level with its tables.
type layer struct {
	name   string
	of     []int32  // rank -> element: e(p,i)
	start  []int32  // element -> place of its first rank in Topology.order
	count  []int32  // element -> number of ranks
	host   []int32  // element -> which of its ranks, in Topology.order, is its host
	label  []string // element -> what it is called inside the element around it
	merged []bool   // element -> stands for several parts; nil when none does
}

// Size is the number of ranks P.
func (t *Topology) Size() int { return len(t.order) }

// Levels lists the levels from the outermost, the machine, to the innermost. Their
// number is the paper's N; the paper's level i is index i-1.
func (t *Topology) Levels() []Level {
	out := make([]Level, len(t.levels))
	for i := range t.levels {
		out[i] = Level{Name: t.levels[i].name, Elements: t.Elements(i)}
	}
	return out
}

// Find is the index of the level of a name.
func (t *Topology) Find(name string) (level int, ok bool) {
	level = slices.IndexFunc(t.levels, func(l layer) bool { return l.name == name })
	return level, level >= 0
}

// Elements is the number of elements at a level that have ranks: the paper's N_i.
func (t *Topology) Elements(level int) int { return len(t.levels[level].count) }

// Element is the element of a rank at a level: e(p,i) of rma-rw, section 3.2.3,
// with ranks, levels and elements counted from 0. Elements of a level are numbered
// in the order of their lowest rank, whatever other levels there are; so the
// number at level "node" is rma.Node.Index.
func (t *Topology) Element(rank, level int) int { return int(t.levels[level].of[rank]) }

// Ranks lists the ranks of an element in ascending order, in a slice of the
// caller's.
func (t *Topology) Ranks(level, element int) []int {
	return ascending(t.part(level, element))
}

// ascending is a copy of ranks, sorted.
func ascending(part []int32) []int {
	out := make([]int, len(part))
	for i, r := range part {
		out[i] = int(r)
	}
	slices.Sort(out)
	return out
}

// part is the ranks of an element, sorted by the elements inside it.
func (t *Topology) part(level, element int) []int32 {
	l := &t.levels[level]
	from := l.start[element]
	return t.order[from : from+l.count[element]]
}

// Label is what an element is called inside the element around it: the host name
// of a node, the system's number of a NUMA node, the lowest processor of a cache
// or core, the position in a description that was parsed. Of a merged element it
// is "any of 0-1", or "unknown".
func (t *Topology) Label(level, element int) string { return t.levels[level].label[element] }

// Merged reports whether an element stands for several parts of the machine, since
// some rank in it may run on more than one of them or its place is unknown.
func (t *Topology) Merged(level, element int) bool {
	l := &t.levels[level]
	return l.merged != nil && l.merged[element]
}

// CPUs is the processors that a rank may run on, "" when unknown.
func (t *Topology) CPUs(rank int) Set {
	if t.cpus == nil {
		return ""
	}
	return t.cpus[rank]
}

// Notes says, a line each, what the topology does not show: levels that were left
// out and why, and what went wrong in reading the machine.
func (t *Topology) Notes() []string { return slices.Clone(t.notes) }

// WithNotes is t with other notes.
func (t *Topology) WithNotes(lines ...string) *Topology {
	f := *t.Whole()
	f.notes, f.memo = slices.Clone(lines), &memo{}
	return f.like(t)
}

// Fits returns nil if the topology has a place for each of size ranks, else an error that
// wraps ErrTopology.
func (t *Topology) Fits(size int) error {
	places := t.Size()
	if size >= 1 && size <= places {
		return nil
	}
	if size < 1 {
		return fmt.Errorf("topo: a job of %d ranks, want at least 1: %w", size, ErrTopology)
	}
	times := (size + places - 1) / places
	return fmt.Errorf("topo: topology has %d places, the job has %d ranks: start at most %d ranks, or describe %d times as many per innermost element (rank:%d if none was written): %w",
		places, size, places, times, times, ErrTopology)
}

// For is the topology of a job of size ranks: t, or, where t has more places, those that ranks
// 0 to size-1 have in it. Its elements are the ones of t that have such ranks, and Notes says
// how many places are left. Ranks of one process get one and the same. An error, which wraps
// ErrTopology, says that t has fewer places.
func (t *Topology) For(size int) (*Topology, error) {
	if err := t.Fits(size); err != nil || size == t.Size() {
		return t, err
	}
	f := t.Whole()
	part := Derive(f, firstRanks(size), func() *Topology { return f.first(size) })
	return part.like(t), nil
}

// firstRanks is the number of ranks of a part of a topology.
type firstRanks int

// first is the part of t, which is no view, that the first ranks lie in.
func (t *Topology) first(size int) *Topology {
	layers := make([]layer, len(t.levels))
	for i := range layers {
		l := &t.levels[i]
		n := slices.Max(l.of[:size]) + 1 // elements are in the order of their lowest rank
		layers[i] = layer{name: l.name, of: l.of[:size], label: l.label[:n]}
		if l.merged != nil {
			layers[i].merged = l.merged[:n]
		}
	}
	p := assemble(layers)
	if t.cpus != nil {
		p.cpus = t.cpus[:size]
	}
	p.plain = t.plain
	p.notes = append(slices.Clone(t.notes), fmt.Sprintf("%d of %d places are used: there are no more ranks", size, t.Size()))
	return p
}

// like is the view of t, which is no view, that v is of another topology of the same levels.
func (t *Topology) like(v *Topology) *Topology {
	keep := make([]bool, len(t.levels))
	for i, l := range t.levels {
		_, keep[i] = v.Find(l.name)
	}
	return t.view(keep)
}

// String is a line that Parse reads back as the same numbers, where there is one:
// all elements of a level are alike, and ranks follow on from one to the next or
// are dealt round robin. Else it is the totals.
func (t *Topology) String() string {
	if text, ok := t.synthetic(); ok {
		return text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d ranks", t.Size())
	for i := 1; i < len(t.levels); i++ {
		fmt.Fprintf(&b, ", %d x %s", t.Elements(i), t.levels[i].name)
	}
	return b.String() + ", unequal or not consecutive"
}

// synthetic is the description that Parse makes the same numbers of.
func (t *Topology) synthetic() (text string, ok bool) {
	var b strings.Builder
	last := len(t.levels) - 1
	for i := range t.levels {
		n := t.Elements(i)
		for _, k := range t.levels[i].count {
			if int(k) != t.Size()/n {
				return "", false
			}
		}
		if i > 0 {
			if n%t.Elements(i-1) != 0 {
				return "", false
			}
			fmt.Fprintf(&b, "%s:%d ", t.levels[i].name, n/t.Elements(i-1))
		}
	}
	if per := t.Size() / t.Elements(last); per > 1 || last == 0 {
		fmt.Fprintf(&b, "rank:%d ", per)
	}
	if text = strings.TrimSuffix(b.String(), " "); t.reads(text) {
		return text, true
	}
	for i := 1; i <= last; i++ {
		if by := text + " by:" + t.levels[i].name; t.reads(by) {
			return by, true
		}
	}
	return "", false
}

// reads reports whether Parse makes the numbers of t of a text.
func (t *Topology) reads(text string) bool {
	p, err := Parse(text)
	return err == nil && slices.EqualFunc(t.levels, p.levels, func(a, b layer) bool { return slices.Equal(a.of, b.of) })
}

// assemble fills in order, start, count and host, given levels whose name, of,
// label and merged are set and nest.
func assemble(levels []layer) *Topology {
	size := len(levels[0].of)
	t := &Topology{levels: levels, order: make([]int32, size), memo: &memo{}}
	for r := range t.order {
		t.order[r] = int32(r)
	}
	// Stable counting sorts from the innermost level out leave the ranks sorted by
	// all levels, so that each element of each level is one stretch of the order.
	next := make([]int32, size)
	for i := len(levels) - 1; i >= 0; i-- {
		l := &levels[i]
		n := len(l.label)
		l.count, l.start = make([]int32, n), make([]int32, n)
		for _, e := range l.of {
			l.count[e]++
		}
		at := int32(0)
		for e, k := range l.count {
			l.start[e] = at
			at += k
		}
		for _, r := range t.order {
			e := l.of[r]
			next[l.start[e]] = r
			l.start[e]++
		}
		t.order, next = next, t.order
	}
	for i := range levels {
		l := &levels[i]
		for at := int32(0); int(at) < size; {
			e := l.of[t.order[at]]
			l.start[e] = at
			at += l.count[e]
		}
	}
	t.chooseHosts()
	return t
}
