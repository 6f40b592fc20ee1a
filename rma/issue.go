package rma

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

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
