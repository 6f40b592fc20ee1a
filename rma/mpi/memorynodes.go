//go:build cgo

package mpi

// #include "shim.h"
import "C"

import (
	"fmt"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rmalock/rmalock/rma"
)

// memory is the memory nodes of a job, as all its ranks know them.
type memory struct {
	all   *comm // all ranks of the job
	ranks []int // of the memory nodes in all, ascending
	users []int // the other ones
}

// A joint is a communicator of all ranks of a Comm, the users, and of all memory nodes. It is for
// MPI_Win_create over words of the memory nodes, which all of them call.
type joint struct {
	*comm
	id     int64 // at the memory nodes; rank 0 of the users knows it
	nodes  []int // ranks of the memory nodes in it
	opened int64 // windows
}

// memoryRanks chooses k ranks of a job to be memory nodes: by turns over the hosts the last rank
// of each, beginning with the host that has the last rank of the job. nodeOf has the host of
// each rank. The result is in ascending order.
func memoryRanks(nodeOf []int64, k int) []int {
	var hosts []int64
	ranksOf := map[int64][]int{}
	for r, host := range slices.Backward(nodeOf) {
		if ranksOf[host] == nil {
			hosts = append(hosts, host)
		}
		ranksOf[host] = append(ranksOf[host], r)
	}
	var chosen []int
	for turn := 0; len(chosen) < k; turn++ {
		for _, host := range hosts {
			if len(chosen) < k && turn < len(ranksOf[host]) {
				chosen = append(chosen, ranksOf[host][turn])
			}
		}
	}
	slices.Sort(chosen)
	return chosen
}

// divide makes k ranks of the job memory nodes, and returns the communicator of the memory nodes
// or of the other ranks, which one the caller is. Collective.
func (c *comm) divide(k int) (mine *comm, serves bool, err error) {
	nodeOf, err := c.gather([]int64{int64(c.node.Index)}, false)
	if err != nil {
		return nil, false, err
	}
	m := &memory{all: c, ranks: memoryRanks(nodeOf, k)}
	for r := range c.size {
		if !slices.Contains(m.ranks, r) {
			m.users = append(m.users, r)
		}
	}
	c.memory, c.label = m, m.label
	serves = m.node(c.rank) >= 0
	part, err := c.Split(int(flag(serves)), c.rank)
	if err != nil {
		return nil, false, err
	}
	mine = part.(*comm)
	mine.oversubscribed, mine.awaitResults = c.oversubscribed, c.awaitResults // memory nodes take cores, too
	mine.h.yields, mine.h.await_results = c.h.yields, c.h.await_results
	if serves {
		how := C.int(C.SHIM_SERVES_EAGERLY)
		if c.oversubscribed {
			how = C.SHIM_SERVES_WITH_NAPS
		}
		c.h.serves, mine.h.serves = how, how
		mine.label = func(rank int) string { return m.label(m.ranks[rank]) }
	} else {
		mine.joint = &joint{comm: c, nodes: m.ranks}
	}
	return mine, serves, nil
}

// node is the index of the memory node that a rank of the job is, or -1.
func (m *memory) node(rank int) int { return slices.Index(m.ranks, rank) }

// label names a rank of the job in messages.
func (m *memory) label(rank int) string {
	if i := m.node(rank); i >= 0 {
		return fmt.Sprintf("memory node %d, which is rank %d of the job", i, rank)
	}
	return fmt.Sprintf("rank %d", slices.Index(m.users, rank))
}

// live returns an error that names a memory node of this host that died. A memory node looks at
// the users, too: without them it would wait for ever.
func (m *memory) live(what string) error {
	if m == nil || m.all.pids == nil {
		return nil
	}
	serves := m.node(m.all.rank) >= 0
	for i, r := range m.all.node.Ranks {
		if (serves || m.node(r) >= 0) && r != m.all.rank && exited(m.all.pids[i]) {
			return gone(what, m.label(r), m.all.pids[i])
		}
	}
	return nil
}

// What users tell the memory nodes. A command goes to memory node 0, which passes it on to all:
// so all obey the commands of several communicators in one order. It is sent when all ranks of
// its communicator are inside the call, so that none of them keeps the memory nodes waiting.
const (
	commandJoin  = iota // number of users: make a joint with those whose list follows
	commandOpen         // joint, window, words: open a window
	commandClose        // joint, window: close it
	commandEnd          // the job ends
)

// A command has its operands, and the rank and the tag of messages that belong to it.
type command struct {
	op       int64
	operands [3]int64
	from     int64
	tag      int64
}

const (
	commandWords = 6
	commandTag   = 1
	tags         = 16000 // MPI grants 32767
)

// lastTag counts the commands of this process. Some of several goroutines may be under way.
var lastTag atomic.Int64

// tell sends a command to the memory nodes, from one rank.
func (c *comm) tell(op int64, operands ...int64) (command, error) {
	cmd := command{op: op, from: int64(c.memory.all.rank), tag: commandTag + 1 + lastTag.Add(1)%tags}
	copy(cmd.operands[:], operands)
	o := cmd.operands
	return cmd, c.send([]int64{cmd.op, o[0], o[1], o[2], cmd.from, cmd.tag}, c.memory.ranks[0], commandTag)
}

// send sends words to a rank of the job.
func (c *comm) send(message []int64, to int, tag int64) error {
	what := "a message to " + c.memory.label(to)
	buf := words(len(message))
	copy(buf, message)
	if rc := C.shim_isend(c.memory.all.h, ptr(buf), C.int(len(buf)), C.int(to), C.int(tag), c.req); rc != C.MPI_SUCCESS {
		return failed(what, rc)
	}
	if err := c.wait(what, 0); err != nil {
		return err // the buffer stays MPI's
	}
	freeWords(buf)
	return nil
}

// receive receives n words from a rank of the job, or from any for -1.
func (c *comm) receive(n, from int, tag int64) ([]int64, error) {
	const what = "waiting for a message"
	buf := words(n)
	if rc := C.shim_irecv(c.memory.all.h, ptr(buf), C.int(n), C.int(from), C.int(tag), c.req); rc != C.MPI_SUCCESS {
		return nil, failed(what, rc)
	}
	if err := c.wait(what, 0); err != nil {
		return nil, err
	}
	out := slices.Clone(buf)
	freeWords(buf)
	return out, nil
}

// join makes the joint of c where there is none. Collective.
func (c *comm) join() (*joint, error) {
	if c.joint != nil {
		return c.joint, nil
	}
	m := c.memory
	users, err := c.gather([]int64{int64(m.all.rank)}, false)
	if err != nil {
		return nil, err
	}
	id := []int64{-1}
	if c.rank == 0 {
		var cmd command
		if cmd, err = c.tell(commandJoin, int64(len(users))); err == nil {
			err = c.send(users, m.ranks[0], cmd.tag)
		}
		if err == nil { // the answer comes when all memory nodes are at the command
			id, err = c.receive(1, m.ranks[0], cmd.tag)
		}
	}
	if err := rma.Agree(c, err); err != nil {
		return nil, err
	}
	c.joint, err = m.newJoint(users, id[0])
	return c.joint, err
}

// newJoint makes the communicator of some users and the memory nodes. They all call it.
func (m *memory) newJoint(users []int64, id int64) (*joint, error) {
	n := len(users) + len(m.ranks)
	ranks := make([]C.int, 0, n)
	for _, r := range users {
		ranks = append(ranks, C.int(r))
	}
	j := &joint{comm: newComm(), id: id}
	for _, r := range m.ranks {
		j.nodes = append(j.nodes, len(ranks))
		ranks = append(ranks, C.int(r))
	}
	if rc := C.shim_comm_of(m.all.h, &ranks[0], C.int(n), j.h); rc != C.MPI_SUCCESS {
		return nil, failed("opening a communicator with the memory nodes", rc)
	}
	j.memory, j.label = m, func(rank int) string { return m.label(int(ranks[rank])) }
	return j, j.learn()
}

// allocateRemote opens a window of the memory nodes. spec is the same at all ranks. Collective.
func (c *comm) allocateRemote(spec rma.Spec) (*rma.Window, error) {
	j, err := c.join()
	if err != nil {
		return nil, err
	}
	j.opened++
	if c.rank == 0 {
		if _, err := c.tell(commandOpen, j.id, j.opened, int64(spec.Words())); err != nil {
			return nil, err
		}
	}
	t := &transport{c: c, far: j.comm, hosts: j.nodes, spec: spec, joint: j, opened: j.opened}
	if err := t.openRemote(); err != nil {
		return nil, err
	}
	return rma.New(rma.Config{
		Comm: c, Spec: spec, T: t,
		Caps:           rma.Caps{Transport: c.Describe(), FarRanks: true, NativeSwap: true, AtomicPut: true},
		Oversubscribed: c.oversubscribed,
	}), nil
}

// openRemote opens a window of memory nodes. They and the users call it.
func (t *transport) openRemote() error {
	t.number = register(t.spec.Name, func(target int) string {
		if target < 0 {
			return "all memory nodes"
		}
		return t.c.memory.label(t.c.memory.ranks[slices.Index(t.hosts, target)])
	})
	bytes := partBytes(t.spec.Words())
	room := int64(math.MaxInt64)
	if t.serves() {
		room = available() / int64(t.c.memory.here())
	}
	least, err := t.far.reduce(reduceMin, room)
	if err != nil {
		return err
	}
	if bytes > least[0] {
		return fmt.Errorf("mpi: window %q needs %d bytes at each memory node, and one has %d available: %w", t.spec.Name, bytes, least[0], rma.ErrMemory)
	}
	if t.serves() {
		t.s, err = ownSegment(t.spec.Name, bytes)
	}
	if err := rma.Agree(t.far, err); err != nil {
		t.s.free()
		return err
	}
	if err := t.openFar(); err != nil {
		t.s.free()
		return err
	}
	return nil
}

// serves reports whether the caller is a memory node of the window.
func (t *transport) serves() bool { return slices.Contains(t.hosts, t.far.rank) }

// here is the number of memory nodes on the caller's host.
func (m *memory) here() int {
	n := 0
	for _, r := range m.all.node.Ranks {
		if m.node(r) >= 0 {
			n++
		}
	}
	return n
}

// serve is what a memory node does: it obeys commands until the job ends, and lets MPI carry the
// users' operations on its words meanwhile. nodes is the communicator of the memory nodes.
func (m *memory) serve(nodes *comm) error {
	joints := []*joint{{comm: m.all, nodes: m.ranks}}
	windows := map[[2]int64]*transport{}
	for {
		cmd, err := m.next(nodes)
		if err != nil {
			return err
		}
		which := [2]int64{cmd.operands[0], cmd.operands[1]}
		switch cmd.op {
		case commandJoin:
			j, err := m.admit(nodes, cmd, int64(len(joints)))
			if err != nil {
				return err
			}
			joints = append(joints, j)
		case commandOpen:
			j := joints[which[0]]
			t := &transport{c: j.comm, far: j.comm, hosts: j.nodes, spec: rma.DataSpec("of memory nodes", int(cmd.operands[2]))}
			if t.openRemote() == nil { // otherwise the users have the error too
				windows[which] = t
			}
		case commandClose:
			if err := windows[which].close(); err != nil {
				return err
			}
			delete(windows, which)
		case commandEnd:
			return nil
		}
	}
}

// next is the next command, for all memory nodes.
func (m *memory) next(nodes *comm) (command, error) {
	mine := make([]int64, commandWords)
	var err error
	if nodes.rank == 0 {
		if mine, err = nodes.receive(commandWords, -1, commandTag); err != nil {
			return command{}, err
		}
	}
	all, err := nodes.gather(mine, false)
	if err != nil {
		return command{}, err
	}
	return command{op: all[0], operands: [3]int64(all[1:4]), from: all[4], tag: all[5]}, nil
}

// admit makes a joint as commandJoin says.
func (m *memory) admit(nodes *comm, cmd command, id int64) (*joint, error) {
	users := make([]int64, cmd.operands[0])
	var err error
	if nodes.rank == 0 {
		if users, err = nodes.receive(len(users), int(cmd.from), cmd.tag); err != nil {
			return nil, err
		}
	}
	all, err := nodes.gather(users, false)
	if err != nil {
		return nil, err
	}
	if nodes.rank == 0 {
		if err := nodes.send([]int64{id}, int(cmd.from), cmd.tag); err != nil {
			return nil, err
		}
	}
	return m.newJoint(all[:len(users)], id)
}

// serveUntilEnd serves at a memory node, and ends its part of the job.
func (w *World) serveUntilEnd() error {
	err := w.memory.serve(w.comm)
	if err != nil {
		fmt.Fprintf(os.Stderr, "rmalock: %s: %v\n", w.memory.label(w.all.rank), err)
		time.Sleep(flushStderrFor)
		w.Abort(1)
		return err
	}
	w.deaths.end()
	w.end(true)
	return ErrServed
}

// dismiss tells the memory nodes that the job ends. Collective over the users.
func (w *World) dismiss() error {
	if w.memory == nil || w.rank != 0 {
		return nil
	}
	_, err := w.tell(commandEnd)
	return err
}
