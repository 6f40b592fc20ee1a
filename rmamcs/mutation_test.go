package rmamcs_test

import (
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rmamcs"
	"github.com/rmalock/rmalock/topo"
)

// tree is a way of using the lock on 2, 3 and 4 ranks: element is the number
// of each rank's element, by number of ranks.
func tree(name string, leaf rmamcs.Leaf, tl int, element map[int][]int, levels ...string) lock.Info {
	return lock.Info{Name: name, Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		places := make([]topo.Place, c.Size())
		for r, e := range element[c.Size()] {
			places[r].Node = e
		}
		top, err := topo.Build(places)
		if err != nil {
			return nil, err
		}
		if top, err = top.Pick(levels...); err != nil {
			return nil, err
		}
		return rmamcs.New(c, rmamcs.Config{Locks: n, Home: home, Topology: top, TL: []int{tl, tl}[:len(levels)+1], Leaf: leaf})
	}}
}

const root = "outside the root there is nothing: STATUS there tells only whether the node is lent, and a rank with one lock lends one node at a time"

// TestMutants: the lock with a mistake does not pass.
func TestMutants(t *testing.T) {
	together := map[int][]int{2: {0, 0}, 3: {0, 0, 0}, 4: {0, 0, 1, 1}}
	apart := map[int][]int{2: {0, 1}, 3: {0, 0, 1}, 4: {0, 0, 1, 1}}
	locktest.RunMutantsOf(t, check.Effort{Every: 8}, equivalent(), tree("rmamcs", rmamcs.MCS, 1, together, "node"), tree("rmamcs, apart", rmamcs.MCS, 2, apart, "node"))
}

// TestBargingMutants: nor does it with a barging leaf, N = 1 and N = 2.
func TestBargingMutants(t *testing.T) {
	if !locktest.Deep() {
		t.Skip("takes minutes: RMALOCK_DEEP is not set")
	}
	together := map[int][]int{2: {0, 0}, 3: {0, 0, 0}, 4: {0, 0, 0, 0}}
	apart := map[int][]int{2: {0, 0}, 3: {0, 0, 1}, 4: {0, 0, 1, 1}}
	locktest.RunMutantsOf(t, check.Effort{}, bargingEquivalent(), tree("rmamcs, barging", rmamcs.Barging, 1, together), tree("rmamcs, barging, T_L 0", rmamcs.Barging, 0, together),
		tree("rmamcs, barging, apart", rmamcs.Barging, 1, apart, "node"))
}

// bargingEquivalent are mistakes that are none there, and some that are not caught. Where the
// elements span the plan's nodes the leaf is MCS, with the mistakes of equivalent.
func bargingEquivalent() []check.Equivalent {
	const (
		looks = "the head of the queue looks at STATE until it has changed, whenever it was told that it is the head"
		early = "STATE opens after the head was told: it waits for that"
		poll  = "not equivalent and not caught here: it takes two elements, one of them with two ranks, and a deadline; caught in a try, and in an acquire that queues"
		again = "its owner flushes it with what it does next there"
	)
	out := []check.Equivalent{
		{Phase: check.Acquiring, Step: "CompareAndSwap rmamcs.STATE", Before: "Backoff rmamcs.TAIL0", Mutation: check.Blind, Why: poll},
		{Phase: check.Acquiring, Step: "CompareAndSwap rmamcs.TAIL1", Before: "Backoff rmamcs.TAIL0", Mutation: check.Torn, Why: poll},
		{Phase: check.Trying, Step: "Flush of Put rmamcs.STATUS1", Mutation: check.NoFlush, Why: again},
		{Phase: check.Releasing, Step: "Put rmamcs.STATE", Before: "Await rmamcs.NEXT0", Mutation: check.Late, Why: early},
		{Phase: check.Releasing, Step: "Put rmamcs.STATE", Before: "Flush of Get rmamcs.NEXT0", Mutation: check.Late, Why: early},
		{Phase: check.Releasing, Step: "Put rmamcs.STATUS", Before: "Flush of Put rmamcs.STATE", Mutation: check.Late, Why: looks},
		{Phase: check.Releasing, Step: "Put rmamcs.STATUS0", Before: "Await rmamcs.NEXT1", Mutation: check.Forget, Why: root},
		{Phase: check.Releasing, Step: "Put rmamcs.STATUS0", Before: "Await rmamcs.NEXT1", Mutation: check.Late, Why: root},
		{Phase: check.Releasing, Step: "Put rmamcs.STATUS0", Before: "Flush of Get rmamcs.TAIL1", Mutation: check.Forget, Why: root},
	}
	for _, e := range equivalent() {
		if e.Step != "Put rmamcs.NEXT0" {
			out = append(out, e)
		}
	}
	return out
}

// equivalent are mistakes of the tree that are none with N = 2, and one that is not caught.
func equivalent() []check.Equivalent {
	const (
		same  = "the word is what it waits to change from: it is the same wait"
		free  = "no rank looks at NEXT of a node whose owner has left the queue, so it may be cleared before the hand-over"
		later = "a node that was lent may come back later, or before the hand-over: a rank that knows its successor needs it no more"
		short = "to take a successor for none costs the CompareAndSwap that then fails, and no more"
		hole  = "not equivalent and not caught: its schedule is too rare for the search; the same line is caught in acquire and in release"
		next  = "no rank writes NEXT of a node before its owner swaps TAIL again"
	)
	out := []check.Equivalent{
		{Phase: check.Acquiring, Step: "Put rmamcs.STATUS1", Before: "Await rmamcs.NEXT1", Mutation: check.Late, Why: free},
		{Phase: check.Trying, Step: "Put rmamcs.STATUS1", Before: "Await rmamcs.NEXT1", Mutation: check.Late, Why: free},
		{Phase: check.Trying, Step: "Flush of Put rmamcs.NEXT1", Mutation: check.NoFlush, Why: hole},
		{Phase: check.Releasing, Step: "Put rmamcs.STATUS1", Mutation: check.Late, Why: free},
		{Phase: check.Releasing, Step: "Put rmamcs.NEXT0", Mutation: check.Late, Why: next},
		{Phase: check.Releasing, Step: "Put rmamcs.STATUS0", Before: "Flush of Get rmamcs.NEXT1", Mutation: check.Forget, Why: root},
		{Phase: check.Releasing, Step: "Flush of Get rmamcs.STATUS0", Mutation: check.NoFlush, Why: short + "; " + root},
		{Phase: check.Releasing, Step: "Flush of Get rmamcs.NEXT", Mutation: check.NoFlush, Why: short},
	}
	for _, before := range []string{"Await rmamcs.NEXT0", "Flush of CompareAndSwap rmamcs.TAIL0", "Flush of Get rmamcs.NEXT0", "Flush of Get rmamcs.STATUS0", "Flush of Put rmamcs.STATUS0"} {
		out = append(out, check.Equivalent{Phase: check.Releasing, Step: "Put rmamcs.STATUS0", Before: before, Mutation: check.Late, Why: later})
	}
	for _, phase := range []check.Phase{check.Acquiring, check.Trying, check.Releasing} {
		out = append(out, check.Equivalent{Phase: phase, Step: "Await", Mutation: check.AnyChange, Why: same})
	}
	return out
}
