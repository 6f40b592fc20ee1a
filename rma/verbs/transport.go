//go:build cgo && verbs

package verbs

// #include "nic.h"
import "C"

import (
	"errors"
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/internal/nearmem"
)

// Looks at the completion queue in one call into C.
const (
	polls        = 1000
	pollsCrowded = 10 // where ranks exceed cores, and between two yields: others may have work
)

// A card has stepLimit to end a step, and gives up by itself long before. So many looks in that
// time show that it was the card that stood still, and not this machine.
const (
	stepLimit  = 5 * time.Second
	stepLooks  = 100 * lookRounds
	lookRounds = 256 // between two looks at the clock
)

// host is where the words of one host of a window are.
type host struct {
	target *target
	pair   C.int32_t // its number among the node's targets
	place  place
}

// transport is one rank's access to words through the device, and its way to wait.
type transport struct {
	n     *node
	life  *life
	hosts []host
	near  *nearmem.Memory // the words of the ranks of the node; nil in a window of memory nodes
	mates rma.Node
	rank  int
	polls C.int
	now   func() int64
	free  func() error

	piece   // C memory
	issued  [rma.MaxPending]issued
	pending int
	spare   uint64 // words of the handle that no operation has
	staged  int    // words of stage that operations have
	stages  []*stage
	buffers []*stage // of Window.Buffer
	err     error    // of an operation that could not be issued

	early rma.Results // of operations that a long bulk operation has completed
	got   uint64      // those of early that no Flush has taken yet
}

// issued is an operation at the same index as in the handle.
type issued struct {
	rma.Operation
	word   int8           // of the handle, for an operation on one word
	buffer unsafe.Pointer // of a bulk operation that is copied, else nil
}

func newTransport(n *node, l *life, hosts []host) (*transport, error) {
	h, err := n.takeHandle()
	if err != nil {
		return nil, err
	}
	return &transport{n: n, life: l, hosts: hosts, piece: h, spare: ^uint64(0), polls: polls}, nil
}

func (t *transport) Issue(o rma.Operation) {
	if o.Kind == rma.KindAccumulate && o.Op == rma.NoOp {
		return
	}
	i := t.pending
	q := &t.issued[i]
	q.Operation, q.word, q.buffer = o, -1, nil
	c := &t.h.ops[i]
	*c = C.nic_op{
		remote: C.uint64_t(t.hosts[o.Target].place.Address) + C.uint64_t(o.Disp)*8, key: C.uint32_t(t.hosts[o.Target].place.Key),
		local_key: t.key, bytes: 8, target: C.int32_t(o.Target), fence: t.fenced(&o),
	}
	switch o.Kind {
	case rma.KindPutBulk, rma.KindGetBulk:
		if !t.bulk(q, c) {
			return
		}
	default:
		q.word = int8(bits.TrailingZeros64(t.spare))
		t.spare &^= 1 << q.word
		t.one(q, c, &t.h.words[q.word])
	}
	t.pending++
}

// one fills in an operation on one word.
func (t *transport) one(q *issued, c *C.nic_op, word *C.int64_t) {
	c.local = C.uint64_t(uintptr(unsafe.Pointer(word)))
	c.operand = C.uint64_t(q.Operand)
	switch q.Kind {
	case rma.KindPut:
		c.kind = C.NIC_WRITE
		*word = C.int64_t(q.Operand)
	case rma.KindCompareAndSwap:
		c.kind = C.NIC_COMPARE_AND_SWAP
		c.compare = C.uint64_t(q.Compare)
	case rma.KindAccumulate, rma.KindFetchAndOp:
		c.kind = C.NIC_FETCH_AND_ADD
		if q.Op == rma.NoOp {
			c.kind = C.NIC_READ
		}
	default:
		c.kind = C.NIC_READ
	}
}

// fenced says which answers an operation must wait for: a pair keeps its order but for a WRITE or
// an atomic behind a READ or an atomic.
func (t *transport) fenced(o *rma.Operation) C.uint8_t {
	if o.Kind == rma.KindGet || o.Kind == rma.KindGetBulk || o.Kind == rma.KindFetchAndOp && o.Op == rma.NoOp {
		return 0
	}
	after := C.uint8_t(0)
	for i := range t.pending {
		switch t.h.ops[i].kind {
		case C.NIC_WRITE:
			continue
		case C.NIC_READ:
			if o.Follows(&t.issued[i].Operation) {
				after |= C.NIC_AFTER_READ
			}
		default:
			if o.Follows(&t.issued[i].Operation) {
				after |= C.NIC_AFTER_ATOMIC
			}
		}
	}
	return after
}

// Flush completes what was issued, by one list for each target.
func (t *transport) Flush(to int, r *rma.Results) (int, error) {
	err := t.err
	t.err = nil
	for ; t.got != 0 && r != &t.early; t.got &= t.got - 1 {
		slot := bits.TrailingZeros64(t.got)
		r[slot] = t.early[slot]
	}
	if to >= 0 {
		if e := t.step(to, r); err == nil {
			err = e
		}
	} else if e := t.all(r); err == nil {
		err = e
	}
	t.compact()
	return t.pending, err
}

// done marks an operation that is complete, or never will be.
const done = -1

// step does all operations issued to a host.
func (t *transport) step(to int, r *rma.Results) error {
	first := -1
	for i := 0; i < t.pending && first < 0; i++ {
		if t.issued[i].Target == to {
			first = i
		}
	}
	if first < 0 {
		return nil
	}
	g := t.hosts[to].target
	if err := g.lock(); err != nil {
		t.finish(C.int32_t(to), nil, false)
		return err
	}
	s := &t.h.steps[first]
	from := C.nic_post(g.pair.p, &t.h.ops[0], 0, C.int(t.pending), C.int(to), s, t.polling())
	err := t.rest(g, s, from, C.int(to))
	swap := g.swap
	g.mu.RUnlock()
	if err != nil {
		r = nil
	}
	t.finish(C.int32_t(to), r, swap)
	return err
}

// all does all operations: one list for each pair, at the same time.
func (t *transport) all(r *rma.Results) error {
	for i := range t.pending {
		t.h.ops[i].target = t.hosts[t.issued[i].Target].pair
	}
	var failed error
	var begun [rma.MaxPending]*target
	var from [rma.MaxPending]C.int
	for i := range t.pending {
		pair := t.h.ops[i].target
		if pair == done || t.earlier(i) {
			continue
		}
		g := t.hosts[t.issued[i].Target].target
		if err := g.lock(); err != nil {
			t.finish(pair, nil, false)
			failed = errors.Join(failed, err)
			continue
		}
		begun[i] = g
		from[i] = C.nic_post(g.pair.p, &t.h.ops[0], 0, C.int(t.pending), pair, &t.h.steps[i], 0)
	}
	for i, g := range begun {
		if g == nil {
			continue
		}
		err := t.rest(g, &t.h.steps[i], from[i], t.h.ops[i].target)
		swap := g.swap
		g.mu.RUnlock()
		into := r
		if err != nil {
			failed, into = errors.Join(failed, err), nil
		}
		t.finish(t.h.ops[i].target, into, swap)
	}
	return failed
}

// earlier reports whether an operation before one is for the same pair.
func (t *transport) earlier(i int) bool {
	for j := range i {
		if t.h.ops[j].target == t.h.ops[i].target {
			return true
		}
	}
	return false
}

// rest waits for the end of a list, and posts and awaits what did not go into it.
func (t *transport) rest(g *target, s *C.nic_step, from, to C.int) error {
	for {
		if err := t.wait(g, s); err != nil || from >= C.int(t.pending) {
			return err
		}
		from = C.nic_post(g.pair.p, &t.h.ops[0], from, C.int(t.pending), to, s, t.polling())
	}
}

// polling is how often a rank looks for the end of a list before it waits for it. Soft-RoCE needs the
// processor for the lists of those that wait.
func (t *transport) polling() C.int {
	if t.n.soft && t.n.waits.Load() > 0 {
		return pollsCrowded
	}
	return t.polls
}

// wait waits for the end of a list.
func (t *transport) wait(g *target, s *C.nic_step) error {
	posted := (*int32)(&s.posted)
	polls, yields := C.int(pollsCrowded), yields
	if t.n.soft && atomic.LoadInt32(posted) != 0 {
		if t.n.waits.Add(1) > 1 {
			yields = yieldsSoft
		} else {
			polls = t.polls
		}
		defer t.n.waits.Add(-1)
	}
	var since time.Time
	for round := 0; atomic.LoadInt32(posted) != 0; round++ {
		if pace(round, yields); round%lookRounds == lookRounds-1 {
			if since.IsZero() {
				since = time.Now()
			} else if round > stepLooks && time.Since(since) > stepLimit {
				C.nic_pair_break(g.pair.p, C.NIC_GIVEN_UP)
				since = time.Now()
			}
		}
		if atomic.LoadInt32(posted) != 0 {
			C.nic_poll(g.pair.p, s, polls)
		}
	}
	if s.status != 0 {
		return g.failed(int(s.status))
	}
	return nil
}

const (
	yields     = 200                   // of a wait, before it sleeps
	yieldsSoft = 20                    // over Soft-RoCE, of one rank of several that wait
	nap        = 50 * time.Microsecond // of a wait then
)

// pace gives the processor away between two looks: to other goroutines first, and after so many
// yields to other threads.
func pace(round, yields int) {
	if round < yields {
		runtime.Gosched()
	} else {
		time.Sleep(nap)
	}
}

// finish takes the operations whose target is to off, and their results unless r is nil.
func (t *transport) finish(to C.int32_t, r *rma.Results, swap bool) {
	for i := range t.pending {
		q := &t.issued[i]
		if t.h.ops[i].target != to {
			continue
		}
		if r != nil {
			t.result(q, &t.h.ops[i], r, swap)
		}
		if q.word >= 0 {
			t.spare |= 1 << q.word
		}
		t.h.ops[i].target = done
	}
}

// result stores what an operation has brought.
func (t *transport) result(q *issued, c *C.nic_op, r *rma.Results, swap bool) {
	switch q.Kind {
	case rma.KindGet, rma.KindFetchAndOp, rma.KindCompareAndSwap:
		v := uint64(t.h.words[q.word])
		if swap && c.kind != C.NIC_READ {
			v = bits.ReverseBytes64(v)
		}
		r[q.Slot] = int64(v)
		if r == &t.early {
			t.got |= 1 << q.Slot
		}
	case rma.KindGetBulk:
		if q.buffer != nil {
			copy(q.Data, unsafe.Slice((*int64)(q.buffer), len(q.Data)))
		}
	case rma.KindPut, rma.KindAccumulate, rma.KindPutBulk, rma.KindMaskedSwap, rma.Kinds:
	}
}

// compact closes the gaps that completed operations leave.
func (t *transport) compact() {
	kept := 0
	for i := range t.pending {
		if t.h.ops[i].target == done {
			continue
		}
		if kept != i {
			t.h.ops[kept], t.issued[kept] = t.h.ops[i], t.issued[i]
		}
		kept++
	}
	for i := kept; i < t.pending; i++ {
		t.issued[i].Data = nil
	}
	if t.pending = kept; kept == 0 {
		t.staged = 0
		t.shrink()
	}
}

// SpinBriefly yields to other goroutines a few times. The words of a client that comes and goes
// are no memory of its own to look at.
func (t *transport) SpinBriefly(disp int, seen int64) {
	if t.near == nil {
		runtime.Gosched()
		return
	}
	p := t.near.Word(t.rank, disp)
	for i := 0; i < 4 && atomic.LoadInt64(p) == seen; i++ {
		runtime.Gosched()
	}
}

// SyncInboundStores has nothing to do: the card stores a word once.
func (t *transport) SyncInboundStores() error { return nil }

// HandedOver yields to other goroutines.
func (t *transport) HandedOver(int) { runtime.Gosched() }

// Wake has nothing to do: ranks that wait for words that a card may change look at them.
func (t *transport) Wake(int) {}

func (t *transport) Free() error {
	err := t.free()
	for _, s := range append(t.stages, t.buffers...) {
		err = errors.Join(err, s.close())
	}
	t.n.giveHandle(t.piece)
	return err
}
