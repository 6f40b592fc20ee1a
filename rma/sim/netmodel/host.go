package netmodel

import (
	"math"
	"math/bits"
)

// host is what happens inside a node, and the time of a collective call.
type host struct {
	own, sibling, socket, other int64
	step                        int64
	change                      int64   // to another coroutine; 0 where ranks of a core are threads
	message                     float64 // one way
}

func newHost(m *Machine, coroutines bool) host {
	ns := func(name string) int64 { return int64(math.Round(m.Value(name))) }
	h := host{
		own:     ns("ownAtomicNs"),
		step:    ns("cpuStepNs"),
		sibling: ns("coreHandoverNs.sibling"),
		socket:  ns("coreHandoverNs.socket"),
		other:   ns("coreHandoverNs.otherSocket"),
		message: m.Value("rttNs.SEND") / 2,
	}
	if coroutines {
		h.sibling, h.change = 0, ns("switchNs")
	}
	return h
}

// Near is the time of a rank's access to a word in node memory whose last access was
// owner's; a negative owner is none.
func (n *Net) Near(owner, rank int) int64 {
	if owner == rank || owner < 0 {
		return n.host.own + n.host.step
	}
	return n.host.own + n.host.step + n.handover(owner, rank)
}

// Woken is the time from a write in node memory to the going on of a rank that waits
// for it.
func (n *Net) Woken(writer, waiter int) int64 {
	if writer == waiter || writer < 0 {
		return n.host.own
	}
	return n.handover(writer, waiter) + n.host.change
}

// handover is the time in which a cache line goes from one rank's core to another's.
// From another node it is the NIC that wrote: the line comes from memory or the shared
// cache, about as from a core of the socket.
func (n *Net) handover(from, to int) int64 {
	a, b := &n.rank[from], &n.rank[to]
	switch {
	case a.node != b.node:
		return n.host.socket
	case a.socket != b.socket:
		return n.host.other
	case a.core == b.core:
		return n.host.sibling
	}
	return n.host.socket
}

// Barrier is the time of a collective call of so many ranks, after the last has come: a
// dissemination barrier, one message a round.
func (n *Net) Barrier(ranks int) int64 {
	rounds := bits.Len(uint(max(ranks, 1) - 1))
	return int64(float64(rounds) * n.host.message)
}
