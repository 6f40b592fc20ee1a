package hook

import (
	"math/rand/v2"

	"github.com/rmalock/rmalock/rma"
)

// Relax makes the window as weak as the memory model of package rma permits, on
// any backend and for near words too: an operation takes effect at its Flush or,
// at random, at some step before; a Flush lets its target's operations take effect
// in random order, those on one word or with a Fence between them in the order of issue. A
// protocol that lacks
// a Flush then fails, where a stronger window hides it. An operation without a Flush takes
// effect at random or never.
//
// Ranks draw from different sequences; the same seed gives the same ones again.
func Relax(c rma.Comm, seed uint64) rma.Comm {
	random := source(c, seed)
	return decorate(c, func(_ handleID, below rma.Transport) rma.Transport {
		return &reorderer{Transport: below, random: random}
	})
}

// earlyOneIn is the number of steps to one held operation that takes effect early.
const earlyOneIn = 4

// reorderer is the Transport of Relax.
type reorderer struct {
	rma.Transport
	random *rand.Rand
	held   []rma.Operation // in the order of issue
}

func (x *reorderer) Issue(o rma.Operation) {
	x.held = append(x.held, o)
	x.early()
}

func (x *reorderer) Flush(target int, r *rma.Results) (int, error) {
	for n := x.count(target); n > 0; n-- {
		x.release(x.pick(target, x.random.IntN(n)))
	}
	pending, err := x.Transport.Flush(target, r)
	return pending + len(x.held), err
}

func (x *reorderer) Await(q rma.Waiting) (int, int64, error) {
	x.early()
	return x.Transport.Await(q)
}

// early has one held operation take effect, at random.
func (x *reorderer) early() {
	if len(x.held) > 0 && x.random.IntN(earlyOneIn) == 0 {
		x.release(x.random.IntN(len(x.held)))
	}
}

// count is the number of held operations of a Flush.
func (x *reorderer) count(target int) int {
	n := 0
	for i := range x.held {
		if target < 0 || x.held[i].Target == target {
			n++
		}
	}
	return n
}

// pick is the index of the k'th held operation of a Flush.
func (x *reorderer) pick(target, k int) int {
	for i := range x.held {
		if target < 0 || x.held[i].Target == target {
			if k == 0 {
				return i
			}
			k--
		}
	}
	panic("hook: fewer operations are held than were counted")
}

// release issues held operation i, or the first one that must come before it.
func (x *reorderer) release(i int) {
	for j := 0; j < i; j++ {
		if x.held[i].Follows(&x.held[j]) {
			i, j = j, -1
		}
	}
	o := x.held[i]
	x.held = append(x.held[:i], x.held[i+1:]...)
	x.Transport.Issue(o)
}
