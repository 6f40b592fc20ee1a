//go:build cgo

package mpi

// #include <stdlib.h>
// #include "rl.h"
import "C"

import (
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"github.com/rmalock/rmalock/internal/boot"
	"github.com/rmalock/rmalock/rma"
)

// comm is a communicator of this package's own.
type comm struct {
	h    *C.rl_comm
	req  *C.MPI_Request
	rank int
	size int
	node rma.Node
	mate int   // index of the caller in node.Ranks
	pids []int // of the node-mates, as in node.Ranks; nil if some cannot be seen

	perCore int  // ranks of the machine to a core, rounded down
	crowded bool // there are more ranks than cores
	polite  bool // crowded, and MPI would keep the core while it waits
}

var (
	_ rma.Comm        = (*comm)(nil)
	_ rma.EpochLocker = (*comm)(nil)
)

func newComm() *comm {
	return &comm{
		h:   (*C.rl_comm)(C.calloc(1, C.sizeof_rl_comm)),
		req: (*C.MPI_Request)(C.calloc(1, C.sizeof_MPI_Request)),
	}
}

// learn fills in what Go keeps of a communicator that C has opened.
func (c *comm) learn() error {
	c.rank, c.size, c.mate = int(c.h.rank), int(c.h.size), int(c.h.node_rank)
	n := int(c.h.node_size)
	ranks := (*C.int)(C.malloc(C.size_t(n) * C.sizeof_int))
	defer C.free(unsafe.Pointer(ranks))
	if rc := C.rl_node_ranks(c.h, ranks); rc != C.MPI_SUCCESS {
		return failed("learning the ranks of the node", rc)
	}
	c.node = rma.Node{Index: int(c.h.node_index), Count: int(c.h.node_count), Ranks: make([]int, n)}
	for i, r := range unsafe.Slice(ranks, n) {
		c.node.Ranks[i] = int(r)
	}
	if err := c.learnMates(); err != nil {
		return err
	}
	return c.countCores()
}

// countCores finds out whether ranks have a core each. A launcher may have bound
// every rank to its own: what counts is all the cores of all ranks of the machine.
// These are more than the node's where nodes are containers or pretended hosts.
func (c *comm) countCores() error {
	ids, err := c.gather([]int64{machine(c.node)}, false)
	if err != nil {
		return err
	}
	mates := 0
	for _, id := range ids {
		if id == ids[c.rank] {
			mates++
		}
	}
	shared, err := c.reduce(reduceMax, int64(mates-len(c.node.Ranks)))
	if err != nil {
		return err
	}
	var mask [C.RL_CPUS / 64]int64
	C.rl_affinity((*C.int64_t)(unsafe.Pointer(&mask[0])))
	onNode := shared[0] == 0 // no node shares its machine: the node's masks will do
	all, err := c.gather(mask[:], onNode)
	if err != nil {
		return err
	}
	cores := 0
	for i := range mask {
		union := uint64(0)
		for r := range len(all) / len(mask) {
			if onNode || ids[r] == ids[c.rank] {
				union |= uint64(all[r*len(mask)+i])
			}
		}
		cores += bits.OnesCount64(union)
	}
	c.perCore = mates / max(1, cores)
	c.crowded = mates > cores
	c.polite = c.crowded && Library == "MPICH"
	c.h.polite = flag(c.polite)
	return nil
}

// RanksPerCore is for rma.RanksPerCore.
func (c *comm) RanksPerCore() int { return c.perCore }

// machine is a number that ranks on one kernel share, whatever their host is
// called: part of its boot id.
func machine(n rma.Node) int64 {
	text := boot.ID()
	if len(text) < 36 {
		return -int64(n.Index) - 1
	}
	id, err := strconv.ParseInt(text[24:36], 16, 64)
	if err != nil {
		return -int64(n.Index) - 1
	}
	return id
}

// free releases the communicator. Nobody uses it any more.
func (c *comm) free() {
	if c.h != nil {
		C.rl_comm_free(c.h)
		C.free(unsafe.Pointer(c.h))
		C.free(unsafe.Pointer(c.req))
		c.h = nil
	}
}

func (c *comm) Rank() int      { return c.rank }
func (c *comm) Size() int      { return c.size }
func (c *comm) Node() rma.Node { return c.node }

var epoch = time.Now()

func (c *comm) Now() int64     { return int64(time.Since(epoch)) }
func (c *comm) Sleep(ns int64) { time.Sleep(time.Duration(ns)) }

func (c *comm) Describe() string {
	if c.node.Count == 1 {
		return process.library + ", one node: shared memory, no MPI on the way"
	}
	s := process.library + ", " + strconv.Itoa(c.node.Count) + " nodes: shared memory and "
	if process.osc != "" {
		s += "osc " + process.osc
	} else {
		s += "MPI_Win_create"
	}
	if !process.helper {
		s += ", no progress helper"
	}
	return s
}

// wait waits for the request in c.req, for as long as the last rank takes: with
// yields inside MPI for a while, then with naps, so that ranks that have nothing
// to do leave the cores to those that have.
func (c *comm) wait(what string, limit time.Duration) error {
	start := time.Now()
	checked := start
	for {
		rc := C.rl_wait(c.h, c.req, 100_000)
		if rc == C.MPI_SUCCESS {
			return nil
		}
		if rc != C.RL_AGAIN {
			return failed(what, rc)
		}
		now := time.Now()
		if now.Sub(checked) > lifeCheck {
			checked = now
			if err := c.matesLive(what); err != nil {
				return err
			}
		}
		waited := now.Sub(start)
		if limit > 0 && waited > limit {
			return errTimeout
		}
		if waited > 2*time.Millisecond {
			time.Sleep(min(waited/16, time.Millisecond))
		} else {
			runtime.Gosched()
		}
	}
}

func (c *comm) Barrier() error {
	if rc := C.rl_ibarrier(c.h, c.req); rc != C.MPI_SUCCESS {
		return failed("Barrier", rc)
	}
	return c.wait("Barrier", 0)
}

// meet is a Barrier that gives up; after that the communicator is of no use.
func (c *comm) meet(limit time.Duration) bool {
	return C.rl_ibarrier(c.h, c.req) == C.MPI_SUCCESS && c.wait("Barrier", limit) == nil
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
	rc := C.rl_iallgather(c.h, flag(onNode), ptr(send), C.int(len(in)), ptr(recv), c.req)
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
	reduceSum = iota
	reduceMin
	reduceMax
)

func (c *comm) reduce(op int, in ...int64) ([]int64, error) {
	send, recv := words(len(in)), words(len(in))
	copy(send, in)
	if rc := C.rl_iallreduce(c.h, ptr(send), C.int(len(in)), ptr(recv), C.int(op), c.req); rc != C.MPI_SUCCESS {
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
	if rc := C.rl_comm_split(c.h, C.int(color), C.int(key), s.h); rc != C.MPI_SUCCESS {
		return nil, failed("Split", rc)
	}
	if color < 0 {
		return nil, nil
	}
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
