package race

import (
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/remote"
	"github.com/rmalock/rmalock/rma"
)

// The fields of a SLOT. The version is package cider's; it and the two fields after it outlive the
// key, so that they tell what has been in the slot since.
var (
	wraps  = rma.Field{Name: "wraps", Shift: 4, Bits: 2, Wraps: true} // of the version
	mark   = rma.Field{Name: "mark", Shift: 6, Bits: 4}               // doublings of the bucket when a split has come by
	state  = rma.Field{Name: "state", Shift: 10, Bits: 2}
	unit   = rma.Field{Name: "unit", Shift: 12, Bits: 30} // of the block
	node   = rma.Field{Name: "node", Shift: 42, Bits: 6}
	length = rma.Field{Name: "length", Shift: 48, Bits: 8} // of the block in units; 0: the slot is empty
	print  = rma.Field{Name: "fingerprint", Shift: 56, Bits: 8}
)

// unitWords is the words of a unit: the size of the smallest block.
const unitWords = 4

// States of a slot that is not empty.
const (
	committed = iota // the key is in the table
	tentative        // a client is about to insert it
	frozen           // it moves to another segment
)

// marks are what an empty slot keeps beside the version.
var marks = wraps.Mask() | mark.Mask()

func empty(w int64) bool { return w&^(marks|cider.Version.Mask()) == 0 }

// emptied is a slot without its key, which has not been in the table.
func emptied(w int64) int64 { return w & (marks | cider.Version.Mask()) }

// gone is a slot after the deletion of its key.
func gone(w int64) int64 {
	w = emptied(w)
	if v := cider.Version.Get(w); v == cider.Version.Mask() {
		w = wraps.With(w, wraps.Get(w)+1)
	}
	return cider.Version.With(w, cider.Version.Get(w)+1)
}

// is reports whether a slot has a key of that fingerprint in a state.
func is(w, s, f int64) bool { return !empty(w) && state.Get(w) == s && print.Get(w) == f }

// The fields of a HEADER, the first word of a bucket. One that is 0 is closed, but in the segments
// of the start, which all clients know.
var (
	depth  = rma.Field{Name: "depth", Shift: 0, Bits: 8} // bits of the hash that all keys share
	suffix = rma.Field{Name: "suffix", Shift: 8, Bits: 32}
	open   = rma.Field{Name: "open", Shift: 40, Bits: 1}
)

// splits is the field that a DIRECTORY word has beside those of a HEADER: the segment is being
// split. One that is 0 is of a segment that is not complete, or of the start.
var splits = rma.Field{Name: "splits", Shift: 41, Bits: 1}

// The words of a block: lengths and a part of the hash, the checksum, key, value.
const (
	headWord = iota
	sumWord
	headWords
)

var (
	keyBytes   = rma.Field{Name: "key bytes", Shift: 0, Bits: 13}
	valueBytes = rma.Field{Name: "value bytes", Shift: 13, Bits: 13}
	hashBits   = rma.Field{Name: "hash", Shift: 26, Bits: 38}
)

// MaxBytes is the most bytes of a key and its value together.
const MaxBytes = 8 * (unitWords*(1<<8-1) - headWords - 1)

// wordsOf is the words of a number of bytes.
func wordsOf(bytes int) int { return (bytes + 7) / 8 }

// bytesOf is the bytes of words, which all clients order alike.
func bytesOf(words []int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}

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

// fill writes the block of a key into b, and returns its words.
func fill(b []int64, k *target, value []byte) []int64 {
	kw := wordsOf(len(k.key))
	b = b[:headWords+kw+wordsOf(len(value))]
	clear(b)
	b[headWord] = hashBits.With(valueBytes.With(int64(len(k.key)), int64(len(value))), int64(k.hash))
	copy(bytesOf(b[headWords:]), k.key)
	copy(bytesOf(b[headWords+kw:]), value)
	b[sumWord] = checksum(b)
	return b
}

// whole is a block without what lies behind its value, or nil if its checksum is wrong.
func whole(b []int64) []int64 {
	n := headWords + wordsOf(int(keyBytes.Get(b[headWord]))) + wordsOf(int(valueBytes.Get(b[headWord])))
	if n > len(b) || b[sumWord] != checksum(b[:n]) {
		return nil
	}
	return b[:n]
}

// has reports whether a block is of a key.
func (k *target) has(b []int64) bool {
	n := int(keyBytes.Get(b[headWord]))
	return hashBits.Get(b[headWord]) == int64(k.hash)&(1<<38-1) && n == len(k.key) && string(bytesOf(b[headWords:])[:n]) == string(k.key)
}

// value is the value in a block.
func value(b []int64) []byte {
	from := headWords + wordsOf(int(keyBytes.Get(b[headWord])))
	return bytesOf(b[from:])[:valueBytes.Get(b[headWord])]
}

// pointer is a slot that leads to a block.
func (t *Table) pointer(ref remote.Ref, words int, f int64) int64 {
	w := unit.With(print.With(0, f), int64(ref.Disp()-t.blocksAt)/unitWords)
	return length.With(node.With(w, int64(ref.Node())), int64((words+unitWords-1)/unitWords))
}

// block is what a slot leads to, and its words.
func (t *Table) block(w int64) (remote.Ref, int) {
	return remote.At(int(node.Get(w)), t.blocksAt+unitWords*int(unit.Get(w))), unitWords * int(length.Get(w))
}

// A target is a key and where it belongs: the low bits of the hash say in which segment, and main
// has the two main buckets there.
type target struct {
	key   []byte
	hash  uint64
	main  [2]int
	print int64
}

// aim finds where a key belongs. Its two main buckets differ.
func (t *Table) aim(key []byte) {
	h := hash(key)
	n := uint64(2 * t.cfg.Groups)
	first, _ := bits.Mul64(mix(h, 1), n)
	other, _ := bits.Mul64(mix(h, 2), n-1)
	t.to = target{key: key, hash: h, main: [2]int{int(first), int((first + 1 + other) % n)}, print: int64(mix(h, 3) >> 56)}
}

// mix is one of some hashes of a hash.
func mix(h, which uint64) uint64 {
	hi, lo := bits.Mul64(h^which*0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3)
	return hi ^ lo
}

func hash(key []byte) uint64 {
	h := uint64(len(key)) * 0xA0761D6478BD642F
	for ; len(key) >= 8; key = key[8:] {
		h = mix(h^binary.LittleEndian.Uint64(key), 4)
	}
	if len(key) > 0 {
		var last [8]byte
		copy(last[:], key)
		h = mix(h^binary.LittleEndian.Uint64(last[:]), 5)
	}
	return mix(h, 6)
}
