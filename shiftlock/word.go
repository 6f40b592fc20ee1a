package shiftlock

import "github.com/rmalock/rmalock/rma"

// The fields of LOCK. All zero is a free lock that was never used.
var (
	// mode is flipped to let waiting readers in.
	mode = rma.Field{Name: "mode", Shift: 0, Bits: 1}
	// rdr counts the readers inside and waiting.
	rdr = rma.Field{Name: "rdr", Shift: 1, Bits: 13}
	// tail names the last writer of the queue and its mailboxes; 0 is an empty queue.
	tail = rma.Field{Name: "tail", Shift: 14, Bits: 19}
	// died says that a writer may have died in the lock. The paper has none.
	died = rma.Field{Name: "died", Shift: 33, Bits: 1}
	// era counts the resets.
	era = rma.Field{Name: "era", Shift: 34, Bits: 10}
	// rel counts the releases of readers and the flips of mode.
	rel = rma.Field{Name: "rel", Shift: 44, Bits: 20, Wraps: true}
	// drained is the part of rel by which a writer sees that the readers before it have left:
	// they are fewer than it can count.
	drained = rma.Field{Shift: 44, Bits: 14}
)

// moves is the part of a word that changes when a lock is released or reset, but for a
// hand-over.
var moves = rel.Mask() | era.Mask()

// leaves is what a Sum adds to a word when a reader leaves.
var leaves = rel.One() - rdr.One()

func fields() []rma.Field { return []rma.Field{rel, era, died, tail, rdr, mode} }

// flipped is a word that lets the readers in that wait in v. The rank that flips it holds the lock
// as a writer, and has repaired what a dead writer left.
func flipped(v int64) int64 {
	return died.With(v^mode.One()+rel.One(), 0)
}

// sameEra reports whether no reset came between two words.
func sameEra(a, b int64) bool { return (a^b)&era.Mask() == 0 }

// The fields of NEXT, by which a writer names itself to its predecessor, and of TURN, by which
// it gets the lock. A message names the lock, the era and the generation of its receiver: one
// that comes late is for no other use of the mailbox.
var (
	forLock = rma.Field{Name: "lock", Shift: 40, Bits: 24}
	forEra  = rma.Field{Name: "era", Shift: 30, Bits: 10}
	forGen  = rma.Field{Name: "gen", Shift: 27, Bits: 3}
	there   = rma.Field{Name: "there", Shift: 26, Bits: 1} // 1 in each message
	address = forLock.Mask() | forEra.Mask() | forGen.Mask() | there.Mask()

	from = rma.Field{Name: "from", Shift: 0, Bits: 19} // of NEXT: the successor, as in tail

	drains = rma.Field{Name: "drains", Shift: 25, Bits: 1} // of TURN: readers are inside until drained is target
	age    = rma.Field{Name: "age", Shift: 19, Bits: 6}    // since rel moved, in parts of a lease
	cons   = rma.Field{Name: "cons", Shift: 14, Bits: 5}   // writers since the mode was flipped
	target = rma.Field{Name: "target", Shift: 0, Bits: 14}
)

// A name is a rank's place in a queue, as in tail: its generation, rank + 1 and slot.
type name int64

const (
	slotBits, rankBits = 4, 12
	// MaxHeld is the number of locks of one Table that a rank may hold or wait for at once, as in
	// the paper's code. One more is lock.ErrTooManyHeld.
	MaxHeld = 1 << slotBits
	// maxRanks is the most ranks that tail can name; rdr counts as many twice.
	maxRanks = 1<<rankBits - 1
	// maxLocks is the most locks that a message can name.
	maxLocks = 1 << 24
)

func nameOf(gen, rank, slot int) name {
	return name(int64(gen)<<(rankBits+slotBits)&tailMax | int64(rank+1)<<slotBits | int64(slot))
}

const tailMax = 1<<19 - 1

func (n name) rank() int  { return int(n>>slotBits&(1<<rankBits-1)) - 1 }
func (n name) slot() int  { return int(n & (MaxHeld - 1)) }
func (n name) gen() int64 { return int64(n) >> (rankBits + slotBits) }

// to is the address of a message to n on a lock whose word is v.
func (n name) to(id int, v int64) int64 {
	return forLock.With(forEra.With(forGen.With(there.One(), n.gen()), era.Get(v)), int64(id))
}
