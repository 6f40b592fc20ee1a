package topo

import (
	"fmt"
	"strconv"
	"strings"
)

// inside makes the layers inside the nodes and says which levels it left out.
func (b *builder) inside(places []Place) {
	var redundant, unbound, unknown []string
	example := ""
	for i, spans := range b.spans {
		name := places[0].Inside[i].Level
		outer := &b.layers[len(b.layers)-1]
		key := make([]int32, b.size)
		known, unboundRank := false, -1
		for r, s := range spans {
			key[r] = -1
			if id, ok := s.One(); ok {
				key[r] = int32(id)
			} else if s != "" && unboundRank < 0 {
				unboundRank = r
			}
			known = known || s != ""
		}
		l, _ := split(outer, key)
		l.name = name
		switch {
		case !known:
			unknown = append(unknown, name)
		case len(l.label) > len(outer.label):
			b.nameParts(&l, key, spans)
			b.layers = append(b.layers, l)
			b.noteMerged(&l)
		case all(l.merged):
			unbound = append(unbound, name)
			if example == "" && unboundRank >= 0 {
				example = fmt.Sprintf(" (rank %d may run on %s %s)", unboundRank, name, spans[unboundRank])
			}
		default:
			redundant = append(redundant, name)
		}
	}
	b.noteRedundant(redundant)
	if len(unbound) > 0 {
		b.notes = append(b.notes, "left out "+strings.Join(unbound, ", ")+": no element has each of its ranks bound to one"+example)
	}
	if len(unknown) > 0 {
		b.notes = append(b.notes, "left out "+strings.Join(unknown, ", ")+": no rank knows its place there")
	}
}

// noteRedundant says which levels split nothing.
func (b *builder) noteRedundant(names []string) {
	if len(names) > 0 {
		b.notes = append(b.notes, "left out "+strings.Join(names, ", ")+": splits nothing that another level does not")
	}
}

// nameParts labels parts with the system's numbers, and merged elements with all
// that their ranks may run on.
func (b *builder) nameParts(l *layer, key []int32, spans []Set) {
	may := map[int32]map[Set]bool{} // merged element -> spans of its ranks
	for r, e := range l.of {
		if l.merged == nil || !l.merged[e] {
			if l.label[e] == "" {
				l.label[e] = strconv.Itoa(int(key[r]))
			}
			continue
		}
		if may[e] == nil {
			may[e] = map[Set]bool{}
		}
		may[e][spans[r]] = true
	}
	for e, sets := range may {
		if sets[""] {
			l.label[e] = "unknown"
			continue
		}
		var ids []int
		for s := range sets {
			for id := range s.All() {
				ids = append(ids, id)
			}
		}
		l.label[e] = "any of " + string(MakeSet(ids...))
	}
}

// noteMerged says which ranks of a layer share merged elements.
func (b *builder) noteMerged(l *layer) {
	var ranks []int
	for r, e := range l.of {
		if l.merged != nil && l.merged[e] {
			ranks = append(ranks, r)
		}
	}
	if len(ranks) > 0 {
		b.notes = append(b.notes, "merged "+l.name+" for "+RanksText(ranks)+": not each rank there is bound to one")
	}
}

func all(bs []bool) bool {
	for _, b := range bs {
		if !b {
			return false
		}
	}
	return len(bs) > 0
}
