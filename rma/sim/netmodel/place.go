package netmodel

import (
	"errors"
	"fmt"
)

// ErrPlacement is wrapped by what New refuses.
var ErrPlacement = errors.New("not a placement")

// A Placement says where the ranks of a job are, and after them its memory nodes.
type Placement struct {
	Node []int // of each rank, from 0, and then of each memory node
	// Groups says, for each level above the nodes, the lowest first, to which of its
	// switches, racks ... each node belongs. None: all nodes are at one switch. A pair of
	// nodes whose lowest common level is number l (from 0; len(Groups) for none) is 2l
	// hops farther apart than two nodes of one switch: up l levels and down.
	Groups [][]int
	// Core and Socket of each rank inside its node. No Core: each rank has its own. No
	// Socket: a node has one.
	Core, Socket []int
	// Coroutines says that the ranks of one core are coroutines of one thread, and not
	// threads of the core: they share its CPU, and a change from one to the other takes
	// switchNs.
	Coroutines bool
	// Servers are ranks that serve messages: each takes serverNs of their CPU.
	Servers []int
	// Pair is the number of each rank's group of ranks that share connections, less than
	// len(Node); nil: none do. Ranks of one group are on one node.
	Pair []int
	// QPs is the number of connections that a group opens towards a node, or with EachRank
	// towards each rank and memory node there; 0 for one.
	QPs      int
	EachRank bool
	// BigFootprint says that the registered memory of a node exceeds the CPU's cache.
	BigFootprint bool
}

// check returns the number of nodes.
func (p *Placement) check() (int, error) {
	refuse := func(what string, a ...any) (int, error) {
		return 0, fmt.Errorf("netmodel: "+what+": %w", append(a, ErrPlacement)...)
	}
	if len(p.Node) == 0 {
		return refuse("no ranks")
	}
	nodes := 0
	for r, n := range p.Node {
		if n < 0 || n >= 1<<24 {
			return refuse("rank %d is on node %d", r, n)
		}
		nodes = max(nodes, n+1)
	}
	for l, g := range p.Groups {
		if len(g) < nodes {
			return refuse("level %d has groups for %d of %d nodes", l, len(g), nodes)
		}
	}
	if p.Core != nil && len(p.Core) != len(p.Node) {
		return refuse("cores of %d of %d ranks", len(p.Core), len(p.Node))
	}
	if p.Socket != nil && len(p.Socket) != len(p.Node) {
		return refuse("sockets of %d of %d ranks", len(p.Socket), len(p.Node))
	}
	if p.QPs < 0 || p.QPs > 1<<16 {
		return refuse("%d connections from a rank to a node", p.QPs)
	}
	for _, r := range p.Servers {
		if r < 0 || r >= len(p.Node) {
			return refuse("server %d is none of %d ranks", r, len(p.Node))
		}
	}
	if p.Pair != nil && len(p.Pair) != len(p.Node) {
		return refuse("connection groups of %d of %d ranks", len(p.Pair), len(p.Node))
	}
	of := map[int]int{} // group -> its node
	for r, g := range p.Pair {
		if g < 0 || g >= len(p.Node) {
			return refuse("rank %d is in connection group %d of at most %d", r, g, len(p.Node))
		}
		if n, ok := of[g]; ok && n != p.Node[r] {
			return refuse("rank %d of node %d shares connections with a rank of node %d", r, p.Node[r], n)
		}
		of[g] = p.Node[r]
	}
	return nodes, nil
}

// hops is the number of switches between two nodes beyond the first.
func (n *Net) hops(a, b int32) int64 {
	l := 0
	for ; l < len(n.groups); l++ {
		if g := n.groups[l]; g[a] == g[b] {
			break
		}
	}
	return 2 * int64(l)
}
