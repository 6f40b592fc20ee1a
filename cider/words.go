package cider

import (
	"unsafe"

	"github.com/rmalock/rmalock/remote"
	"github.com/rmalock/rmalock/rma"
)

// The fields of a pointer of the array beside Version (Figure 8: 60 bits and 4).
var (
	address = rma.Field{Name: "block", Shift: 4, Bits: 48}
	length  = rma.Field{Name: "words", Shift: 52, Bits: 12}
)

// The fields of LOCK: the version comes before that of POINTER while a deletion is in the queue.
var (
	tail   = rma.Field{Name: "tail", Shift: 4, Bits: 40} // the last client of the queue, 0 for none
	resets = rma.Field{Name: "resets", Shift: 44, Bits: 20}
)

// queueMask is the part of LOCK that a client swaps to enter the queue.
var queueMask = tail.Mask() | Version.Mask()

// block is what a pointer leads to.
func block(p int64) (remote.Ref, int) { return remote.Ref(address.Get(p)), int(length.Get(p)) }

// pointer leads to a block.
func pointer(ref remote.Ref, words int) int64 {
	return length.With(address.With(0, int64(ref)), int64(words))
}

// A name is a client's place in a queue, as in tail: client + 1, and the number of its entry.
type name int64

const (
	numberBits = 24
	numbers    = 1<<numberBits - 1
	maxClients = 1<<14 - 1
)

func nameOf(client int, number int64) name { return name(int64(client+1)<<numberBits | number&numbers) }

func (n name) client() int   { return int(n>>numberBits) - 1 }
func (n name) number() int64 { return int64(n) & numbers }

// The fields of NEXT and of STATUS. A message names the entry of its receiver: one that comes late
// is for no other.
var (
	forNumber = rma.Field{Name: "for", Shift: 40, Bits: numberBits}

	from = rma.Field{Name: "from", Shift: 0, Bits: 40} // of NEXT

	info   = rma.Field{Name: "info", Shift: 38, Bits: 2}   // of STATUS
	result = rma.Field{Name: "result", Shift: 36, Bits: 2} // of finished and combined
	batch  = rma.Field{Name: "batch", Shift: 0, Bits: 16}  // of combined: the updates so far
	whom   = rma.Field{Name: "coordinator", Shift: 0, Bits: 38}
)

// What STATUS says (Figure 7).
const (
	holds    = 1 + iota // the lock is the receiver's; of a coordinator: the executor has finished
	executes            // the receiver executes for a coordinator
	combined            // another client's update stands for the receiver's too
)

// The words of a block.
const (
	keyWord = iota
	sumWord // checksum
	sizeWord
	headWords
)

// MaxBytes is the most bytes of a value: what the field words has room for.
const MaxBytes = 8 * (1<<12 - 1 - headWords)

// checksum is that of a block's words but itself.
func checksum(b []int64) int64 {
	sum := uint64(14695981039346656037)
	for i, v := range b {
		if i != sumWord {
			sum = (sum ^ uint64(v)) * 1099511628211
			sum ^= sum >> 29
		}
	}
	return int64(sum)
}

// bytesOf is the bytes of words, which all clients order alike.
func bytesOf(words []int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}
