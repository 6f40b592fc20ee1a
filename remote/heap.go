package remote

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// A Heap is one client's handle. It belongs to one goroutine at a time.
type Heap struct {
	c   rma.Comm
	w   *rma.Window
	cfg Config

	epochAt, poolAt, clientsAt, entryAt int // displacements

	plain, far part
	sizes      []int   // of blocks by kind: Classes, and behind them FarClasses
	free       [][]Ref // by kind
	freeWords  int     // in free

	epoch      int64 // EPOCH as the client has read it last
	section    int64 // number of the last section
	inside     bool
	began      int64 // its begin, by the client's clock
	limbo      []waiting
	unmarked   int // how many at the end of limbo have no mark yet
	limboWords int

	entries  []int64 // of all clients, as read last
	list     []int64 // a list of the pool
	suspect  suspect
	pooled   int // lists that the client has given to the pool
	fromPool int // and taken
}

// A part is the blocks of one class of words.
type part struct {
	freeAt, heapAt, words int // the counter of what is given out, and the memory, at each host
	first, end            int // kinds of its blocks

	// The rest of the memory that the client has taken from its host.
	spanNode, spanDisp, spanLeft int
	node                         int    // host to take memory from
	full                         []bool // hosts by whether all of their memory is given out
}

// waiting is a block that was freed. mark is an EPOCH read after that.
type waiting struct {
	ref  Ref
	kind int // size class
	mark int64
}

// New opens a heap, on the job's memory nodes if it has some, else on the ranks. Collective. All
// clients pass the same Config.
func New(c rma.Comm, cfg Config) (*Heap, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	hosts, n := rma.Ranks, c.Size()
	if c.MemoryNodes() > 0 {
		hosts, n = rma.MemoryNodes, c.MemoryNodes()
	}
	if n > maxHosts {
		return nil, fmt.Errorf("remote: heap %q: %d hosts, want at most %d: %w", cfg.Name, n, maxHosts, ErrConfig)
	}
	spec := cfg.spec(hosts, c.Size())
	w, err := c.Allocate(spec)
	if err != nil {
		return nil, err
	}
	r := len(cfg.Regions)
	sizes := slices.Concat(cfg.Classes, cfg.FarClasses)
	h := &Heap{
		c: c, w: w, cfg: cfg, sizes: sizes,
		epochAt: spec.Base(r), poolAt: spec.Base(r + 1), clientsAt: spec.Base(r + 2),
		plain: part{
			freeAt: spec.Base(r) + 1, heapAt: spec.Base(r + 3), words: cfg.Words,
			end: len(cfg.Classes), node: c.Rank() % n, full: make([]bool, n),
		},
		far: part{
			freeAt: spec.Base(r) + 2, heapAt: spec.Base(r + 4), words: cfg.FarWords,
			first: len(cfg.Classes), end: len(sizes), node: c.Rank() % n, full: make([]bool, n),
		},
		free:    make([][]Ref, len(sizes)),
		section: int64(rma.Generation(c)) << 12,
		entries: make([]int64, clientWords*c.Size()),
		list:    make([]int64, slices.Max(sizes)),
	}
	h.entryAt = h.clientsAt + clientWords*c.Rank() + entryWord
	return h, nil
}

// Window is the heap's window: the user's own words, and the blocks.
func (h *Heap) Window() *rma.Window { return h.w }

// Size is the number of words of the block that Alloc gives for a number of words; 0 if there is
// no such class.
func (h *Heap) Size(words int) int {
	if k := h.kind(&h.plain, words); k >= 0 {
		return h.sizes[k]
	}
	return 0
}

// kind is the smallest kind of a part with so many words, or -1.
func (h *Heap) kind(p *part, words int) int {
	for k := p.first; k < p.end; k++ {
		if words <= h.sizes[k] {
			return k
		}
	}
	return -1
}

// partOf is the part that a kind of block is of.
func (h *Heap) partOf(k int) *part {
	if k < h.plain.end {
		return &h.plain
	}
	return &h.far
}

// kindOf is the kind of a block that was given for so many words.
func (h *Heap) kindOf(ref Ref, words int) int {
	p := &h.plain
	if ref.Disp() >= h.far.heapAt {
		p = &h.far
	}
	k := h.kind(p, words)
	if k < 0 || ref.Disp() < p.heapAt || ref.Node() >= len(p.full) || ref.Disp()+h.sizes[k] > p.heapAt+p.words {
		panic(fmt.Sprintf("remote: free of %d words at host %d, displacement %d, which is no block", words, ref.Node(), ref.Disp()))
	}
	return k
}

// Alloc gives a block of at least so many Plain words. It makes no remote operation while the client
// has one of the size; else it takes a list of the pool, or half a chunk of fresh memory. The block
// holds what the last user has left there. The error wraps ErrFull, ErrConfig for a size that no class
// has, or is the transport's.
func (h *Heap) Alloc(words int) (Ref, error) { return h.alloc(&h.plain, words) }

// AllocFar gives a block of at least so many Far words (Config.FarWords). All else is as for Alloc.
func (h *Heap) AllocFar(words int) (Ref, error) { return h.alloc(&h.far, words) }

func (h *Heap) alloc(p *part, words int) (Ref, error) {
	k := h.kind(p, words)
	if words < 1 || k < 0 {
		return 0, fmt.Errorf("remote: heap %q: a block of %d words, want 1 to %d (Config.Classes or FarClasses): %w",
			h.cfg.Name, words, slices.Max(append([]int{0}, h.sizes[p.first:p.end]...)), ErrConfig)
	}
	if len(h.free[k]) == 0 {
		if err := h.refill(k); err != nil {
			return 0, err
		}
	}
	last := len(h.free[k]) - 1
	ref := h.free[k][last]
	h.free[k] = h.free[k][:last]
	h.freeWords -= h.sizes[k]
	return ref, nil
}

// Free gives a block back that Alloc or AllocFar gave for so many words, to any client. No client
// can find it any more: what led to it has been changed and flushed. Sections that began before may
// still read it. It makes no remote operation.
func (h *Heap) Free(ref Ref, words int) {
	k := h.kindOf(ref, words)
	h.limbo = append(h.limbo, waiting{ref: ref, kind: k})
	h.unmarked++
	h.limboWords += h.sizes[k]
}

// Return gives a block back that no other client has ever found, such as one that lost a race. It
// may be given out again at once.
func (h *Heap) Return(ref Ref, words int) { h.put(h.kindOf(ref, words), ref) }

func (h *Heap) put(k int, ref Ref) {
	h.free[k] = append(h.free[k], ref)
	h.freeWords += h.sizes[k]
}

// refill finds blocks of a kind: in the pool, in the rest of the client's memory, in fresh
// memory.
func (h *Heap) refill(k int) error {
	if h.cut(k) {
		return nil
	}
	got, err := h.takeList(k)
	if got || err != nil {
		return err
	}
	p := h.partOf(k)
	for {
		got, err := h.takeMemory(p)
		if err != nil {
			return err
		}
		if !got {
			taken := p.words * len(p.full)
			return fmt.Errorf("remote: heap %q: no block of %d words: all %d words of %d hosts are given out, and none is free (Config.Words, Config.FarWords): %w",
				h.cfg.Name, h.sizes[k], taken, len(p.full), ErrFull)
		}
		if h.cut(k) {
			return nil
		}
	}
}

// cut cuts a block from the rest of the client's memory.
func (h *Heap) cut(k int) bool {
	p, size := h.partOf(k), h.sizes[k]
	if p.spanLeft < size {
		return false
	}
	h.put(k, At(p.spanNode, p.spanDisp))
	p.spanDisp += size
	p.spanLeft -= size
	return true
}

// takeMemory takes half a chunk of fresh memory, from another host if one has no more. It
// reports whether it got some.
func (h *Heap) takeMemory(p *part) (bool, error) {
	h.dissolve(p)
	half := h.cfg.Chunk / 2
	for range p.full {
		node := p.node
		p.node = (p.node + 1) % len(p.full)
		if p.full[node] {
			continue
		}
		before, err := h.w.FetchAndOpFlush(int64(half), node, p.freeAt, rma.Sum)
		if err != nil {
			return false, err
		}
		left := int64(p.words) - before
		p.full[node] = left < int64(half)
		if n := int(min(left, int64(half))); n >= h.sizes[p.first] {
			p.spanNode, p.spanDisp, p.spanLeft = node, p.heapAt+int(before), n
			return true, nil
		}
	}
	return false, nil
}

// dissolve makes blocks of the rest of the client's memory, the largest first.
func (h *Heap) dissolve(p *part) {
	for k := p.end - 1; k >= p.first; {
		if !h.cut(k) {
			k--
		}
	}
	p.spanLeft = 0 // less than a block, at the end of a host's memory
}

// Held is the number of words that the client has in hand: its death loses them.
func (h *Heap) Held() int { return h.plain.spanLeft + h.far.spanLeft + h.freeWords + h.limboWords }

// A Usage is what a heap's memory is used for, in words.
type Usage struct {
	Taken  int64 // given out as fresh memory since the start
	Pooled int64 // in the pool
}

// Usage reads the heap's counters and goes through the pool. The words in use are Taken less
// Pooled less what all clients hold. It is for times at which no client works.
func (h *Heap) Usage() (u Usage, err error) {
	for _, p := range []*part{&h.plain, &h.far} {
		for node := range p.full {
			taken, err := h.w.GetFlush(node, p.freeAt)
			if err != nil {
				return u, err
			}
			u.Taken += min(taken, int64(p.words))
		}
	}
	for k, size := range h.sizes {
		top, err := h.w.GetFlush(0, h.poolAt+k)
		for top &= 1<<refBits - 1; top != 0 && err == nil; {
			var n int
			top, n, err = h.readList(k, Ref(top))
			u.Pooled += int64(n+1) * int64(size)
		}
		if err != nil {
			return u, err
		}
	}
	return u, nil
}

// Close gives what the client holds to the pool. It waits until no reader can see what the
// client has freed, at most some leases. The window stays open.
func (h *Heap) Close() error {
	if h.inside {
		panic("remote: Close in a section")
	}
	for h.limboWords > 0 {
		if err := h.advance(true); err != nil {
			return err
		}
	}
	h.dissolve(&h.plain)
	h.dissolve(&h.far)
	for k := range h.free {
		for len(h.free[k]) > 0 {
			if err := h.giveList(k); err != nil {
				return err
			}
		}
	}
	return h.w.Flush(0)
}

// Unmap closes the window. Collective.
func (h *Heap) Unmap() error { return h.w.Free() }

// largest is the class whose free blocks have the most words.
func (h *Heap) largest() int {
	words := func(k int) int { return len(h.free[k]) * h.sizes[k] }
	best := 0
	for k := range h.free {
		if words(k) > words(best) {
			best = k
		}
	}
	return best
}

// Classes are the sizes of blocks of Plain words, in words.
func (h *Heap) Classes() []int { return slices.Clone(h.cfg.Classes) }
