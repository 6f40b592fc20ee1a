//go:build cgo

package mpi

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"github.com/rmalock/rmalock/internal/boot"
	"github.com/rmalock/rmalock/rma"
)

// comm is a communicator of this package's own.
type comm struct {
	h        *C.shim_comm
	req      *C.MPI_Request
	rank     int
	size     int
	node     rma.Node
	nodeRank int   // index of the caller in node.Ranks
	pids     []int // of the node's ranks, as in node.Ranks; nil if some cannot be seen
	memory   *memory
	joint    *joint                // with the memory nodes, once there is one
	label    func(rank int) string // of a rank, in messages; nil for "rank 3"

	oversubscribed bool // the machine has more ranks than cores
	awaitResults   bool // oversubscribed, and MPI would keep the core while it waits
}

var (
	_ rma.Comm        = (*comm)(nil)
	_ rma.EpochLocker = (*comm)(nil)
)

func newComm() *comm {
	return &comm{
		h:   (*C.shim_comm)(C.calloc(1, C.sizeof_shim_comm)),
		req: (*C.MPI_Request)(C.calloc(1, C.sizeof_MPI_Request)),
	}
}

// learn fills in what Go keeps of a communicator that C has opened. Collective.
func (c *comm) learn() error {
	if rc := C.shim_comm_describe(c.h); rc != C.MPI_SUCCESS {
		return failed("learning the ranks of the communicator", rc)
	}
	c.rank, c.size, c.nodeRank = int(c.h.rank), int(c.h.size), int(c.h.node_rank)
	n := int(c.h.node_size)
	ranks := (*C.int)(C.malloc(C.size_t(n) * C.sizeof_int))
	defer C.free(unsafe.Pointer(ranks))
	if rc := C.shim_node_ranks(c.h, ranks); rc != C.MPI_SUCCESS {
		return failed("learning the ranks of the node", rc)
	}
	c.node.Ranks = make([]int, n)
	for i, r := range unsafe.Slice(ranks, n) {
		c.node.Ranks[i] = int(r)
	}
	if err := c.learnPeers(); err != nil {
		return err
	}
	return c.learnMachine()
}

// learnMachine numbers the nodes by their first ranks, and finds out whether each rank has a
// core. A launcher may have bound every rank to its own: all the cores of all ranks of the
// machine count. A machine may be several nodes: containers, or pretended hosts. Collective.
func (c *comm) learnMachine() error {
	type place struct{ first, machine int64 }
	here := place{first: int64(c.node.Ranks[0]), machine: machine(c.node)}
	gathered, err := c.gather([]int64{here.first, here.machine}, false)
	if err != nil {
		return err
	}
	places := make([]place, c.size)
	nodesOf := map[int64]int{} // by machine
	shared := false            // nodes share a machine
	for r := range places {
		p := place{gathered[2*r], gathered[2*r+1]}
		places[r] = p
		if p.first != int64(r) {
			continue
		}
		c.node.Count++
		if p.first < here.first {
			c.node.Index++
		}
		nodesOf[p.machine]++
		shared = shared || nodesOf[p.machine] > 1
	}
	var mask [C.SHIM_MAX_CPUS / 64]int64
	C.shim_affinity((*C.int64_t)(unsafe.Pointer(&mask[0])))
	masks, err := c.gather(mask[:], !shared)
	if err != nil {
		return err
	}
	var union [len(mask)]uint64
	ranks := 0
	for r := range len(masks) / len(mask) {
		if shared && places[r].machine != here.machine {
			continue
		}
		ranks++
		for i := range mask {
			union[i] |= uint64(masks[r*len(mask)+i])
		}
	}
	cores := 0
	for _, u := range union {
		cores += bits.OnesCount64(u)
	}
	c.oversubscribed = ranks > cores
	c.awaitResults = c.oversubscribed && Library == "MPICH"
	c.h.yields, c.h.await_results = flag(!c.awaitResults), flag(c.awaitResults)
	return nil
}

// machine is a number that ranks on one kernel share, whatever their host is called: part of
// its boot id.
func machine(n rma.Node) int64 {
	unknown := -int64(n.Ranks[0]) - 1
	text := boot.ID()
	if len(text) < 36 {
		return unknown
	}
	id, err := strconv.ParseInt(text[24:36], 16, 64)
	if err != nil {
		return unknown
	}
	return id
}

// free releases the communicator. No operation may follow.
func (c *comm) free() {
	if c.h != nil {
		C.shim_comm_free(c.h)
		C.free(unsafe.Pointer(c.h))
		C.free(unsafe.Pointer(c.req))
		c.h = nil
	}
}

func (c *comm) Rank() int      { return c.rank }
func (c *comm) Size() int      { return c.size }
func (c *comm) Node() rma.Node { return c.node }

// MemoryNodes is of rma.Comm.
func (c *comm) MemoryNodes() int {
	if c.memory == nil {
		return 0
	}
	return len(c.memory.ranks)
}

// name names a rank in messages.
func (c *comm) name(rank int) string {
	if c.label != nil {
		return c.label(rank)
	}
	return rankName(rank)
}

// rankName names a rank, or all for -1.
func rankName(rank int) string {
	if rank < 0 {
		return "all ranks"
	}
	return "rank " + strconv.Itoa(rank)
}

// processStart is a moment, and startClock what CLOCK_MONOTONIC showed then: the same clock
// for all processes of a machine.
var (
	processStart = time.Now()
	startClock   = monotonic()
)

func (c *comm) Now() int64     { return startClock + int64(time.Since(processStart)) }
func (c *comm) Sleep(ns int64) { time.Sleep(time.Duration(ns)) }

func (c *comm) Describe() string {
	far := "MPI_Win_create"
	if process.osc != "" {
		far = "osc " + process.osc
	}
	s := process.library + ", one node: shared memory, no MPI on the way"
	if c.node.Count > 1 {
		s = process.library + ", " + strconv.Itoa(c.node.Count) + " nodes: shared memory and " + far
	}
	if c.memory != nil {
		s += ", memory nodes: " + strconv.Itoa(len(c.memory.ranks)) + " through " + far
	}
	if !process.helper && (c.node.Count > 1 || c.memory != nil) {
		s += ", no progress helper"
	}
	return s
}

// wait waits for the request in c.req, and looks every second whether the node-mates live. It
// returns errTimeout after limit; a limit of 0 is none.
func (c *comm) wait(what string, limit time.Duration) error {
	const inC = 50 * time.Millisecond // at a time
	start := time.Now()
	checked := start
	for {
		rc := C.shim_wait(c.h, c.req, C.int64_t(inC))
		if rc == C.MPI_SUCCESS {
			return nil
		}
		if rc != C.SHIM_NOT_YET {
			return failed(what, rc)
		}
		now := time.Now()
		if now.Sub(checked) > lifeCheck {
			checked = now
			if err := c.peersLive(what); err != nil {
				return err
			}
		}
		if limit > 0 && now.Sub(start) > limit {
			return errTimeout
		}
	}
}

func (c *comm) Barrier() error {
	if rc := C.shim_ibarrier(c.h, c.req); rc != C.MPI_SUCCESS {
		return failed("Barrier", rc)
	}
	return c.wait("Barrier", 0)
}

// barrierWithin is a Barrier with a time limit. After false the communicator is of no use.
func (c *comm) barrierWithin(limit time.Duration) bool {
	return C.shim_ibarrier(c.h, c.req) == C.MPI_SUCCESS && c.wait("Barrier", limit) == nil
}

// words is C memory for n words. MPI gets no Go memory: its libraries cache
// registrations by address and do not see Go's own munmap.
func words(n int) []int64 {
	p := C.malloc(C.size_t(max(n, 1)) * 8)
	if p == nil {
		panic("mpi: out of memory")
	}
	return unsafe.Slice((*int64)(p), n)
}

func freeWords(w []int64) { C.free(unsafe.Pointer(unsafe.SliceData(w))) }

func ptr(w []int64) *C.int64_t { return (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(w))) }

// gather is Allgather over the communicator or over the node.
func (c *comm) gather(in []int64, onNode bool) ([]int64, error) {
	ranks := c.size
	if onNode {
		ranks = len(c.node.Ranks)
	}
	send, recv := words(len(in)), words(len(in)*ranks)
	copy(send, in)
	rc := C.shim_iallgather(c.h, flag(onNode), ptr(send), C.int(len(in)), ptr(recv), c.req)
	if rc != C.MPI_SUCCESS {
		return nil, failed("Allgather", rc)
	}
	if err := c.wait("Allgather", 0); err != nil {
		return nil, err // the buffers stay MPI's
	}
	out := append([]int64(nil), recv...)
	freeWords(send)
	freeWords(recv)
	return out, nil
}

func (c *comm) Allgather(in []int64) ([]int64, error) {
	// Ranks that pass different lengths would corrupt each other's buffers.
	n := int64(len(in))
	if err := c.same("Allgather", n, "words"); err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, nil
	}
	return c.gather(in, false)
}

const (
	reduceSum = C.SHIM_REDUCE_SUM
	reduceMin = C.SHIM_REDUCE_MIN
	reduceMax = C.SHIM_REDUCE_MAX
)

func (c *comm) reduce(op int, in ...int64) ([]int64, error) {
	send, recv := words(len(in)), words(len(in))
	copy(send, in)
	if rc := C.shim_iallreduce(c.h, ptr(send), C.int(len(in)), ptr(recv), C.int(op), c.req); rc != C.MPI_SUCCESS {
		return nil, failed("Allreduce", rc)
	}
	if err := c.wait("Allreduce", 0); err != nil {
		return nil, err
	}
	out := append([]int64(nil), recv...)
	freeWords(send)
	freeWords(recv)
	return out, nil
}

// same checks that all ranks passed the same value.
func (c *comm) same(what string, v int64, unit string) error {
	m, err := c.reduce(reduceMax, v, -v)
	if err != nil {
		return err
	}
	if m[0] != -m[1] {
		return fmt.Errorf("mpi: %s: rank %d passed %d %s, others between %d and %d: %w", what, c.rank, v, unit, -m[1], m[0], rma.ErrMismatch)
	}
	return nil
}

func (c *comm) Split(color, key int) (rma.Comm, error) {
	if err := c.Barrier(); err != nil {
		return nil, err
	}
	s := newComm()
	if rc := C.shim_comm_split(c.h, C.int(color), C.int(key), s.h); rc != C.MPI_SUCCESS {
		return nil, failed("Split", rc)
	}
	if color < 0 {
		return nil, nil
	}
	s.memory = c.memory
	if err := s.learn(); err != nil {
		return nil, err
	}
	return s, nil
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// host is the name of this machine, for messages.
func host() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown host"
	}
	return name
}

// monotonic is what CLOCK_MONOTONIC shows at processStart, to less than a microsecond on a
// machine that is not busy: of some readings the one in the least time counts.
func monotonic() int64 {
	shortest, at := time.Duration(1<<62), int64(0)
	for range 8 {
		var ts syscall.Timespec
		before := time.Now()
		_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&ts)), 0)
		if took := time.Since(before); took < shortest {
			shortest, at = took, ts.Nano()-int64(before.Add(took/2).Sub(processStart))
		}
	}
	return at
}
