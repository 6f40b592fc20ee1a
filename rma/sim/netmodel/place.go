package netmodel

import (
	"errors"
	"fmt"
)

// ErrPlacement is wrapped by what New refuses.
var ErrPlacement = errors.New("not a placement")

// A Placement says where the ranks of a job are.
type Placement struct {
	Node []int // of each rank, from 0
	// Groups says, for each level above the nodes, the lowest first, to which of its
	// switches, racks ... each node belongs. None: all nodes are at one switch. A pair of
	// nodes whose lowest common level is number l (from 0; len(Groups) for none) is 2l
	// hops farther apart than two nodes of one switch: up l levels and down.
	Groups [][]int
	// Core and Socket of each rank inside its node. No Core: each rank has its own. No
	// Socket: a node has one.
	Core, Socket []int
	// QPs is the number of connections that a rank opens towards a node; 0 for one, by
	// which it reaches all memory there. Code that connects every thread with every
	// other opens as many as the node has threads.
	QPs int
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
