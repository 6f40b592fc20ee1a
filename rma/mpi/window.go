//go:build cgo

package mpi

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// Allocate opens a window: a segment per node, and where there are several nodes
// an MPI window over the rank's part, which then tests itself.
func (c *comm) Allocate(spec rma.Spec) (*rma.Window, error) {
	err := rma.Validate(c, spec)
	fingerprint := int64(0)
	if err == nil {
		fingerprint = spec.Fingerprint()
	}
	m, rerr := c.reduce(reduceMax, fingerprint, -fingerprint)
	if rerr != nil {
		return nil, rerr
	}
	if err != nil {
		return nil, err
	}
	if m[0] != -m[1] {
		return nil, fmt.Errorf("mpi: window %q: ranks describe it differently; all must pass the same Spec: %w", spec.Name, rma.ErrMismatch)
	}
	if spec.Hosts == rma.MemoryNodes {
		return c.allocateRemote(spec)
	}
	s, err := c.newSegment(spec.Name, spec.Words())
	if err != nil {
		return nil, err
	}
	t := &transport{c: c, far: c, s: s, spec: spec, number: register(spec.Name, rankName)}
	if c.node.Count > 1 {
		if err := t.openFar(); err != nil {
			s.free()
			return nil, err
		}
	}
	return rma.New(rma.Config{
		Comm: c, Spec: spec, T: t,
		Caps: rma.Caps{
			Transport: c.Describe(), FarRanks: c.node.Count > 1,
			AtomicWithCPU: c.node.Count == 1, NativeSwap: true, AtomicPut: true, CPUReads: true,
		},
		Base: unsafe.Pointer(s.word(0, 0)), Stride: uintptr(s.stride),
		Oversubscribed: c.oversubscribed,
	}), nil
}

// openFar puts an MPI window over the words of the ranks of t.far that have some. They all call
// it.
func (t *transport) openFar() error {
	c := t.far
	t.win = (*C.shim_win)(C.calloc(1, C.sizeof_shim_win))
	t.win.number = C.int32_t(t.number)
	if err := c.Barrier(); err != nil {
		return err
	}
	part, bytes := unsafe.Pointer(nil), int64(0)
	if t.s != nil {
		part, bytes = t.ownPart(), t.s.stride
	}
	var err error
	if rc := C.shim_win_create(c.h, part, C.int64_t(bytes), t.win); rc != C.MPI_SUCCESS {
		err = failed(fmt.Sprintf("window %q: MPI_Win_create over %d nodes (osc %q)", t.spec.Name, c.node.Count, process.osc), rc)
	}
	if err := rma.Agree(c, err); err != nil {
		return err
	}
	if t.s != nil { // others have nothing to serve
		C.shim_helper_need(1)
	}
	return t.selfTest()
}

// ownPart is the caller's part of the segment: one of the node's, or the only one.
func (t *transport) ownPart() unsafe.Pointer {
	if t.hosts != nil {
		return t.s.part(0)
	}
	return t.s.part(t.c.nodeRank)
}

// transport carries a window's operations on far words and ranks, and waits.
type transport struct {
	c          *comm
	far        *comm    // of the MPI window: c, or a joint
	hosts      []int    // ranks of the memory nodes in far; nil in a window of ranks
	joint      *joint   // of a window of memory nodes, at their users
	opened     int64    // number of the window in the joint
	s          *segment // nil for users of memory nodes
	spec       rma.Spec
	number     int
	win        *C.shim_win                 // nil on one node
	data       [C.SHIM_MAX_PENDING][]int64 // the caller's slice of a pending GetBulk
	skipYields int                         // waits that go to sleep at once
}

var _ rma.Transport = (*transport)(nil)

func (t *transport) Issue(o rma.Operation) {
	i := t.win.nops
	t.win.nops++
	p := &t.win.ops[i]
	p.kind, p.op, p.class, p.epoch, p.state = C.uint8_t(o.Kind), C.uint8_t(o.Op), C.uint8_t(o.Class), C.uint8_t(o.Epoch), C.SHIM_QUEUED
	p.target, p.slot = C.int32_t(t.rank(o.Target)), C.int32_t(o.Slot)
	p.disp, p.operand, p.compare, p.words = C.int64_t(o.Disp), C.int64_t(o.Operand), C.int64_t(o.Compare), 1
	if o.Kind == rma.KindPutBulk || o.Kind == rma.KindGetBulk {
		w := words(len(o.Data))
		if o.Kind == rma.KindPutBulk {
			copy(w, o.Data)
		}
		p.words, p.data = C.int64_t(len(o.Data)), ptr(w)
		t.data[i] = o.Data
	}
}

// rank is the rank of a target in t.far.
func (t *transport) rank(target int) int {
	if t.hosts != nil && target >= 0 {
		return t.hosts[target]
	}
	return target
}

func (t *transport) Flush(target int, r *rma.Results) (int, error) {
	target = t.rank(target)
	rc := C.shim_flush(t.win, C.int(target))
	yieldToScheduler(t.win)
	kept := C.int32_t(0)
	for i := range t.win.nops {
		p := &t.win.ops[i]
		if p.state == C.SHIM_QUEUED && target >= 0 && int(p.target) != target {
			t.data[kept] = t.data[i]
			t.win.ops[kept] = *p
			kept++
			continue
		}
		switch k := rma.Kind(p.kind); k {
		case rma.KindGet, rma.KindFetchAndOp, rma.KindCompareAndSwap:
			r[p.slot] = int64(p.result)
		case rma.KindPutBulk, rma.KindGetBulk:
			w := unsafe.Slice((*int64)(unsafe.Pointer(p.data)), int(p.words))
			if k == rma.KindGetBulk {
				copy(t.data[i], w)
			}
			freeWords(w)
			t.data[i] = nil
		case rma.KindPut, rma.KindAccumulate, rma.KindMaskedSwap: // no result, or a loop of the Window's
		}
	}
	t.win.nops = kept
	if rc != C.MPI_SUCCESS {
		return int(kept), failed(fmt.Sprintf("window %q: flush of %s", t.spec.Name, t.far.name(target)), rc)
	}
	return int(kept), nil
}

// yieldEvery is less than the 10 ms after which the Go runtime's monitor takes the P of a
// goroutine.
const yieldEvery = 5 * time.Millisecond

// yieldToScheduler follows a call into C, and calls runtime.Gosched at most every 5 ms. A
// goroutine that makes one such call after the other does not pass through the scheduler by
// itself. After 10 ms the runtime's monitor takes its P, and looks again every 20 us: a thread
// that wakes on the core of a rank that spins. See docs/decisions/0002-mpi.md.
func yieldToScheduler(w *C.shim_win) {
	if w.since_ns-w.yielded_ns > C.int64_t(yieldEvery) {
		w.yielded_ns = w.since_ns
		runtime.Gosched()
	}
}

// SyncInboundStores returns when what arrived before is stored: the thread of this process that
// copies it holds the mutex meanwhile.
func (t *transport) SyncInboundStores() error {
	C.shim_lock()
	C.shim_unlock()
	return nil
}

// Free closes the window. Collective.
func (t *transport) Free() error {
	if err := t.c.Barrier(); err != nil {
		return err
	}
	if t.joint != nil && t.c.rank == 0 {
		if _, err := t.c.tell(commandClose, t.joint.id, t.opened); err != nil {
			return err
		}
	}
	return t.close()
}

// close gives up the window's memory. All ranks of t.far call it, soon after each other.
func (t *transport) close() error {
	var err error
	if t.win != nil {
		if t.hosts != nil {
			if err := t.far.Barrier(); err != nil {
				return err
			}
		}
		if t.s != nil {
			C.shim_helper_need(-1)
		}
		if rc := C.shim_win_free(t.win); rc != C.MPI_SUCCESS {
			err = failed(fmt.Sprintf("window %q: MPI_Win_free", t.spec.Name), rc)
		}
		C.free(unsafe.Pointer(t.win))
		t.win = nil
	}
	t.s.free()
	unregister(t.number)
	return err
}
