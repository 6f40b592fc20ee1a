package topo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"weak"
)

// Pick is a coarser view of a topology, with the machine and the named levels
// alone, from the outside in whatever the order of the names: the levels that a
// lock uses. Elements keep their numbers, ranks and hosts; the label of an element
// that lost the level around it says where it was, as in "n01/0".
//
// A view shares the tables of t. Ranks of one process that pick the same levels get
// one and the same view. An error wraps ErrTopology and names the level that there
// is not, and those that there are.
func (t *Topology) Pick(names ...string) (*Topology, error) {
	keep := make([]bool, len(t.levels))
	keep[0] = true
	for k, name := range names {
		i, ok := t.Find(name)
		switch {
		case !ok:
			return nil, fmt.Errorf("topo: no level is called %s; there are: %s: %w", quote(name), t.names(), ErrTopology)
		case slices.Contains(names[:k], name):
			return nil, fmt.Errorf("topo: level %q is picked twice: %w", name, ErrTopology)
		}
		keep[i] = true
	}
	return t.view(keep), nil
}

// DefaultView is the view that suits a lock when its user picks no levels: the machine,
// racks or switches, the node, and sockets or NUMA nodes where a node has several.
// A level stays if it is neither the whole machine nor single ranks nor the same as
// another one, but of the levels inside a node only the outermost, and no caches and
// cores: each level costs every uncontended acquire an operation on one more queue,
// and inside a NUMA node a lock is about as cheap to pass to one rank as to another.
func (t *Topology) DefaultView() *Topology {
	keep := make([]bool, len(t.levels))
	keep[0] = true
	parts, inner := t.Size(), 0
	for i := len(t.levels) - 1; i > 0; i-- {
		n := t.Elements(i)
		name := t.levels[i].name
		within := t.zone(i) == insideNode
		if n == parts || n == 1 || name == "cache" || name == "core" || within && n == t.Elements(i-1) {
			continue
		}
		keep[i] = true
		if within {
			if inner > 0 {
				keep[inner] = false
			}
			inner = i
		}
		parts = n
	}
	return t.view(keep)
}

// A zone is where a level lies.
type zone uint8

const (
	wholeMachine zone = iota
	aboveNode         // racks, switches: of nodes
	atNode            // the node itself
	insideNode        // NUMA nodes, cores: of a node
)

// zone is the zone of a level: by its place where t, or what t is a view of, has a
// level node; else by its name, and then a name that says nothing counts as a node.
func (t *Topology) zone(level int) zone {
	if level == 0 {
		return wholeMachine
	}
	name := t.levels[level].name
	f := t.whole()
	at, known := f.Find(name)
	node, ok := f.Find("node")
	if !ok {
		node = depth["node"]
		if at, known = depth[name]; !known {
			at = node
		}
	}
	switch {
	case at < node:
		return aboveNode
	case at > node:
		return insideNode
	}
	return atNode
}

// names lists the levels for an error.
func (t *Topology) names() string {
	var names []string
	for _, l := range t.levels {
		names = append(names, l.name)
	}
	return strings.Join(names, ", ")
}

// whole is what t is a view of, or t.
func (t *Topology) whole() *Topology {
	if t.full != nil {
		return t.full
	}
	return t
}

// memo finds again what was made of a topology, as long as somebody uses it, so
// that the ranks of a process share it.
type memo struct {
	sync.Mutex
	views    map[string]weak.Pointer[Topology]
	counters map[TDC]weak.Pointer[Counters]
}

// recall is the value of a key in a map of a memo, made if nobody has it.
func recall[K comparable, V any](m *memo, kept *map[K]weak.Pointer[V], key K, make func() *V) *V {
	m.Lock()
	defer m.Unlock()
	if v := (*kept)[key].Value(); v != nil {
		return v
	}
	if *kept == nil {
		*kept = map[K]weak.Pointer[V]{}
	}
	v := make()
	(*kept)[key] = weak.Make(v)
	return v
}

// view is t with some of its levels.
func (t *Topology) view(keep []bool) *Topology {
	if !slices.Contains(keep, false) {
		return t
	}
	key := ""
	for i, k := range keep {
		if k {
			key += t.levels[i].name + " "
		}
	}
	// What a view leaves out is lost to its labels alone, so the key tells all:
	// a view of a view is made from the whole.
	f := t.whole()
	return recall(f.memo, &f.memo.views, key, func() *Topology {
		v := &Topology{order: f.order, cpus: f.cpus, notes: f.notes, plain: f.plain, full: f, memo: f.memo}
		was := -1 // the level of f that the last one of v is
		for i := range f.levels {
			l := f.levels[i] // a copy, which shares the tables
			if !slices.Contains(strings.Fields(key), l.name) {
				continue
			}
			if i != was+1 {
				l.label = f.relabel(was, i)
			}
			v.levels = append(v.levels, l)
			was = i
		}
		return v
	})
}

// relabel gives the elements of a level labels inside those of a level further out.
func (t *Topology) relabel(outer, level int) []string {
	out := make([]string, t.Elements(level))
	next := make([]int, t.Elements(outer)) // positions, where labels are those
	for e := range out {
		r := t.FirstRank(level, e)
		if t.plain {
			o := t.Element(r, outer)
			out[e] = strconv.Itoa(next[o])
			next[o]++
			continue
		}
		var path []string
		for i := outer + 1; i <= level; i++ {
			path = append(path, t.Label(i, t.Element(r, i)))
		}
		out[e] = strings.Join(path, "/")
	}
	return out
}
