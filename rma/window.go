package rma

import (
	"fmt"
	"unsafe"
)

// A Window is a handle on the words that all ranks of a Comm contributed. It
// belongs to one goroutine at a time.
type Window struct {
	// The near path on one node: rank t's words are at base + t*stride for t < flat.
	base   unsafe.Pointer
	stride uintptr
	flat   uint    // Size() when all ranks share memory and no error is pending, else 0
	words  uint    // per rank
	own    []int64 // the first of the caller's words, which Peek reads at once

	err            error // first error since the last Flush; while there is one, flat is 0
	all            uint  // flat without errors
	far            int   // operations pending in t
	t              Transport
	seq            uint32 // slots given out
	busy           uint64 // slots of pending operations, a bit each
	res            Results
	to             [MaxPending]int32 // target of the pending operation of each slot
	size           int
	rank           int
	oversubscribed bool            // the node has more ranks than cores
	mem            unsafe.Pointer  // parts of the node-mates, in the order of node.Ranks; nil when decorated
	cpu            [Classes]access // what the CPU may do to a node-mate's words, by class
	first, mates   uint            // in a job on several nodes: the node's ranks, if consecutive; else mates is 0
	may            []access        // the same, of the first words: cpu of their classes
	fences         fences
	node           Node
	spec           Spec
	layout         layout
	caps           Caps
	buffer         func(words int) ([]int64, error) // of Config
	scratch        int64                            // changed in place of a word that the CPU may not change; see Pointer
}

// An access is what the CPU does to a word of its node; a set of them.
type access uint8

const (
	reading  access = 1 << iota
	writing         // by a store
	updating        // by an atomic
)

// cpuAccess is what the CPU may do to the words of its node, by class.
func cpuAccess(c *Caps, oneNode bool) [Classes]access {
	a := [Classes]access{Near: reading | writing | updating, Flag: reading | writing}
	if c.CPUReads {
		a[Far], a[Plain] = reading, reading|writing
	}
	if oneNode {
		a[Far], a[Plain] = reading|writing|updating, reading|writing
	}
	return a
}

// Config is what a backend knows of a new window.
type Config struct {
	Comm           Comm
	Spec           Spec
	T              Transport
	Caps           Caps
	Base           unsafe.Pointer // words of the first of Node().Ranks in node memory; nil for none
	Stride         uintptr        // bytes from one node-mate's words to the next one's
	Oversubscribed bool           // the ranks of the node are more than the cores they may use

	// Buffer gives memory that the device reaches, until the window is freed; nil where any
	// memory will do.
	Buffer func(words int) ([]int64, error)
}

// New makes the handle of one rank. It is for backends; users call Comm.Allocate.
func New(c Config) *Window {
	w := &Window{
		base: c.Base, stride: c.Stride, words: uint(c.Spec.Words()), t: c.T,
		size: c.Comm.Size(), rank: c.Comm.Rank(), mem: c.Base, node: c.Comm.Node(), spec: c.Spec, caps: c.Caps,
		oversubscribed: c.Oversubscribed, buffer: c.Buffer,
	}
	w.layout = newLayout(&w.spec)
	if c.Spec.Hosts == MemoryNodes {
		w.size, w.rank, w.mem, w.node = c.Comm.MemoryNodes(), -1, nil, Node{}
		return w
	}
	w.cpu = cpuAccess(&w.caps, len(w.node.Ranks) == w.size)
	if c.Base != nil && len(w.node.Ranks) == w.size {
		w.flat, w.all = uint(w.size), uint(w.size)
		w.setOwn(c.Spec.Words())
	} else if c.Base != nil {
		w.tabulate()
	}
	return w
}

// tabulate makes the short way to the words of node-mates in a job on several nodes. Peek
// has one to the near and flag words that come first: no transport has an operation on them.
func (w *Window) tabulate() {
	ranks := w.node.Ranks
	if n := len(ranks); n > 0 && ranks[n-1]-ranks[0] == n-1 {
		w.first, w.mates = uint(ranks[0]), uint(n)
	}
	w.may = make([]access, min(w.words, tableWords))
	for disp := range w.may {
		w.may[disp] = w.cpu[w.layout.class(disp)]
	}
	n := 0
	for n < len(w.may) {
		if c := w.layout.class(n); c != Near && c != Flag {
			break
		}
		n++
	}
	w.setOwn(n)
}

// setOwn lets Peek read the first n words of the caller at once.
func (w *Window) setOwn(n int) {
	w.own = unsafe.Slice((*int64)(unsafe.Add(w.mem, uintptr(w.node.index(w.rank))*w.stride)), n)
}

// Name is the window's name, as in its Spec.
func (w *Window) Name() string { return w.spec.Name }

// Spec describes the window's words. Its regions are not to be changed.
func (w *Window) Spec() Spec { return w.spec }

// Caps says what the window's transport can do.
func (w *Window) Caps() Caps { return w.caps }

// Rank is the caller's rank in the window; -1 in a window of memory nodes, where the caller has no
// words.
func (w *Window) Rank() int { return w.rank }

// Size is the number of hosts of the window: of its ranks, or of the memory nodes.
func (w *Window) Size() int { return w.size }

// Words is the number of words per host.
func (w *Window) Words() int { return w.spec.Words() }

// Node is the set of ranks that share memory with the caller; empty in a window of memory nodes.
func (w *Window) Node() Node { return w.node }

// Free closes the window. Collective. Operations after it are ErrFreed.
func (w *Window) Free() error {
	if w.t == nil {
		return fmt.Errorf("rma: window %q: %w", w.spec.Name, ErrFreed)
	}
	t := w.t
	w.t, w.base, w.own, w.mem, w.flat, w.all, w.words, w.may = nil, nil, nil, nil, 0, 0, 0, nil
	return t.Free()
}

// Decorate returns a handle on the same words whose operations, near ones
// included, all pass through wrap's Transport. It takes w over: use, and free,
// the handle that Decorate returned. A Transport that can do less than the window says so by a method
// Less(*Caps).
func Decorate(w *Window, wrap func(Transport) Transport) *Window {
	t, caps := wrap(direct{w}), w.caps
	if l, ok := t.(interface{ Less(*Caps) }); ok {
		l.Less(&caps)
	}
	return &Window{
		words: w.words, t: t, size: w.size, rank: w.rank, node: w.node, spec: w.spec, layout: w.layout, caps: caps,
		oversubscribed: w.oversubscribed, buffer: w.buffer,
	}
}

// CopyFrom makes w what from is: a handle of the same rank on the same window, with the same
// pending operations and results. It is for a checker, which runs a rank again from an
// earlier state: it copies the handle into a zero Window, and later back. What the Transport
// keeps is not copied.
func (w *Window) CopyFrom(from *Window) { *w = *from }

// Transport is the Transport of the handle, for programs that copy its state too; nil after
// Free.
func (w *Window) Transport() Transport { return w.t }

// direct is a whole Window as a Transport.
type direct struct{ w *Window }

func (d direct) Issue(o Operation) {
	w := d.w
	if p := w.near(&o); p != nil {
		if err := w.flushBefore(&o); err != nil {
			w.fail(err)
			return
		}
		w.apply(p, &o)
		return
	}
	w.far++
	w.t.Issue(o)
}

func (d direct) Flush(target int, r *Results) (int, error) {
	w := d.w
	if w.far > 0 {
		var err error
		if w.far, err = w.t.Flush(target, &w.res); err != nil {
			w.fail(err)
		}
	}
	*r = w.res
	return w.far, w.takeErr()
}

func (d direct) Await(q Waiting) (int, int64, error) { return d.w.await(q) }
func (d direct) Backoff(target, disp int, seen int64, try int) error {
	return d.w.Backoff(target, disp, seen, try)
}
func (d direct) SyncInboundStores() error { return d.w.SyncInboundStores() }
func (d direct) HandedOver(target int)    { d.w.HandedOver(target) }

func (d direct) SpinBriefly(disp int, seen int64) { d.w.t.SpinBriefly(disp, seen) }
func (d direct) Wake(target int)                  { d.w.t.Wake(target) }
func (d direct) Free() error                      { return d.w.Free() }
