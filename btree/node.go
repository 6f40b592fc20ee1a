package btree

import (
	"math/bits"
	"slices"

	"github.com/rmalock/rmalock/remote"
)

// The words of a node: a header, then slots.
const (
	versionWord  = iota // level 8 | version 56; a version ends when the whole node is written
	lowWord             // least key
	highWord            // the least key that is too large; endKey at the right end
	siblingWord         // the node to the right
	leftmostWord        // of an inner node, the child left of all keys
	headerCheck         // of the words before
	headerWords
)

// The words of a slot.
const (
	keyWord = iota
	valueWord
	checkWord // of the slot, its place, and the node's version; its last bit says that a key is there
	slotWords
)

const (
	levelShift = 56
	endKey     = 1<<63 - 1
	firstKey   = -1 << 63
)

// A node is a copy of a node's words.
type node []int64

func (n node) level() int            { return int(uint64(n[versionWord]) >> levelShift) }
func (n node) low() int64            { return n[lowWord] }
func (n node) high() int64           { return n[highWord] }
func (n node) sibling() remote.Ref   { return remote.Ref(n[siblingWord]) }
func (n node) covers(key int64) bool { return n.low() <= key && (key < n.high() || n.high() == endKey) }
func (n node) slots() int            { return (len(n) - headerWords) / slotWords }

func (n node) slot(i int) []int64 {
	at := headerWords + i*slotWords
	return n[at : at+slotWords]
}

func (n node) has(i int) bool { return n.slot(i)[checkWord]&1 != 0 }

// sum mixes words into one.
func sum(words ...int64) int64 {
	h := uint64(0xA0761D6478BD642F)
	for _, v := range words {
		hi, lo := bits.Mul64(h^uint64(v), 0x8EBC6AF09C88C6E3)
		h = hi ^ lo ^ 0xE7037ED1A0B428DB
	}
	return int64(h)
}

// slotCheck is the checksum of a slot of a version.
func (n node) slotCheck(i int, there bool) int64 {
	s := n.slot(i)
	c := sum(n[versionWord], int64(i), s[keyWord], s[valueWord]) &^ 1
	if there {
		c |= 1
	}
	return c
}

// set fills a slot, or empties it.
func (n node) set(i int, key, value int64, there bool) {
	s := n.slot(i)
	if !there {
		key, value = 0, 0
	}
	s[keyWord], s[valueWord] = key, value
	s[checkWord] = n.slotCheck(i, there)
}

// seal ends a header that has been changed: all slots belong to the next version.
func (n node) seal() { n[headerCheck] = sum(n[:headerCheck]...) }

// whole reports whether the words are those of one version. A read may have found some of
// an older one.
func (n node) whole() bool {
	if n[headerCheck] != sum(n[:headerCheck]...) || n[headerCheck] == 0 {
		return false
	}
	for i := range n.slots() {
		if n.slot(i)[checkWord] != n.slotCheck(i, n.has(i)) {
			return false
		}
	}
	return true
}

// find is the slot of a key, or -1.
func (n node) find(key int64) int {
	for i := range n.slots() {
		if s := n.slot(i); s[keyWord] == key && s[checkWord]&1 != 0 {
			return i
		}
	}
	return -1
}

// room is an empty slot, or -1.
func (n node) room() int {
	for i := range n.slots() {
		if !n.has(i) {
			return i
		}
	}
	return -1
}

// child is the child of an inner node that covers a key.
func (n node) child(key int64) remote.Ref {
	best, at := n[leftmostWord], int64(firstKey)
	for i := range n.slots() {
		if s := n.slot(i); s[checkWord]&1 != 0 && s[keyWord] <= key && s[keyWord] >= at {
			best, at = s[valueWord], s[keyWord]
		}
	}
	return remote.Ref(best)
}

// A pair is a key and its value, or its child.
type pair struct{ key, value int64 }

// pairs are the node's pairs in the order of keys.
func (n node) pairs(into []pair) []pair {
	into = into[:0]
	for i := range n.slots() {
		if s := n.slot(i); s[checkWord]&1 != 0 {
			into = append(into, pair{s[keyWord], s[valueWord]})
		}
	}
	slices.SortFunc(into, func(a, b pair) int {
		if a.key < b.key {
			return -1
		}
		return 1
	})
	return into
}

// fill makes a node of a level, a version, fences, and pairs.
func (n node) fill(level int, version, low, high int64, sibling remote.Ref, leftmost int64, pairs []pair) {
	n[versionWord] = int64(level)<<levelShift | version&(1<<levelShift-1)
	n[lowWord], n[highWord], n[siblingWord], n[leftmostWord] = low, high, int64(sibling), leftmost
	for i := range n.slots() {
		if i < len(pairs) {
			n.set(i, pairs[i].key, pairs[i].value, true)
		} else {
			n.set(i, 0, 0, false)
		}
	}
	n.seal()
}

func (n node) version() int64 { return n[versionWord] & (1<<levelShift - 1) }
