package rma

import (
	"sync/atomic"
	"unsafe"
)

// A Pointer is a word of a window, looked up once, for the words that a lock uses in every
// acquire. Its operations are the window's with Flush. One that the CPU may do is an
// instruction: it takes effect at once, also before operations of the handle that are
// pending, and returns no error. The window does all others, with its errors.
type Pointer struct {
	read     *int64  // the word, if the CPU may read it
	update   *int64  // the word, if the CPU may change it by atomics, else Window.scratch
	sleepers *uint32 // of the word; never 0 with scratch, so that one look suffices
	w        *Window
	target   int
	disp     int
}

// always is the sleepers of a Pointer whose updates are the window's.
var always uint32 = 1

// Pointer looks a word up. The Pointer belongs to the handle, and must not be used after Free.
func (w *Window) Pointer(target, disp int) Pointer {
	p := Pointer{update: &w.scratch, sleepers: &always, w: w, target: target, disp: disp}
	i := w.node.index(target)
	if w.mem == nil || i < 0 || uint(disp) >= w.words {
		return p
	}
	part := unsafe.Add(w.mem, uintptr(i)*w.stride)
	may := w.cpu[w.layout.class(disp)]
	if may&reading != 0 {
		p.read = (*int64)(unsafe.Add(part, disp*8))
	}
	if may&updating != 0 {
		p.update, p.sleepers = p.read, SleeperCount(part, disp)
	}
	return p
}

// scratch reports whether updates are the window's, and forgets the one that was made in vain.
func (p *Pointer) scratch() bool {
	p.w.scratch = 0
	return p.update == &p.w.scratch
}

// Get is Window.GetFlush.
func (p *Pointer) Get() (int64, error) {
	if p.read != nil {
		return atomic.LoadInt64(p.read), nil
	}
	return p.get()
}

//go:noinline
func (p *Pointer) get() (int64, error) { return p.w.GetFlush(p.target, p.disp) }

// Add adds to the word and returns the sum. It is Window.FetchAndOpFlush with Sum.
func (p *Pointer) Add(v int64) (sum int64, err error) {
	if sum = atomic.AddInt64(p.update, v); atomic.LoadUint32(p.sleepers) != 0 {
		sum, err = p.add(v, sum)
	}
	return
}

// add is the rest of Add.
func (p *Pointer) add(v, sum int64) (int64, error) {
	if p.scratch() {
		before, err := p.w.result(p.w.FetchAndOp(v, p.target, p.disp, Sum), p.target)
		return before + v, err
	}
	p.w.t.Wake(p.target)
	return sum, nil
}

// Swap replaces the word and returns what it held. It is Window.FetchAndOpFlush with Replace.
func (p *Pointer) Swap(v int64) (before int64, err error) {
	if before = atomic.SwapInt64(p.update, v); atomic.LoadUint32(p.sleepers) != 0 {
		before, err = p.swap(v, before)
	}
	return
}

// swap is the rest of Swap.
func (p *Pointer) swap(v, before int64) (int64, error) {
	if p.scratch() {
		return p.w.result(p.w.FetchAndOp(v, p.target, p.disp, Replace), p.target)
	}
	p.w.t.Wake(p.target)
	return before, nil
}

// CompareAndSwap replaces the word by v if it holds cmp, and returns what it held. It is
// Window.CompareAndSwapFlush.
func (p *Pointer) CompareAndSwap(v, cmp int64) (before int64, err error) {
	before = cmp
	if done := atomic.CompareAndSwapInt64(p.update, cmp, v); !done || atomic.LoadUint32(p.sleepers) != 0 {
		before, err = p.compareAndSwap(v, cmp, done)
	}
	return
}

// compareAndSwap is the rest of CompareAndSwap, which may have been done.
func (p *Pointer) compareAndSwap(v, cmp int64, done bool) (before int64, err error) {
	switch {
	case p.scratch():
		return p.w.result(p.w.CompareAndSwap(v, cmp, p.target, p.disp), p.target)
	case !done:
		if before = casLost(p.update, v, cmp); before != cmp {
			return before, nil
		}
	}
	if atomic.LoadUint32(p.sleepers) != 0 {
		p.w.t.Wake(p.target)
	}
	return cmp, nil
}
