package queuetree

import (
	"math"

	"github.com/rmalock/rmalock/lock"
)

// Bounds are those of the writers, one per level. A rank in the queue of an element is
// passed only by ranks that were in the queue before, and each of these keeps the lock for
// one tenure. A rank enters one queue after the other, from the leaf out, each with one
// atomic operation.
func (t *Tree) Bounds() []lock.Bound {
	var out []lock.Bound
	for i := t.Leaf; i >= 0; i-- {
		if most := mul(int64(t.arity(i)-1), t.Tenure(i+1)); most < math.MaxInt32 {
			out = append(out, lock.Bound{After: t.Leaf - i + 1, Most: int(most), Of: t.inElement(i)})
		}
	}
	return out
}

// Tenure is the most entries of writers in one tenure of an element of a level: from
// when the lock comes to it, to when it is released to the next level out.
func (t *Tree) Tenure(level int) int64 {
	n := int64(1)
	for i := t.Leaf; i >= level; i-- {
		n = mul(n, t.maxTL[i]+1)
	}
	return n
}

// Rivals is the number of others that a rank may meet in the root's queue.
func (t *Tree) Rivals() int { return t.arity(0) - 1 }

func (t *Tree) arity(level int) int { return t.topo.Arity(level, t.element[level]) }

// inElement says which entries are those of writers of the rank's element of a level.
func (t *Tree) inElement(level int) func(int, lock.Mode) bool {
	return func(r int, mode lock.Mode) bool {
		return mode == lock.Exclusive && t.topo.Element(r, level) == t.element[level]
	}
}

// mul is a product, or something too large to be of use.
func mul(a, b int64) int64 {
	if a > 0 && b > math.MaxInt32/a {
		return math.MaxInt32
	}
	return a * b
}

// BargingBound is that of a barging leaf. Once a rank is in its queue, T_L,Leaf + 1 ranks
// of the element enter for each that was there before, and as many in the present tenure
// and in one that begins before the queue is seen.
func (t *Tree) BargingBound() lock.Bound {
	most := mul(int64(t.arity(t.Leaf)+1), t.leafTL+1) - 1
	return lock.Bound{After: 1, Most: int(most), Of: t.inElement(t.Leaf)}
}
