package netmodel

import (
	"math"

	"github.com/rmalock/rmalock/rma"
)

// Send is a kind of its own beside those of rma: a message by an unreliable datagram, with
// which some locks notify the next holder. It takes effect when the receiver has polled it,
// has no answer, and needs one connection a NIC for any number of receivers.
const Send rma.Kind = math.MaxUint8

// Times inside are in units of 1/1024 ns, so that a slot of 7.4 ns is one; an int64
// of them is 104 days.
const fine = 10

func ticks(ns float64) int64 { return int64(math.Round(ns * (1 << fine))) }

func in(ns int64) int64    { return ns << fine }
func out(tick int64) int64 { return (tick + 1<<(fine-1)) >> fine }

// A Net is the state of a machine's network while a job runs. Its methods are called
// by one goroutine. It is deterministic: the same calls give the same times.
type Net struct {
	name   string
	cost   [rma.Kinds]cost
	send   cost  // of Send
	post   int64 // CPU
	bell   int64
	poll   int64
	hop    int64
	word   int64 // on the wire, per 8 bytes
	packet int   // words
	rank   []rankPlace
	nic    []nic
	groups [][]int32
	unit   unit
	qpCap  int64
	qps    int64
	host   host
	max    int
}

// cost is what an operation of one kind takes in a quiet network.
type cost struct {
	flight, loop   int64 // one way, to a node of the same switch and to one's own
	initiator      int64 // slots
	responder      int64
	miss           int64 // of a connection, on each side
	atomic, brings bool  // data comes with the answer
	datagram       bool
}

// rankPlace is the place of one rank.
type rankPlace struct {
	node   int32
	last   int32 // node to which it last was connected
	core   int32
	socket int32
	cpu    server
	live   []uint64 // nodes to which it has connections, bit by bit
}

// nic is the NIC of one node.
type nic struct {
	slots    server // one for both sides
	out, in  server // the link, for operations of more than a word
	live     int64  // connections
	misses   uint32 // probability of a miss, times 2^32
	weyl     uint32
	datagram bool
}

// New returns the idle network of a machine on which ranks lie as p says.
func New(m *Machine, p Placement) (*Net, error) {
	nodes, err := p.check()
	if err != nil {
		return nil, err
	}
	n := &Net{
		name:   m.Name,
		post:   ticks(m.Value("postNs")),
		bell:   ticks(m.Value("doorbellNs")),
		poll:   ticks(m.Value("pollNs")),
		hop:    ticks(m.Value("hopNs")),
		word:   ticks(8 * m.Value("byteNs")),
		packet: int(m.Value("packetB")) / 8,
		rank:   make([]rankPlace, len(p.Node)),
		nic:    make([]nic, nodes),
		unit:   newUnit(m, nodes, p.BigFootprint),
		qpCap:  int64(m.Value("qpCap")),
		qps:    int64(max(p.QPs, 1)),
		host:   newHost(m),
		max:    int(m.Value("maxRdAtomic")),
	}
	for k := range n.cost {
		n.cost[k] = newCost(m, verb(rma.Kind(k)))
	}
	n.send = newCost(m, send)
	for r := range n.rank {
		q := &n.rank[r]
		q.node, q.last, q.core = int32(p.Node[r]), -1, int32(r)
		if p.Core != nil {
			q.core = int32(p.Core[r])
		}
		if p.Socket != nil {
			q.socket = int32(p.Socket[r])
		}
	}
	for _, level := range p.Groups {
		g := make([]int32, nodes)
		for i := range g {
			g[i] = int32(level[i])
		}
		n.groups = append(n.groups, g)
	}
	return n, nil
}

// newCost is the cost of a verb on a machine.
func newCost(m *Machine, v int) cost {
	name := verbNames[v]
	_, flight := m.flight(v, false)
	_, loop := m.flight(v, true)
	return cost{
		flight:    ticks(flight),
		loop:      ticks(loop),
		initiator: ticks(m.Value("slotNs." + name + ".initiator")),
		responder: ticks(m.Value("slotNs." + name + ".responder")),
		miss:      ticks(m.Value("qpMissNs." + name)),
		atomic:    v == cas || v == faa,
		brings:    v == read,
		datagram:  v == send,
	}
}

// costOf is the cost of a kind of operation.
func (n *Net) costOf(kind rma.Kind) *cost {
	if kind == Send {
		return &n.send
	}
	return &n.cost[kind]
}

// verb is how a NIC does an operation.
func verb(k rma.Kind) int {
	switch k {
	case rma.KindGet, rma.KindGetBulk:
		return read
	case rma.KindPut, rma.KindPutBulk:
		return write
	case rma.KindCompareAndSwap:
		return cas
	case Send:
		return send
	case rma.KindAccumulate, rma.KindFetchAndOp:
	}
	return faa
}

// Name is the name of the machine.
func (n *Net) Name() string { return n.name }

// MaxOutstanding is how many operations with an answer (Get and the atomics) a rank may have
// on their way to one node. The caller of Issue must keep to it.
func (n *Net) MaxOutstanding() int { return n.max }

// Issue is called when a rank hands an operation to its NIC. It returns when the CPU is free
// again, and when the operation arrives at the target's NIC. first: no other operation of
// the rank is on its way to that target, so that the doorbell is rung. Calls may come a
// little out of the order of time, as from a rank that posts a list.
func (n *Net) Issue(now int64, from, to int, kind rma.Kind, words int, first bool) (free, arrives int64) {
	c := n.costOf(kind)
	r := &n.rank[from]
	a, b := r.node, n.rank[to].node
	if n.qpCap > 0 && (r.last != b || c.datagram) {
		n.connect(r, a, b, c)
	}
	own := &n.nic[a]
	post := n.post
	if first {
		post += n.bell
	}
	t := r.cpu.take(in(now), post)
	free = out(t)
	slot := c.initiator
	if own.missed() {
		slot += c.miss
	}
	t = own.slots.take(t, slot)
	if words > 1 {
		own.slots.left += int64((words-1)/n.packet) * c.initiator // further packets, while it streams
		if !c.brings {
			t = own.out.take(t, int64(words-1)*n.word)
		}
	}
	if a == b {
		return free, out(t + c.loop)
	}
	t += c.flight
	if n.groups != nil {
		t += n.hops(a, b) * n.hop
	}
	return free, out(t)
}

// Serve is called at arrival, in the order of time: when the operation takes effect.
// word is the number of the word in the job.
func (n *Net) Serve(now int64, from, to int, kind rma.Kind, words int, word uint64) (effect int64) {
	c := n.costOf(kind)
	b := n.rank[to].node
	target := &n.nic[b]
	slot := c.responder
	if target.missed() {
		slot += c.miss
	}
	t := in(now)
	if words > 1 && !c.brings { // it has streamed in while it came, unless others did
		length := int64(words-1) * n.word
		t = max(t, target.in.take(t-length, length))
	}
	t = target.slots.take(t, slot)
	if words > 1 {
		target.slots.left += int64((words-1)/n.packet) * c.responder
	}
	if c.atomic {
		t = n.unit.take(b, t, word)
	}
	if c.datagram {
		t = n.rank[to].cpu.take(t, n.poll)
	}
	return out(t)
}

// Reply is called at the effect: when the origin has seen the answer.
func (n *Net) Reply(now int64, from, to int, kind rma.Kind, words int) (done int64) {
	c := n.costOf(kind)
	if c.datagram {
		return now
	}
	r := &n.rank[from]
	a, b := r.node, n.rank[to].node
	t := in(now)
	length := int64(0)
	if words > 1 && c.brings {
		length = int64(words-1) * n.word
		t = n.nic[b].out.take(t, length)
	}
	if a == b {
		t += c.loop
	} else {
		t += c.flight
		if n.groups != nil {
			t += n.hops(a, b) * n.hop
		}
	}
	if length > 0 {
		t = max(t, n.nic[a].in.take(t-length, length))
	}
	return out(r.cpu.take(t, n.poll))
}
