//go:build cgo

package mpi

// #include <stdlib.h>
// #include "rl.h"
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
	err := spec.Validate()
	print := int64(0)
	if err == nil {
		print = spec.Fingerprint()
	}
	m, rerr := c.reduce(reduceMax, print, -print)
	if rerr != nil {
		return nil, rerr
	}
	if err != nil {
		return nil, err
	}
	if m[0] != -m[1] {
		return nil, fmt.Errorf("mpi: window %q: ranks describe it differently; all must pass the same Spec: %w", spec.Name, rma.ErrMismatch)
	}
	s, err := c.newSegment(spec.Name, spec.Words())
	if err != nil {
		return nil, err
	}
	t := &transport{c: c, s: s, spec: spec, number: register(spec.Name)}
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
			AtomicWithCPU: c.node.Count == 1, NativeSwap: true,
		},
		Base: unsafe.Pointer(s.word(0, 0)), Stride: uintptr(s.stride),
		Crowded: c.crowded,
	}), nil
}

// openFar puts an MPI window over the rank's part.
func (t *transport) openFar() error {
	c := t.c
	t.win = (*C.rl_win)(C.calloc(1, C.sizeof_rl_win))
	t.win.number = C.int32_t(t.number)
	if err := c.Barrier(); err != nil {
		return err
	}
	part := t.s.part(c.mate)
	var err error
	if rc := C.rl_win_create(c.h, part, C.int64_t(t.s.stride), t.win); rc != C.MPI_SUCCESS {
		err = failed(fmt.Sprintf("window %q: MPI_Win_create over %d nodes (osc %q)", t.spec.Name, c.node.Count, process.osc), rc)
	}
	if err := rma.Agree(c, err); err != nil {
		return err
	}
	C.rl_helper_need(1)
	return t.selfTest()
}

// transport carries a window's operations on far words and ranks, and waits.
type transport struct {
	c       *comm
	s       *segment
	spec    rma.Spec
	number  int
	win     *C.rl_win         // nil on one node
	data    [C.RL_MAX][]int64 // the caller's slice of a pending GetBulk
	crowded int               // waits that skip the yields
}

var _ rma.Transport = (*transport)(nil)

func (t *transport) Issue(o rma.Operation) {
	i := t.win.nops
	t.win.nops++
	p := &t.win.ops[i]
	p.kind, p.op, p.cls, p.done = C.uint8_t(o.Kind), C.uint8_t(o.Op), C.uint8_t(o.Class), 0
	p.target, p.slot = C.int32_t(o.Target), C.int32_t(o.Slot)
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

func (t *transport) Flush(target int, r *rma.Results) (int, error) {
	rc := C.rl_flush(t.win, C.int(target))
	show(t.win)
	kept := C.int32_t(0)
	for i := range t.win.nops {
		p := &t.win.ops[i]
		if p.done == 0 && target >= 0 && int(p.target) != target {
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
		}
	}
	t.win.nops = kept
	if rc != C.MPI_SUCCESS {
		return int(kept), failed(fmt.Sprintf("window %q: flush of rank %d", t.spec.Name, target), rc)
	}
	return int(kept), nil
}

// showEvery is less than the 10 ms after which the Go scheduler takes a goroutine for one
// that does not end.
const showEvery = 5 * time.Millisecond

// show comes after a call into C, and has the Go scheduler see that the caller is not stuck.
// A goroutine that makes one call after the other does not pass through the scheduler by
// itself. After 10 ms the runtime's monitor takes its P away at every look, and looks
// again 75 us later, as it has found something to do: a thread that wakes for each look, on a core where
// a rank spins inside MPI. See docs/decisions/0002-mpi.md.
func show(w *C.rl_win) {
	if w.since_ns-w.shown_ns > C.int64_t(showEvery) {
		w.shown_ns = w.since_ns
		runtime.Gosched()
	}
}

// Free closes the window. Collective.
func (t *transport) Free() error {
	if err := t.c.Barrier(); err != nil {
		return err
	}
	var err error
	if t.win != nil {
		C.rl_helper_need(-1)
		if rc := C.rl_win_free(t.win); rc != C.MPI_SUCCESS {
			err = failed(fmt.Sprintf("window %q: MPI_Win_free", t.spec.Name), rc)
		}
		C.free(unsafe.Pointer(t.win))
		t.win = nil
	}
	t.s.free()
	unregister(t.number)
	return err
}
