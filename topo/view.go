package topo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
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
		within := t.Zone(i) == InsideNode
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

// A Zone says where a level lies.
type Zone uint8

const (
	WholeMachine Zone = iota // the machine itself, level 0
	AboveNodes               // levels of nodes: racks, switches
	AtNode                   // the node
	InsideNode               // levels of a node's parts: NUMA nodes, cores
)

// Zone says where a level lies: by its place where t, or what t is a view of, has a
// level node; otherwise by its name, and then an unknown name counts as a node.
func (t *Topology) Zone(level int) Zone {
	if level == 0 {
		return WholeMachine
	}
	name := t.levels[level].name
	f := t.Whole()
	at, _ := f.Find(name)
	node, ok := f.Find("node")
	if !ok {
		node = depth["node"]
		var known bool
		if at, known = depth[name]; !known {
			at = node
		}
	}
	switch {
	case at < node:
		return AboveNodes
	case at > node:
		return InsideNode
	}
	return AtNode
}

// names lists the levels for an error.
func (t *Topology) names() string {
	var names []string
	for _, l := range t.levels {
		names = append(names, l.name)
	}
	return strings.Join(names, ", ")
}

// Whole is the topology that t is a view of, or t.
func (t *Topology) Whole() *Topology {
	if t.full != nil {
		return t.full
	}
	return t
}

// memo keeps what was made of a topology.
type memo struct {
	sync.Mutex
	made map[any]any // by key
}

// Derive is what make returns for a topology and a key. It is made once and kept with the
// topology, so that the ranks of a process share it, and views of one topology too; so it must
// not change. make must depend on nothing but the whole topology and the key, and must not
// call Derive.
func Derive[K comparable, V any](t *Topology, key K, make func() *V) *V {
	m := t.Whole().memo
	m.Lock()
	defer m.Unlock()
	if v, ok := m.made[key].(*V); ok {
		return v
	}
	if m.made == nil {
		m.made = map[any]any{}
	}
	v := make()
	m.made[key] = v
	return v
}

// viewKey is the names of the levels of a view.
type viewKey string

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
	f := t.Whole()
	return Derive(f, viewKey(key), func() *Topology {
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
