package rma

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
)

// A Comm is a group of ranks and the place of the caller in it. Split, Allocate,
// Barrier, Allgather and Free of a window are collective: every rank of the Comm
// calls them in the same order. They may block; they never keep other goroutines
// of the process from issuing window operations.
//
// A Comm belongs to one goroutine at a time.
type Comm interface {
	Rank() int  // of the caller, from 0
	Size() int  // number of ranks
	Node() Node // of the caller
	// MemoryNodes is the number of the job's memory nodes, for windows of Spec.Hosts
	// MemoryNodes; usually 0.
	MemoryNodes() int

	// Split makes one Comm per color of the ranks that passed it, ordered by key and
	// then by rank. A rank with a negative color gets nil.
	Split(color, key int) (Comm, error)
	// Allocate opens a window of spec.Words() zeroed words per host.
	Allocate(spec Spec) (*Window, error)

	// Barrier returns when all ranks have called it.
	Barrier() error
	// Allgather returns the words of all ranks in the order of ranks. All pass the same
	// number. The result is not to be changed: ranks may share it.
	Allgather(words []int64) ([]int64, error)

	Now() int64       // nanoseconds since some moment, the same for ranks of a node; monotonic
	Sleep(ns int64)   // lets time pass; other goroutines and the transport go on
	Describe() string // the transport in a line: library, version, component
}

// A Node is the set of ranks of a Comm that share memory with the caller.
type Node struct {
	Index int   // of the caller's node, from 0, ordered by lowest rank
	Count int   // nodes in the Comm
	Ranks []int // the caller's node-mates and itself, ascending; not to be changed
}

// Has reports whether a rank is in the node.
func (n Node) Has(rank int) bool { return n.index(rank) >= 0 }

// index is the position of a rank in n.Ranks, or -1.
func (n Node) index(rank int) int {
	if len(n.Ranks) == 0 {
		return -1
	}
	if i := rank - n.Ranks[0]; uint(i) < uint(len(n.Ranks)) && n.Ranks[i] == rank {
		return i // consecutive ranks, the usual placement
	}
	lo, hi := 0, len(n.Ranks)
	for lo < hi {
		m := (lo + hi) / 2
		if n.Ranks[m] < rank {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo < len(n.Ranks) && n.Ranks[lo] == rank {
		return lo
	}
	return -1
}

// An EpochLocker is a Comm whose transport has locks of its own (MPI_Win_lock).
// They are there to be measured against.
type EpochLocker interface {
	// OpenEpochs makes a lock of the transport per rank. Collective.
	OpenEpochs() (Epochs, error)
}

// Epochs are the transport's own locks, one at each rank.
type Epochs interface {
	Lock(target int, exclusive bool) error // MPI_Win_lock
	Unlock(target int) error               // MPI_Win_unlock
	Free() error                           // collective
}

// Unwrapper is implemented by decorators of a Comm.
type Unwrapper interface{ Unwrap() Comm }

// Simulated reports whether the ranks of c are simulated, found under any decorators: then the
// machine that they run on says nothing of them.
func Simulated(c Comm) bool {
	for c != nil {
		if s, ok := c.(interface{ Simulated() bool }); ok {
			return s.Simulated()
		}
		u, ok := c.(Unwrapper)
		if !ok {
			break
		}
		c = u.Unwrap()
	}
	return false
}

// Generation says how many ranks have had the caller's number before it, found under any
// decorators. It is 0 unless ranks come and go: then a number is a slot, which a later rank
// may take over. A word that names a rank names its generation too, or the name of a dead
// rank is taken for its successor's.
func Generation(c Comm) int {
	for c != nil {
		if g, ok := c.(interface{ Generation() int }); ok {
			return g.Generation()
		}
		u, ok := c.(Unwrapper)
		if !ok {
			break
		}
		c = u.Unwrap()
	}
	return 0
}

// AsEpochLocker finds the transport's own locks under any decorators.
func AsEpochLocker(c Comm) (EpochLocker, bool) {
	for c != nil {
		if e, ok := c.(EpochLocker); ok {
			return e, true
		}
		u, ok := c.(Unwrapper)
		if !ok {
			break
		}
		c = u.Unwrap()
	}
	return nil, false
}

// combiner is a Comm whose ranks are of one process: the last rank to enter the call runs f
// on what all ranks brought, in their order, and all return what it returns. Collective.
type combiner interface {
	Combine(brought any, f func(all []any) (any, error)) (any, error)
}

// asCombiner finds a combiner under any decorators.
func asCombiner(c Comm) (combiner, bool) {
	for c != nil {
		if k, ok := c.(combiner); ok {
			return k, true
		}
		u, ok := c.(Unwrapper)
		if !ok {
			break
		}
		c = u.Unwrap()
	}
	return nil, false
}

// Combine is an [AllgatherBytes] whose result is for f alone: each process runs f once, and
// its ranks share what f returns. So ranks of one process need not each look at what all
// the others brought. f must not depend on the rank that runs it. Its error is every
// rank's. Collective.
func Combine[T any](c Comm, b []byte, f func(all [][]byte) (T, error)) (T, error) {
	var none T
	k, ok := asCombiner(c)
	if !ok {
		all, err := allgatherBytes(c, b)
		if err != nil {
			return none, err
		}
		return f(all)
	}
	out, err := k.Combine(bytes.Clone(b), func(brought []any) (any, error) {
		all := make([][]byte, len(brought))
		for r, v := range brought {
			all[r], _ = v.([]byte) // nil of a rank that has died
		}
		return f(all)
	})
	if err != nil {
		return none, err
	}
	return out.(T), nil
}

// AllgatherBytes is Allgather for byte strings of any length. Collective.
func AllgatherBytes(c Comm, b []byte) ([][]byte, error) {
	return Combine(c, b, func(all [][]byte) ([][]byte, error) { return all, nil })
}

// allgatherBytes is AllgatherBytes by words.
func allgatherBytes(c Comm, b []byte) ([][]byte, error) {
	lens, err := c.Allgather([]int64{int64(len(b))})
	if err != nil {
		return nil, err
	}
	longest := int64(0)
	for _, n := range lens {
		longest = max(longest, n)
	}
	out := make([][]byte, c.Size())
	if longest == 0 {
		return out, nil
	}
	per := int(longest+7) / 8
	buf := make([]byte, per*8)
	copy(buf, b)
	words := make([]int64, per)
	for i := range words {
		words[i] = int64(binary.LittleEndian.Uint64(buf[i*8:]))
	}
	all, err := c.Allgather(words)
	if err != nil {
		return nil, err
	}
	for r := range out {
		part := make([]byte, per*8)
		for i := range per {
			binary.LittleEndian.PutUint64(part[i*8:], uint64(all[r*per+i]))
		}
		out[r] = part[:lens[r]]
	}
	return out, nil
}

// Agree tells every rank whether one of them failed: all return nil when all
// passed nil; otherwise the ones that passed nil return an error with the text of
// the lowest rank that did not, and that wraps ErrPeer. Collective.
func Agree(c Comm, err error) error {
	var text []byte
	if err != nil {
		text = []byte(cmp.Or(err.Error(), "unnamed error"))
		text = text[:min(len(text), 2000)]
	}
	first, gerr := Combine(c, text, func(all [][]byte) (string, error) {
		for r, t := range all {
			if len(t) > 0 {
				return fmt.Sprintf("rank %d: %s", r, t), nil
			}
		}
		return "", nil
	})
	switch {
	case gerr != nil:
		return errors.Join(err, gerr)
	case err != nil || first == "":
		return err
	}
	return fmt.Errorf("%s: %w", first, ErrPeer)
}
