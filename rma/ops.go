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

// parked reports whether a rank may sleep on a word of the part. It is read after the
// write, and sleepers look at the word after they announced themselves: one of the
// two sees the other.
func parked(part unsafe.Pointer, disp int) bool {
	return atomic.LoadUint32(SleeperCount(part, disp)) != 0
}

// ParkedOn reports whether a rank may sleep on a word that an operation has written.
func (o *Operation) ParkedOn(part unsafe.Pointer) bool {
	for i := range o.Words() {
		if parked(part, o.Disp+i) {
			return true
		}
	}
	return false
}

// unflushed is what a result holds before its Flush: garbage that shows.
const unflushed = -0x5ADF1A5B0B5E55ED

// shared is the part of a node-mate in a job on several nodes, if the CPU may do a to a word
// of it now; else nil. It is nil while operations are pending, which a Flush of that rank must
// complete first, or an error is.
func (w *Window) shared(target, disp int, a access) unsafe.Pointer {
	i := uint(target) - w.first
	if i < w.mates && uint(disp) < uint(len(w.may)) && w.may[disp]&a != 0 && w.far == 0 && w.err == nil {
		return unsafe.Add(w.mem, uintptr(i)*w.stride)
	}
	return w.sharedFar(target, disp, a)
}

// sharedFar is shared but for the usual case.
func (w *Window) sharedFar(target, disp int, a access) unsafe.Pointer {
	if w.mem == nil || w.far != 0 || w.err != nil || uint(disp) >= w.words || w.cpu[w.layout.class(disp)]&a == 0 {
		return nil
	}
	i := w.node.index(target)
	if i < 0 {
		return nil
	}
	return unsafe.Add(w.mem, uintptr(i)*w.stride)
}

// near is the address of the first word of an operation, if the CPU may do it; else nil.
func (w *Window) near(o *Operation) *int64 {
	if w.mem == nil || w.cpu[o.Class]&o.access() == 0 {
		return nil
	}
	if o.Class == Far && w.all == 0 && w.far > 0 {
		return nil // a pending operation may be on the same word
	}
	i := w.node.index(o.Target)
	if i < 0 {
		return nil
	}
	return (*int64)(unsafe.Add(w.mem, uintptr(i)*w.stride+uintptr(o.Disp)*8))
}

// access is what the operation does to its words.
func (o *Operation) access() access {
	switch o.Kind {
	case KindGet, KindGetBulk:
		return reading
	case KindPut, KindPutBulk:
		return writing
	case KindAccumulate, KindFetchAndOp, KindCompareAndSwap, KindMaskedSwap:
	}
	return updating
}

// issue is the way of every operation that has no short one.
func (w *Window) issue(o Operation) Result {
	if err := w.check(&o); err != nil {
		w.fail(err)
		return Result(w.seq)
	}
	r := w.seq
	o.Slot = int(r % MaxPending)
	slot := uint64(0)
	if o.Finds() {
		slot = 1 << o.Slot
		w.seq++
	}
	if w.far >= MaxPending || w.busy&slot != 0 {
		w.seq = r
		w.fail(w.refuse(&o, ErrPending))
		return Result(r)
	}
	if w.fences.n > 0 {
		o.Epoch = w.fences.of(o.Target)
	}
	if p := w.near(&o); p != nil {
		if err := w.flushBefore(&o); err != nil {
			w.fail(err)
		} else {
			w.apply(p, &o)
		}
		return Result(r)
	}
	w.far++
	if slot != 0 {
		w.busy |= slot
		w.to[o.Slot] = int32(o.Target)
		w.res[o.Slot] = unflushed
	}
	w.t.Issue(o)
	return Result(r)
}

// apply does an operation on node memory.
func (w *Window) apply(p *int64, o *Operation) {
	o.Apply(p, &w.res)
	if o.Kind.Writes() && o.ParkedOn(unsafe.Add(unsafe.Pointer(p), -o.Disp*8)) {
		w.t.Wake(o.Target)
	}
}

// Apply does the operation with CPU atomics; p is the address of its first word.
func (o *Operation) Apply(p *int64, r *Results) {
	switch o.Kind {
	case KindGet:
		r[o.Slot] = atomic.LoadInt64(p)
	case KindPut:
		atomic.StoreInt64(p, o.Operand)
	case KindAccumulate, KindFetchAndOp:
		var before int64
		switch o.Op {
		case Sum:
			before = atomic.AddInt64(p, o.Operand) - o.Operand
		case Replace:
			before = atomic.SwapInt64(p, o.Operand)
		case NoOp:
			before = atomic.LoadInt64(p)
		}
		if o.Kind == KindFetchAndOp {
			r[o.Slot] = before
		}
	case KindCompareAndSwap:
		r[o.Slot] = casLost(p, o.Operand, o.Compare)
	case KindMaskedSwap:
		before := atomic.LoadInt64(p)
		for o.Matches(before) && !atomic.CompareAndSwapInt64(p, before, o.Masked(before)) {
			before = atomic.LoadInt64(p)
		}
		r[o.Slot] = before
	case KindPutBulk:
		for i, v := range o.Data {
			atomic.StoreInt64((*int64)(unsafe.Add(unsafe.Pointer(p), i*8)), v)
		}
	case KindGetBulk:
		for i := range o.Data {
			o.Data[i] = atomic.LoadInt64((*int64)(unsafe.Add(unsafe.Pointer(p), i*8)))
		}
	}
}

// check refuses an operation that is out of range or not allowed for the class of
// its word, and fills in the class.
func (w *Window) check(o *Operation) error {
	if w.t == nil {
		return fmt.Errorf("rma: window %q: %s: %w", w.spec.Name, o.Kind, ErrFreed)
	}
	n := o.Words()
	if uint(o.Target) >= uint(w.size) {
		return w.refuse(o, ErrRank)
	}
	if o.Disp < 0 || n > int(w.words) || o.Disp > int(w.words)-n || n == 0 {
		return w.refuse(o, ErrDisp)
	}
	if o.Op > NoOp {
		return fmt.Errorf("rma: window %q: %s with unknown op %d: %w", w.spec.Name, o.Kind, o.Op, ErrClass)
	}
	if o.Class = w.layout.class(o.Disp); n > 1 && !w.layout.uniform(o.Disp, n) {
		return w.refuse(o, ErrClass)
	}
	switch o.Class {
	case Near:
		if o.Kind != KindGet && !w.node.Has(o.Target) {
			return w.refuse(o, ErrClass)
		}
	case Flag, Plain:
		switch o.Kind {
		case KindAccumulate, KindFetchAndOp, KindCompareAndSwap, KindMaskedSwap:
			return w.refuse(o, ErrClass)
		case KindPut, KindGet, KindPutBulk, KindGetBulk:
		}
	case Far: // any operation
	}
	return nil
}

// refuseTarget makes the AccessError of a call for a target that the window does not have.
func (w *Window) refuseTarget(call string, target int) error {
	return &AccessError{Window: w.spec.Name, Op: call, Target: target, Size: w.size, Hosts: w.spec.Hosts, Err: ErrRank}
}

// refuse makes the AccessError of an operation.
func (w *Window) refuse(o *Operation, why error) error {
	name := o.Kind.String()
	if o.Kind == KindAccumulate || o.Kind == KindFetchAndOp {
		name += "(" + o.Op.String() + ")"
	}
	e := &AccessError{
		Window: w.spec.Name, Op: name, Target: o.Target, Disp: o.Disp, Words: o.Words(),
		Size: w.size, Limit: int(w.words), Hosts: w.spec.Hosts, Err: why,
	}
	if why == ErrClass || why == ErrPending {
		e.Word = w.spec.WordName(o.Disp) + " (" + w.spec.Class(o.Disp).String() + ")"
	}
	return e
}
