// Package group is what backends whose ranks are of one process share: the nodes of a
// communicator and the parts of a Split.
package group

import (
	"cmp"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// Nodes makes the nodes of a communicator whose rank r lies on the node named where[r], and
// the index of each rank's node among them.
func Nodes(where []int) (nodes []rma.Node, index []int32) {
	index = make([]int32, len(where))
	byName := map[int]int{}
	for r, name := range where {
		k, ok := byName[name]
		if !ok {
			k = len(nodes)
			byName[name] = k
			nodes = append(nodes, rma.Node{Index: k})
		}
		nodes[k].Ranks = append(nodes[k].Ranks, r)
		index[r] = int32(k)
	}
	for k := range nodes {
		nodes[k].Count = len(nodes)
	}
	return nodes, index
}

// A Member is what a rank brings to a Split.
type Member struct{ Color, Key, Rank int }

// Parts are the communicators that a Split makes of the Members that the ranks brought: by
// color, each in the order of key and then of rank. Negative colors have none.
func Parts(brought []any) [][]Member {
	var members []Member
	for _, v := range brought {
		if m, ok := v.(Member); ok && m.Color >= 0 { // nil of a rank that has died
			members = append(members, m)
		}
	}
	slices.SortFunc(members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Color, b.Color), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Rank, b.Rank))
	})
	var parts [][]Member
	for len(members) > 0 {
		n := 1
		for n < len(members) && members[n].Color == members[0].Color {
			n++
		}
		parts = append(parts, members[:n])
		members = members[n:]
	}
	return parts
}
