package topo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Build makes the topology of a job from the places of its ranks, in the order of
// ranks. The levels are the machine, those of Place.Above, the node, and those of
// Place.Inside.
//
// A level inside the node splits an element only if every rank of the element is
// bound to exactly one part of the level. Otherwise the ranks stay together in one
// element, which then is merged: it stands for several parts. So a rank that may
// run anywhere on its node keeps all its node-mates in one element at each level
// inside, and ranks bound to a NUMA node but to no core share a merged core.
//
// Levels at which this leaves all elements merged, and levels other than machine
// and node that split nothing, are left out; Notes says which and why.
//
// An error wraps ErrTopology and names the rank whose place is malformed or does
// not go with that of another one.
func Build(places []Place) (*Topology, error) {
	if len(places) == 0 || len(places) > maxRanks {
		return nil, fmt.Errorf("topo: %d places, want one per rank, from 1 to %d: %w", len(places), maxRanks, ErrTopology)
	}
	b := builder{size: len(places), known: map[string]Set{}}
	if err := b.check(places); err != nil {
		return nil, err
	}
	b.outside(places)
	b.inside(places)
	t := assemble(b.layers)
	if slices.ContainsFunc(b.cpus, func(s Set) bool { return s != "" }) {
		t.cpus = b.cpus
	}
	t.notes = append(gatherNotes(places), b.notes...)
	return t, nil
}

type builder struct {
	size   int
	layers []layer
	known  map[string]Set // Sets as written -> in their form, each text kept once
	cpus   []Set
	spans  [][]Set // by level inside, by rank
	notes  []string
}

// check refuses malformed places and ones that contradict each other.
func (b *builder) check(places []Place) error {
	first := &places[0]
	if err := checkNames(first); err != nil {
		return err
	}
	b.cpus = make([]Set, b.size)
	b.spans = make([][]Set, len(first.Inside))
	for i := range b.spans {
		b.spans[i] = make([]Set, b.size)
	}
	homes := map[int]int{} // node -> its lowest rank
	for r := range places {
		p := &places[r]
		if p.Node < 0 || p.Node >= maxRanks {
			return fmt.Errorf("topo: rank %d: node %d, want a number from 0 to %d: %w", r, p.Node, maxRanks-1, ErrTopology)
		}
		if !sameLevels(first, p) {
			return fmt.Errorf("topo: rank 0 lists the levels %s, rank %d lists %s: all ranks list the same levels, with an empty set inside the node where they do not know: %w",
				levelsOf(first), r, levelsOf(p), ErrTopology)
		}
		var err error
		if b.cpus[r], err = b.set(p.CPUs); err != nil {
			return fmt.Errorf("topo: rank %d: cpus: %w", r, err)
		}
		for i, s := range p.Inside {
			if b.spans[i][r], err = b.set(s.IDs); err != nil {
				return fmt.Errorf("topo: rank %d: %s: %w", r, s.Level, err)
			}
		}
		home, ok := homes[p.Node]
		if !ok {
			homes[p.Node], home = r, r
		}
		for i, a := range p.Above {
			if h := places[home].Above[i]; h != a {
				return fmt.Errorf("topo: ranks %d and %d share node %d, but lie in %s %q and %q: %w",
					home, r, p.Node, a.Level, h.Name, a.Name, ErrTopology)
			}
		}
	}
	return nil
}

// checkNames refuses bad names of levels.
func checkNames(p *Place) error {
	seen := []string{"machine"}
	add := func(name string) error {
		if !validName(name) || reserved(name) {
			return fmt.Errorf("topo: rank 0: level %s: a name is a lower-case letter and then letters, digits, '-' or '_', and not rank, pu or by: %w", quote(name), ErrTopology)
		}
		for _, s := range seen {
			if s == name {
				return fmt.Errorf("topo: rank 0: level %q occurs twice: %w", name, ErrTopology)
			}
		}
		if outer := misplaced(seen, name); outer != "" {
			return fmt.Errorf("topo: rank 0: a %s cannot be inside a %s; list levels from the outermost to the innermost: %w", name, outer, ErrTopology)
		}
		seen = append(seen, name)
		return nil
	}
	var names []string
	for _, a := range p.Above {
		names = append(names, a.Level)
	}
	names = append(names, "node")
	for _, s := range p.Inside {
		names = append(names, s.Level)
	}
	if len(names) >= maxLevels {
		return fmt.Errorf("topo: rank 0: more than %d levels: %w", maxLevels, ErrTopology)
	}
	for _, name := range names {
		if err := add(name); err != nil {
			return err
		}
	}
	return nil
}

func sameLevels(p, q *Place) bool {
	return slices.EqualFunc(p.Above, q.Above, func(a, b Part) bool { return a.Level == b.Level }) &&
		slices.EqualFunc(p.Inside, q.Inside, func(a, b Span) bool { return a.Level == b.Level })
}

// levelsOf names the levels of a place.
func levelsOf(p *Place) string {
	var b strings.Builder
	for _, a := range p.Above {
		b.WriteString(a.Level + " ")
	}
	b.WriteString("node")
	for _, s := range p.Inside {
		b.WriteString(" " + s.Level)
	}
	return b.String()
}

// set brings a Set into its form.
func (b *builder) set(s Set) (Set, error) {
	if known, ok := b.known[string(s)]; ok {
		return known, nil
	}
	known, err := parseSet(string(s))
	if err == nil {
		b.known[string(s)] = known
	}
	return known, err
}

// outside makes the layers from the machine to the nodes.
func (b *builder) outside(places []Place) {
	b.layers = []layer{{name: "machine", of: make([]int32, b.size), label: []string{"0"}}}
	node := make([]int32, b.size)
	for r := range places {
		node[r] = int32(places[r].Node)
	}
	last, _ := split(nil, node)
	var redundant []string
	for i := range places[0].Above {
		names := map[string]int32{}
		key := make([]int32, b.size)
		for r := range places {
			name := places[r].Above[i].Name
			k, ok := names[name]
			if !ok {
				k = int32(len(names))
				names[name] = k
			}
			key[r] = k
		}
		outer := &b.layers[len(b.layers)-1]
		l, lows := split(outer, key)
		l.name = places[0].Above[i].Level
		if len(lows) == len(outer.label) || len(lows) == len(last.label) {
			redundant = append(redundant, l.name) // the same as the level outside it, or as the nodes
			continue
		}
		for e, r := range lows {
			l.label[e] = places[r].Above[i].Name
		}
		b.layers = append(b.layers, l)
	}
	b.noteRedundant(redundant)
	l, lows := split(&b.layers[len(b.layers)-1], node)
	l.name = "node"
	b.nameNodes(&l, lows, places)
	b.layers = append(b.layers, l)
}

// nameNodes labels nodes with their hosts, made different where they are not.
func (b *builder) nameNodes(l *layer, lows []int32, places []Place) {
	same := map[string][]int{} // host -> nodes
	for e, r := range lows {
		host := places[r].Host
		same[host] = append(same[host], e)
	}
	for e, r := range lows {
		host := places[r].Host
		switch nodes := same[host]; {
		case host == "":
			l.label[e] = strconv.Itoa(e)
		case len(nodes) == 1:
			l.label[e] = host
		default:
			l.label[e] = host + "#" + strconv.Itoa(e)
			if nodes[0] == e {
				b.notes = append(b.notes, fmt.Sprintf("nodes %s have one host name, %s, but share no memory: containers, or nodes of pretence", MakeSet(nodes...), host))
			}
		}
	}
}

// split numbers the parts of a layer's elements in the order of their lowest rank,
// which it returns: ranks of one element with one key are one part. An element in
// which a key is negative is not split, but merged. A nil outer is the machine.
func split(outer *layer, key []int32) (l layer, lows []int32) {
	type part struct{ outer, key int32 }
	l.of = make([]int32, len(key))
	var toMerge []bool // element of outer -> has a rank with a negative key
	at := func(r int) int32 {
		if outer == nil {
			return 0
		}
		return outer.of[r]
	}
	for r, k := range key {
		if k < 0 {
			if toMerge == nil {
				toMerge = make([]bool, len(outer.label))
			}
			toMerge[at(r)] = true
		}
	}
	number := map[part]int32{}
	for r, k := range key {
		p := part{at(r), k}
		merged := toMerge != nil && toMerge[p.outer]
		if merged {
			p.key = -1
		}
		e, ok := number[p]
		if !ok {
			e = int32(len(lows))
			number[p] = e
			lows = append(lows, int32(r))
			if toMerge != nil {
				l.merged = append(l.merged, merged)
			}
		}
		l.of[r] = e
	}
	l.label = make([]string, len(lows))
	return l, lows
}

// maxGathered bounds the notes of all ranks: on many nodes one trouble may have as
// many texts.
const maxGathered = 32

// gatherNotes joins the notes of the ranks, each with those that have it.
func gatherNotes(places []Place) []string {
	var texts []string
	ranks := map[string][]int{}
	for r := range places {
		for _, n := range places[r].Notes {
			if ranks[n] == nil {
				texts = append(texts, n)
			}
			ranks[n] = append(ranks[n], r)
		}
	}
	for i, n := range texts {
		if rs := ranks[n]; len(rs) < len(places) {
			texts[i] = RanksText(rs) + ": " + n
		}
	}
	if more := len(texts) - maxGathered; more > 0 {
		texts = append(texts[:maxGathered], fmt.Sprintf("and %d more notes of ranks", more))
	}
	return texts
}
