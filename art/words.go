package art

import (
	"unsafe"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/remote"
	"github.com/rmalock/rmalock/rma"
)

// The fields of SLOT. A slot that is 0 has never been used. One with a symbol keeps it.
var (
	block  = rma.Field{Name: "block", Shift: 0, Bits: 48}
	kind   = rma.Field{Name: "kind", Shift: 48, Bits: 2}
	symbol = rma.Field{Name: "symbol", Shift: 50, Bits: 9}
)

// What a slot has.
const (
	unused = iota
	vacant // a symbol, and no leaf any more
	leaf
	inner
)

// slotWord is a slot with a symbol.
func slotWord(sym, what int, ref remote.Ref) int64 {
	return symbol.With(kind.With(block.With(0, int64(ref)), int64(what)), int64(sym))
}

func kindOf(slot int64) int         { return int(kind.Get(slot)) }
func symbolOf(slot int64) int       { return int(symbol.Get(slot)) }
func blockOf(slot int64) remote.Ref { return remote.Ref(block.Get(slot)) }

// symbols is the number of different symbols: the end of a key, and 256 bytes.
const symbols = 257

// symbolAt is a key's symbol at a depth: 0 behind its last byte, else its byte there and 1 more.
func symbolAt(key []byte, depth int) int {
	if depth >= len(key) {
		return 0
	}
	return int(key[depth]) + 1
}

// The fields of HEAD. All keys of a node have the same bytes before depth; the head has the last
// of them. It never changes.
var (
	prefix = rma.Field{Name: "prefix", Shift: 0, Bits: 48}
	count  = rma.Field{Name: "bytes", Shift: 48, Bits: 3}
	depth  = rma.Field{Name: "depth", Shift: 51, Bits: 12}
)

// mostPrefix is the most bytes that a head has room for.
const mostPrefix = 6

// headOf is the head of a node whose symbols are those at a depth, with the last n bytes of the
// key before that.
func headOf(key []byte, at, n int) int64 {
	bytes := int64(0)
	for i := range n {
		bytes |= int64(key[at-n+i]) << (8 * i)
	}
	return prefix.With(count.With(depth.With(0, int64(at)), int64(n)), bytes)
}

// depthOf is the depth of a head's node.
func depthOf(head int64) int { return int(depth.Get(head)) }

// prefixOf is the number of bytes in a head.
func prefixOf(head int64) int { return int(count.Get(head)) }

// prefixByte is a head's byte i.
func prefixByte(head int64, i int) byte { return byte(head >> (8 * i)) }

// differsAt is the first depth at which a key has another symbol than a head, or -1.
func differsAt(head int64, key []byte) int {
	n := prefixOf(head)
	from := depthOf(head) - n
	for i := range n {
		if symbolAt(key, from+i) != int(prefixByte(head, i))+1 {
			return from + i
		}
	}
	return -1
}

// The words of a node. The slots of its extents are in blocks of their own.
const (
	headWord = iota
	firstExtent
	extents   = 3
	nodeWords = firstExtent + extents // the first slots follow
)

// The words of a leaf. The words of the key follow.
const (
	lockWord = iota
	epochWord
	pointerWord
	idWord
	leafWords
)

// A reader takes a leaf's words from POINTER on, at once with as many of the key.
const (
	readWords = leafWords - pointerWord
	shortKey  = 4
	minLeaf   = leafWords + shortKey
)

// The fields of ID: no two leaves have the same. Before a leaf's block is freed it has no client.
var (
	serial  = rma.Field{Name: "number", Shift: 0, Bits: 38}
	creator = rma.Field{Name: "client", Shift: 38, Bits: 14}
	keySize = rma.Field{Name: "bytes", Shift: 52, Bits: 12}
)

// Bounds of what the words have room for.
const (
	MaxKey   = 1<<12 - 1                         // bytes of a key
	MaxValue = 8 * (1<<12 - 1 - int(blockWords)) // bytes of a value
)

// The fields of POINTER, beside cider.Version.
var (
	address = rma.Field{Name: "block", Shift: 4, Bits: 48}
	length  = rma.Field{Name: "words", Shift: 52, Bits: 12}
)

// valueBlock is what a pointer leads to.
func valueBlock(p int64) (remote.Ref, int) { return remote.Ref(address.Get(p)), int(length.Get(p)) }

// pointer leads to a block.
func pointer(ref remote.Ref, n int) int64 {
	return length.With(address.With(0, int64(ref)), int64(n))
}

// dead reports whether a leaf's key was taken out, by two of its words.
func dead(p, id int64) bool { return cider.Empty(p) || creator.Get(id) == 0 }

// retired is an ID before the leaf's block is freed.
func retired(id int64) int64 { return id & keySize.Mask() }

// The words of a block with a value.
const (
	ownerWord = iota // ID of the leaf
	sumWord          // checksum
	sizeWord
	blockWords
)

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

// words is the number of words of so many bytes.
func words(n int) int { return (n + 7) / 8 }

// bytesOf is the bytes of words, which all clients order alike.
func bytesOf(words []int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}

// fill writes bytes into words, and 0 behind them.
func fill(into []int64, b []byte) {
	clear(into)
	copy(bytesOf(into), b)
}

// hash is a key's number: credits go by it.
func hash(key []byte) uint64 {
	sum := uint64(14695981039346656037)
	for _, b := range key {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	return sum ^ sum>>29
}
