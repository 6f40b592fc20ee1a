package topo

import "github.com/rmalock/rmalock/rma"

// Count is the number of ranks of an element.
func (t *Topology) Count(level, element int) int { return int(t.levels[level].count[element]) }

// FirstRank is the lowest rank of an element.
func (t *Topology) FirstRank(level, element int) int {
	// Elements are numbered by their lowest rank, at every level inside too, so it
	// is the first in the order of the tree.
	return int(t.order[t.levels[level].start[element]])
}

// InOrder is the rank at a place of the order of the tree, from 0 to Size()-1. In that order
// the ranks of an element are together, at every level, whatever their numbers.
func (t *Topology) InOrder(place int) int { return int(t.order[place]) }

// Up is the element at the level outside a level, which must not be 0, that an
// element is in: where a writer goes from level i to i-1 (rma-rw, section 3.3.1).
func (t *Topology) Up(level, element int) int {
	return int(t.levels[level-1].of[t.FirstRank(level, element)])
}

// Arity is the number that may compete in the queue of an element: the elements
// inside it at the next level, or its ranks at the innermost one. It walks them.
func (t *Topology) Arity(level, element int) int {
	part := t.part(level, element)
	if level == len(t.levels)-1 {
		return len(part)
	}
	in := &t.levels[level+1]
	n := 0
	for ; len(part) > 0; n++ {
		part = part[in.count[in.of[part[0]]]:]
	}
	return n
}

// Meet is the innermost level at which two ranks are in one element.
func (t *Topology) Meet(p, q int) int {
	level := len(t.levels) - 1
	for t.levels[level].of[p] != t.levels[level].of[q] {
		level-- // at level 0 all are in one
	}
	return level
}

// Near reports whether all ranks of an element are in a node, so that words which
// only they touch may be near words. It walks the ranks until one is not.
func (t *Topology) Near(level, element int, n rma.Node) bool {
	for _, r := range t.part(level, element) {
		if !n.Has(int(r)) {
			return false
		}
	}
	return true
}

// Host is the rank that hosts what belongs to an element: tail_rank[i,j] of rma-rw,
// section 3.2.2, and the queue node of the element in the queue of the element
// around it. It is a rank of the element.
//
// Hosts are spread: from the innermost level out, an element takes that of its
// ranks which hosts for the fewest elements inside, and of those the last one. Last,
// since the first is where programs put what one rank does for all, where a lock
// without topology has its TAIL, and where physical counters are.
func (t *Topology) Host(level, element int) int { return t.HostOf(level, element, 0) }

// HostOf is Host for one of many locks that share a tree, numbered from 0: each next
// lock has its words at the next rank of the element, in the order of the tree and
// round again. HostOf(level, element, 0) is Host(level, element).
func (t *Topology) HostOf(level, element, lock int) int {
	l := &t.levels[level]
	at := (int(l.host[element]) + lock) % int(l.count[element])
	return int(t.order[int(l.start[element])+at])
}

// chooseHosts fills in the hosts.
func (t *Topology) chooseHosts() {
	load := make([]uint8, len(t.order)) // by place in the order; at most maxLevels
	for i := len(t.levels) - 1; i >= 0; i-- {
		l := &t.levels[i]
		l.host = make([]int32, len(l.count))
		for e, n := range l.count {
			mine := load[l.start[e] : l.start[e]+n]
			best := n - 1
			for k := best; k >= 0 && mine[best] > 0; k-- {
				if mine[k] < mine[best] {
					best = k
				}
			}
			mine[best]++
			l.host[e] = best
		}
	}
}
