package rma

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// A Result names the result of an operation. Read it with Window.Value after the
// Flush that completed the operation and before MaxPending further operations
// with results were issued on the handle.
type Result uint32

// Value is the result of a completed operation.
func (w *Window) Value(r Result) int64 { return w.res[r%MaxPending] }

// Put writes v. Listing 1, line 9.
func (w *Window) Put(v int64, target, disp int) {
	part := unsafe.Pointer(nil)
	if uint(target) < w.flat && uint(disp) < w.words {
		part = unsafe.Add(w.base, uintptr(target)*w.stride)
	} else if part = w.shared(target, disp, writing); part == nil {
		w.issue(Operation{Kind: KindPut, Target: target, Disp: disp, Operand: v})
		return
	}
	atomic.StoreInt64((*int64)(unsafe.Add(part, disp*8)), v)
	if parked(part, disp) {
		w.t.Wake(target)
	}
}

// Get reads the word. Listing 1, line 11.
func (w *Window) Get(target, disp int) Result {
	if uint(target) < w.flat && uint(disp) < w.words {
		r := w.seq
		w.seq++
		w.res[r%MaxPending] = atomic.LoadInt64((*int64)(unsafe.Add(w.base, uintptr(target)*w.stride+uintptr(disp)*8)))
		return Result(r)
	}
	return w.issue(Operation{Kind: KindGet, Target: target, Disp: disp})
}

// Accumulate applies op with operand to the word. Listing 1, line 13.
func (w *Window) Accumulate(operand int64, target, disp int, op Op) {
	if uint(target) < w.flat && uint(disp) < w.words && op <= Replace && w.layout.mayUpdate(disp) {
		_, _ = w.FetchAndOpFlush(operand, target, disp, op)
		return
	}
	w.issue(Operation{Kind: KindAccumulate, Op: op, Target: target, Disp: disp, Operand: operand})
}

// FetchAndOp applies op with operand to the word; the result is the word's value
// before. Listing 1, line 16.
func (w *Window) FetchAndOp(operand int64, target, disp int, op Op) Result {
	if uint(target) < w.flat && uint(disp) < w.words && op <= Replace && w.layout.mayUpdate(disp) {
		r := w.seq
		w.seq++
		w.res[r%MaxPending], _ = w.FetchAndOpFlush(operand, target, disp, op)
		return Result(r)
	}
	return w.issue(Operation{Kind: KindFetchAndOp, Op: op, Target: target, Disp: disp, Operand: operand})
}

// CompareAndSwap replaces the word by v if it holds cmp; the result is the word's
// value before. Listing 1, line 19.
func (w *Window) CompareAndSwap(v, cmp int64, target, disp int) Result {
	if uint(target) < w.flat && uint(disp) < w.words && w.layout.mayUpdate(disp) {
		r := w.seq
		w.seq++
		w.res[r%MaxPending], _ = w.CompareAndSwapFlush(v, cmp, target, disp)
		return Result(r)
	}
	return w.issue(Operation{Kind: KindCompareAndSwap, Target: target, Disp: disp, Operand: v, Compare: cmp})
}

// PutBulk writes len(src) consecutive words of one class, atomically word by word.
// src must not change before the Flush.
func (w *Window) PutBulk(src []int64, target, disp int) {
	w.issue(Operation{Kind: KindPutBulk, Target: target, Disp: disp, Data: src})
}

// GetBulk reads len(dst) consecutive words of one class, atomically word by word.
// dst is filled by the Flush.
func (w *Window) GetBulk(dst []int64, target, disp int) {
	w.issue(Operation{Kind: KindGetBulk, Target: target, Disp: disp, Data: dst})
}

// Buffer gives zeroed memory for bulk operations on this window. From it PutBulk writes, and into
// it GetBulk reads, without a copy where a device needs memory that is registered with it
// (rma/verbs); elsewhere it is ordinary memory. Parts of it may be used as well. It is the
// caller's until Free, and must not be touched after. Its errors wrap ErrFreed, ErrDisp or
// ErrMemory.
func (w *Window) Buffer(words int) ([]int64, error) {
	switch {
	case w.t == nil:
		return nil, fmt.Errorf("rma: window %q: Buffer: %w", w.spec.Name, ErrFreed)
	case words < 1:
		return nil, fmt.Errorf("rma: window %q: a buffer of %d words, want at least 1: %w", w.spec.Name, words, ErrDisp)
	case w.buffer != nil:
		return w.buffer(words)
	}
	return make([]int64, words), nil
}

// Flush completes all operations that this handle issued to target: their results
// may be read, their effects are visible to every rank. It returns the first error
// since the last flush. Listing 1, line 22.
func (w *Window) Flush(target int) error {
	if uint(target) < w.flat && w.far == 0 {
		return nil
	}
	return w.flushFar(target)
}

// flushFar is Flush but for the short way, which is inlined.
func (w *Window) flushFar(target int) error {
	if uint(target) >= uint(w.size) {
		w.fail(w.refuseTarget("Flush", target))
		return w.takeErr()
	}
	return w.flush(target)
}

// FlushAll completes all operations that this handle issued.
func (w *Window) FlushAll() error {
	if w.flat > 0 && w.far == 0 {
		return nil
	}
	return w.flush(-1)
}

func (w *Window) flush(target int) error {
	if w.t == nil {
		w.fail(fmt.Errorf("rma: window %q: %w", w.spec.Name, ErrFreed))
	} else if w.far > 0 {
		var err error
		if w.far, err = w.t.Flush(target, &w.res); err != nil {
			w.fail(err)
		}
		w.release(target)
		w.fences.flushed(target)
	}
	return w.takeErr()
}

// release frees the slots of the operations that a Flush has completed.
func (w *Window) release(target int) {
	if target < 0 {
		w.busy = 0
	}
	for b := w.busy; b != 0; b &= b - 1 {
		if slot := bits.TrailingZeros64(b); int(w.to[slot]) == target {
			w.busy &^= 1 << slot
		}
	}
}

// fail records the first error since the last flush. The short ways look at flat
// alone: an error closes them.
func (w *Window) fail(err error) {
	if w.err == nil {
		w.err, w.flat = err, 0
	}
}

// takeErr returns the first error since the last flush and forgets it.
func (w *Window) takeErr() error {
	err := w.err
	w.err, w.flat = nil, w.all
	return err
}

// PutFlush is Put and Flush.
func (w *Window) PutFlush(v int64, target, disp int) error {
	w.Put(v, target, disp)
	return w.Flush(target)
}

// GetFlush is Get and Flush and returns the value.
func (w *Window) GetFlush(target, disp int) (int64, error) {
	if uint(target) < w.flat && uint(disp) < w.words {
		return atomic.LoadInt64((*int64)(unsafe.Add(w.base, uintptr(target)*w.stride+uintptr(disp)*8))), nil
	}
	if part := w.shared(target, disp, reading); part != nil {
		return atomic.LoadInt64((*int64)(unsafe.Add(part, disp*8))), nil
	}
	return w.result(w.issue(Operation{Kind: KindGet, Target: target, Disp: disp}), target)
}

// Peek is GetFlush of a word of one's own, for the places where every nanosecond
// counts: it is inlined, and leaves an error to the next Flush. A near or flag word it
// reads at once, even if a Fence came before.
func (w *Window) Peek(disp int) int64 {
	if uint(disp) < uint(len(w.own)) {
		return atomic.LoadInt64(&w.own[disp])
	}
	return w.peek(disp)
}

func (w *Window) peek(disp int) int64 {
	v, err := w.GetFlush(w.rank, disp)
	if err != nil {
		w.fail(err)
	}
	return v
}

// AccumulateFlush is Accumulate and Flush.
func (w *Window) AccumulateFlush(operand int64, target, disp int, op Op) error {
	if uint(target) < w.flat && uint(disp) < w.words && op <= Replace && w.layout.mayUpdate(disp) {
		_, err := w.FetchAndOpFlush(operand, target, disp, op)
		return err
	}
	w.Accumulate(operand, target, disp, op)
	return w.Flush(target)
}

// FetchAndOpFlush is FetchAndOp and Flush and returns the word's value before.
func (w *Window) FetchAndOpFlush(operand int64, target, disp int, op Op) (int64, error) {
	part := unsafe.Pointer(nil)
	if uint(target) < w.flat && uint(disp) < w.words && op <= NoOp {
		part = unsafe.Add(w.base, uintptr(target)*w.stride)
	} else if part = w.shared(target, disp, updating); part == nil || op > NoOp {
		return w.result(w.issue(Operation{Kind: KindFetchAndOp, Op: op, Target: target, Disp: disp, Operand: operand}), target)
	}
	p := (*int64)(unsafe.Add(part, disp*8))
	var before int64
	switch op {
	case Sum:
		before = atomic.AddInt64(p, operand) - operand
	case Replace:
		before = atomic.SwapInt64(p, operand)
	default:
		return atomic.LoadInt64(p), nil
	}
	if parked(part, disp) {
		w.t.Wake(target)
	}
	return before, nil
}

// result flushes and returns a result.
func (w *Window) result(r Result, target int) (int64, error) {
	if err := w.Flush(target); err != nil {
		return 0, err
	}
	return w.Value(r), nil
}

// CompareAndSwapFlush is CompareAndSwap and Flush and returns the word's value
// before.
func (w *Window) CompareAndSwapFlush(v, cmp int64, target, disp int) (int64, error) {
	part := unsafe.Pointer(nil)
	if uint(target) < w.flat && uint(disp) < w.words {
		part = unsafe.Add(w.base, uintptr(target)*w.stride)
	} else if part = w.shared(target, disp, updating); part == nil {
		return w.result(w.issue(Operation{Kind: KindCompareAndSwap, Target: target, Disp: disp, Operand: v, Compare: cmp}), target)
	}
	p := (*int64)(unsafe.Add(part, disp*8))
	before := cmp
	if !atomic.CompareAndSwapInt64(p, cmp, v) {
		before = casLost(p, v, cmp)
	}
	if before == cmp && parked(part, disp) {
		w.t.Wake(target)
	}
	return before, nil
}

// casLost finds the value that made a CAS fail. The word may hold cmp again by
// now: then the CAS is tried again, so that the value returned is always one
// that the outcome agrees with.
func casLost(p *int64, v, cmp int64) int64 {
	for {
		if seen := atomic.LoadInt64(p); seen != cmp {
			return seen
		}
		if atomic.CompareAndSwapInt64(p, cmp, v) {
			return cmp
		}
	}
}

// MaskedSwapFlush replaces the bits swapMask of the word by those of v, if its bits cmpMask are
// those of cmp, and flushes; it returns the word's value before. It is the masked CompareAndSwap of
// extended atomics (ibv_exp_wr of ConnectX-3 and later), and with a cmpMask of 0 a swap of some
// fields that cannot fail. The word is Far, or a Near one of the node.
//
// With Caps.MaskedSwap it is one operation. Elsewhere, as on MPI and plain verbs, it is a loop of
// CompareAndSwapFlush: one if all other bits of the word are 0, else two, and one more for each other
// operation that comes between, without a bound.
func (w *Window) MaskedSwapFlush(v, swapMask, cmp, cmpMask int64, target, disp int) (int64, error) {
	o := Operation{
		Kind: KindMaskedSwap, Target: target, Disp: disp,
		Operand: v, SwapMask: swapMask, Compare: cmp, CompareMask: cmpMask,
	}
	if w.caps.MaskedSwap {
		return w.result(w.issue(o), target)
	}
	for guess := cmp & cmpMask; ; {
		found, err := w.CompareAndSwapFlush(o.Masked(guess), guess, target, disp)
		if err != nil || found == guess || !o.Matches(found) {
			return found, err
		}
		guess = found
	}
}
