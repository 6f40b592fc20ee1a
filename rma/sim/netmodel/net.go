package netmodel

import (
	"math"

	"github.com/rmalock/rmalock/rma"
)

// Device, added to the number of a word, says that the word is in the NIC's own memory.
const Device uint64 = 1 << 63

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
	pair   []pair
	cpu    []cpu
	nic    []nic
	groups [][]int32
	unit   unit
	line   int64 // between two READs of one line
	device int64 // span of the atomic unit for a word in NIC memory
	hol    bool
	qpCap  int64
	qps    []int32 // connections of a pair towards a node
	host   host
	max    int
	jitter jitter
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

// rankPlace is the place of one rank or memory node.
type rankPlace struct {
	node    int32
	core    int32
	socket  int32
	cpu     int32
	pair    int32
	receive int64 // CPU for a message
}

// nic is the NIC of one node.
type nic struct {
	slots    server // one for both sides
	out, in  server // the link, for operations of more than a word
	fifo     int64  // when the last atomic has got its lane, if it holds up what comes after it
	hot      lines
	live     int64  // connections
	misses   uint32 // probability of a miss, times 2^32
	weyl     uint32
	datagram bool
}

// New returns the idle network of a machine on which ranks and memory nodes lie as p says.
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
		line:   ticks(m.Value("lineReadNs")),
		device: ticks(m.Value("deviceWordNs")),
		hol:    m.Value("holBlocking") != 0,
		qpCap:  int64(m.Value("qpCap")),
		host:   newHost(m, p.Coroutines),
		max:    int(m.Value("maxRdAtomic")),
	}
	for k := range n.cost {
		n.cost[k] = newCost(m, verb(rma.Kind(k)))
	}
	n.send = newCost(m, send)
	n.place(m, &p)
	for _, level := range p.Groups {
		g := make([]int32, nodes)
		for i := range g {
			g[i] = int32(level[i])
		}
		n.groups = append(n.groups, g)
	}
	return n, nil
}

// place puts the ranks in their places, and shares out CPUs and connections.
func (n *Net) place(m *Machine, p *Placement) {
	type core struct{ node, core int }
	cpus := map[core]int32{}
	for r := range n.rank {
		q := &n.rank[r]
		q.node, q.core, q.cpu, q.pair, q.receive = int32(p.Node[r]), int32(r), int32(r), int32(r), n.poll
		if p.Core != nil {
			q.core = int32(p.Core[r])
		}
		if p.Socket != nil {
			q.socket = int32(p.Socket[r])
		}
		if p.Pair != nil {
			q.pair = int32(p.Pair[r])
		}
		if p.Coroutines {
			c := core{p.Node[r], int(q.core)}
			if _, ok := cpus[c]; !ok {
				cpus[c] = int32(len(cpus))
			}
			q.cpu = cpus[c]
		}
	}
	for _, r := range p.Servers {
		n.rank[r].receive += ticks(m.Value("serverNs"))
	}
	n.cpu, n.pair = make([]cpu, len(n.rank)), make([]pair, len(n.rank))
	for i := range n.pair {
		n.pair[i].last, n.cpu[i].rank, n.cpu[i].change = -1, -1, ticks(m.Value("switchNs"))
	}
	n.qps = make([]int32, len(n.nic))
	for _, q := range n.rank {
		if p.EachRank || n.qps[q.node] == 0 {
			n.qps[q.node] += int32(max(p.QPs, 1))
		}
	}
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
	case rma.KindCompareAndSwap, rma.KindMaskedSwap:
		return cas
	case Send:
		return send
	case rma.KindAccumulate, rma.KindFetchAndOp:
	}
	return faa
}

// Name is the name of the machine.
func (n *Net) Name() string { return n.name }

// Connection is the number of the connection by which a rank reaches a target, and how many
// READs and atomics may be under way on it, or 0 for any. The caller of Issue keeps to that.
func (n *Net) Connection(from, to int) (id, limit int) {
	if n.max >= rma.MaxPending {
		return 0, 0
	}
	b := n.rank[to].node
	return int(n.rank[from].pair)*len(n.nic) + int(b), n.max * int(n.qps[b])
}

// Issue is called when a rank hands an operation to its NIC. It returns when the CPU is free
// again, and when the operation arrives at the target's NIC. first: no other operation of
// the rank is on its way to that target, so that the doorbell is rung. Calls may come a
// little out of the order of time, as from a rank that posts a list.
func (n *Net) Issue(now int64, from, to int, kind rma.Kind, words int, first bool) (free, arrives int64) {
	c := n.costOf(kind)
	r := &n.rank[from]
	a, b := r.node, n.rank[to].node
	if pair := &n.pair[r.pair]; n.qpCap > 0 && (pair.last != b || c.datagram) {
		n.connect(pair, a, b, c)
	}
	own := &n.nic[a]
	post := n.post
	if first {
		post += n.bell
	}
	t := n.cpu[r.cpu].take(from, in(now), post)
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
	t += n.jitter.of(c.flight)
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
	t = target.slots.take(max(t, target.fifo), slot)
	if words > 1 {
		target.slots.left += int64((words-1)/n.packet) * c.responder
	}
	switch {
	case c.atomic:
		span := n.unit.span
		if word&Device != 0 && n.device > 0 {
			span = n.device
		}
		var begins int64
		if begins, t = n.unit.take(b, t, word, span); n.hol {
			target.fifo = begins
		}
	case c.brings && n.line > 0:
		t = target.hot.take(t, word>>3, n.line)
	case c.datagram:
		r := &n.rank[to]
		t = n.cpu[r.cpu].take(to, t, r.receive)
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
		t += n.jitter.of(c.flight)
		if n.groups != nil {
			t += n.hops(a, b) * n.hop
		}
	}
	if length > 0 {
		t = max(t, n.nic[a].in.take(t-length, length))
	}
	return out(n.cpu[r.cpu].take(from, t, n.poll))
}
