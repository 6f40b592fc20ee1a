package declock

import (
	"fmt"
	"math/bits"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// A header is the layout of a lock's header: Figure 5, with an epoch and a bit for deaths.
// From the low end: the reset id, died, epoch, wcnt, qsize, qhead. Only the highest field may
// overflow.
type header struct {
	rst   rma.Field // 0, or the name of the rank that resets the lock
	died  rma.Field // an exclusive holder may have died; the paper has none
	epoch rma.Field // resets, modulo its size; the paper has a counter at each compute node
	wcnt  rma.Field // writers in the queue
	qsize rma.Field // ranks in the queue, holders among them
	qhead rma.Field // index of the first of them

	capacity int64 // entries, a power of two
	laps     int64 // an index of this lap or a later one has no version: section 4.4, version overflow
	state    int64 // mask of rst and epoch, which a reset changes
}

// generations is how many ranks of one number, one after the other, have names of their own.
const generations = 4

// newHeader lays out the header for a number of ranks, a capacity, and as many bits of an
// epoch and of an entry's version.
func newHeader(ranks, capacity, epochBits, versionBits int) (header, error) {
	var h header
	at := uint8(0)
	field := func(name string, n int) rma.Field {
		f := rma.Field{Name: name, Shift: at, Bits: uint8(n)}
		at += uint8(n)
		return f
	}
	// Each rank is in the queue once, and once more when it meets a reset.
	size := max(bits.Len(uint(capacity)), bits.Len(uint(2*ranks)))
	if k := bits.Len(uint(generations * ranks)); k+1+epochBits+2*size < 64 {
		h.rst, h.died, h.epoch = field("rst", k), field("died", 1), field("epoch", epochBits)
		h.wcnt, h.qsize = field("wcnt", size), field("qsize", size)
		h.qhead = field("qhead", 64-int(at))
	}
	h.qhead.Wraps = true
	h.capacity = int64(capacity)
	h.state = h.rst.Mask() | h.epoch.Mask()
	// One bit is left: indices that are taken until a reset begins are not taken for old ones.
	versionBits = min(versionBits, min(int(h.qhead.Bits), int(partIndex.Bits))-bits.Len(uint(capacity)))
	if versionBits < 2 {
		return h, fmt.Errorf("declock: the header has no room for a queue of %d ranks with a capacity of %d and an epoch of %d bits: %w",
			ranks, capacity, epochBits, lock.ErrConfig)
	}
	h.laps = 1<<versionBits - 1
	return h, nil
}

// fields are the header's fields as rma shows them.
func (h *header) fields() []rma.Field {
	return []rma.Field{h.rst, h.died, h.epoch, h.wcnt, h.qsize, h.qhead}
}

// enter is what an acquire adds to the header (F7:1), and leave what a release adds (F7:6).
func (h *header) enter(mode lock.Mode) int64 {
	if mode == lock.Exclusive {
		return h.qsize.One() + h.wcnt.One()
	}
	return h.qsize.One()
}

func (h *header) leave(mode lock.Mode) int64 { return h.qhead.One() - h.enter(mode) }

// open reports whether a rank that enters at v holds the lock at once (F7:2).
func (h *header) open(v int64, mode lock.Mode) bool {
	if mode == lock.Exclusive {
		return h.qsize.Get(v) == 0
	}
	return h.wcnt.Get(v) == 0
}

// tail is the index of the rank that enters at v.
func (h *header) tail(v int64) int64 { return h.qhead.Get(v) + h.qsize.Get(v) }

// lap is the number of times that the queue was filled before an index: the entry's version.
func (h *header) lap(index int64) int64 { return index / h.capacity }

// slot is the place of an index's entry in the queue.
func (h *header) slot(index int64) int { return int(index & (h.capacity - 1)) }

// full reports whether a rank that waits, and enters at v, has no entry, or none with a version.
func (h *header) full(v int64) bool {
	return h.qsize.Get(v) >= h.capacity || h.lap(h.tail(v)) >= h.laps
}

// fresh is the header after a reset of v.
func (h *header) fresh(v int64, died bool) int64 {
	next := h.epoch.With(v&h.died.Mask(), h.epoch.Get(v)+1)
	if died {
		next = h.died.With(next, 1)
	}
	return next
}

// An entry is 8 bytes, so that it is read whole: section 4.1, Figure 9. The version is kept
// as its complement, so that 0 is the initial entry, whose version is -1. The epoch tells
// entries of before a reset; the paper has none.
var (
	entryClient     = rma.Field{Name: "client", Shift: 0, Bits: 20} // rank * maxHeld + slot
	entryGeneration = rma.Field{Name: "gen", Shift: 20, Bits: 2}
	entryEpoch      = rma.Field{Name: "epoch", Shift: 22, Bits: 8}
	entryMode       = rma.Field{Name: "mode", Shift: 30, Bits: 1}
	entryStamped    = rma.Field{Name: "stamped", Shift: 31, Bits: 1}
	entryStamp      = rma.Field{Name: "stamp", Shift: 32, Bits: 16}
	entryVersion    = rma.Field{Name: "~version", Shift: 48, Bits: 16}
)

// maxEpochBits is the room for an epoch in an entry and in a message.
const maxEpochBits = 8

// An age is how an entry compares with the index that a rank looks for.
type age uint8

const (
	unwritten age = iota // the rank at the index has not written it, or never will
	written
	lapped // a later index has written it: the rank at this one has been served
)

// age compares an entry with an index.
func (h *header) age(entry, index, epoch int64) age {
	version := ^entryVersion.Get(entry) & 0xffff
	switch lap := h.lap(index); {
	case entryVersion.Get(entry) == 0 || entryEpoch.Get(entry) != epoch || version < lap:
		return unwritten
	case version == lap:
		return written
	}
	return lapped
}

// A message is a word that one rank puts into another one's mailbox: a grant, or a reset.
var (
	msgLock       = rma.Field{Name: "lock", Shift: 0, Bits: 32}
	msgEpoch      = rma.Field{Name: "epoch", Shift: 32, Bits: 8}
	msgGeneration = rma.Field{Name: "gen", Shift: 40, Bits: 2}
	msgSent       = rma.Field{Name: "sent", Shift: 42, Bits: 1}
	msgDied       = rma.Field{Name: "died", Shift: 43, Bits: 1}
	msgStamped    = rma.Field{Name: "stamped", Shift: 44, Bits: 1}
	msgStamp      = rma.Field{Name: "stamp", Shift: 45, Bits: 16}
	msgSought     = rma.Field{Name: "sought", Shift: 61, Bits: 1} // the entry was overwritten: see overwrite.go
)

// addressed is what says for which acquire a message is: its lock, the epoch, the generation of
// the rank.
var addressed = msgLock.Mask() | msgEpoch.Mask() | msgGeneration.Mask() | msgSent.Mask()

// A part is what a rank does with a lock: the word that those read that reset the lock, or
// look for the dead.
var (
	partLock  = rma.Field{Name: "lock", Shift: 0, Bits: 32}
	partState = rma.Field{Name: "state", Shift: 32, Bits: 2}
	partMode  = rma.Field{Name: "mode", Shift: 34, Bits: 1}

	partGeneration = rma.Field{Name: "gen", Shift: 35, Bits: 2}
	partIndex      = rma.Field{Name: "index", Shift: 37, Bits: 27} // of a rank that waits
)

// The states of a part.
const (
	out     int64 = iota // the slot is not used
	in                   // the rank is on its way into the queue, or out of it, or holds the lock
	waiting              // it waits for a grant
	left                 // a rank that had the number before has died in it
)
