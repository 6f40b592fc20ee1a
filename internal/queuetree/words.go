package queuetree

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// An address is where a word is.
type address struct{ rank, disp int }

// A node is the name of a queue node, the same at all ranks; 0 is none.
type node = int64

// A status is a value of STATUS.
type status = int64

const (
	null   node   = 0
	idle   status = 0
	wait   status = 1
	parent status = 2
	start  status = held // granted(0, null): ACQUIRE_START
)

// granted packs the number of passings and the node at the next level out.
func granted(passings int64, up node) status { return held | passings<<31 | up }

func passings(s status) int64 { return s >> 31 & (1<<31 - 1) }
func upper(s status) node     { return s & (1<<31 - 1) }

// rankOf is the rank that owns a node.
func rankOf(n node) int { return int(n-1) / Slots }

// words is where the words of any rank's node begin.
func (t *Tree) words(n node) (rank, disp int) {
	return rankOf(n), int(n-1) % Slots * 2 * (t.Leaf + 1)
}

// nextWord and statusWord are where NEXT and STATUS of any rank's node at a level are.
func (t *Tree) nextWord(level int, n node) (rank, disp int) {
	rank, disp = t.words(n)
	return rank, disp + 2*level
}

func (t *Tree) statusWord(level int, n node) (rank, disp int) {
	rank, disp = t.words(n)
	return rank, disp + 2*level + 1
}

// tailWord is where the TAIL of a lock is, in the rank's element of a level.
func (t *Tree) tailWord(level, id int) (host, disp int) {
	switch {
	case id == 0:
		return t.tailHost[level], t.tailBase[level]
	case level == 0:
		return (t.home + id) % t.size, t.tailBase[0] + id/t.size
	}
	return t.topo.HostOf(level, t.element[level], id), t.tailBase[level] + id/t.ranks[level]
}

// Home is the rank that hosts the TAIL of a lock at the root.
func (t *Tree) Home(id int) int {
	t.Check(id)
	return (t.home + id) % t.size
}

// RootTail is where that TAIL is.
func (t *Tree) RootTail(id int) (host, disp int) { return t.tailWord(0, id) }

// Check panics for a lock that is not there.
func (t *Tree) Check(id int) {
	if uint(id) >= uint(t.locks) {
		panic(fmt.Sprintf("%s: lock %d of a table of %d", t.name, id, t.locks))
	}
}

// setStatus writes STATUS of a node at a level.
func (t *Tree) setStatus(level int, n node, s status) error {
	rank, disp := t.statusWord(level, n)
	t.W.Put(s, rank, disp)
	return t.W.Flush(rank)
}

// awaitSuccessor waits until the rank behind a node has linked itself to it.
func (t *Tree) awaitSuccessor(level int, n node) (succ node, err error) {
	rank, disp := t.nextWord(level, n)
	return t.W.Await(rank, disp, rma.NotEqual(null)) // L5:18 L5:19 L5:20 L8:18 L8:19 L8:20
}
