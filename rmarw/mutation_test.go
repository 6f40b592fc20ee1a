package rmarw_test

import (
	"strings"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
)

// tree is a way of using the lock on 2, 3 and 4 ranks, with so many counters.
func tree(name string, dc rmarw.DC, counters, tl int, tr int64, texts ...string) lock.Info {
	return leaf(name, rmarw.MCS, dc, counters, tl, tr, texts...)
}

// leaf is tree with a leaf of either kind.
func leaf(name string, leaf rmarw.Leaf, dc rmarw.DC, counters, tl int, tr int64, texts ...string) lock.Info {
	return lock.Info{Name: name, Shared: true, Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		top, err := topo.Parse(texts[c.Size()-2])
		if err != nil {
			return nil, err
		}
		th := rmarw.Thresholds{TR: tr, TDC: rmarw.TDC{Ranks: (c.Size() + counters - 1) / counters}}
		for range top.Levels() {
			th.TL = append(th.TL, tl)
		}
		t, err := rmarw.New(c, rmarw.Config{Locks: n, Home: home, Topology: top, Thresholds: th, DC: dc, Leaf: leaf})
		if err == nil {
			err = t.StartAt(1<<37 - 2) // half way round, so that ARRIVE alone does not tell the phase
		}
		return t, err
	}}
}

// Reasons why a mistake is none, or is not caught, in more than one of the lists.
const (
	rare  = "not equivalent and not caught: OPENER_SIGNAL must go up several times while one rank is half way through"
	rung  = "there is a writer behind, which signals"
	queue = "until it has flushed all, the rank is in the root's queue: no writer looks at DEPART, and when it leaves it signals the readers"
	last  = "doOpen ends with a flush of all"
	alone = "one rank at a time opens a phase, and no other rank changes OPENED"
	free  = "no rank looks at NEXT of a node whose owner has left the queue, so it may be cleared before the hand-over"
	same  = "the word is what it waits to change from: it is the same wait"
	short = "to take a successor for none costs the CompareAndSwap that then fails, and no more"
)

// TestMutants: the lock with a mistake does not pass.
func TestMutants(t *testing.T) {
	locktest.RunMutantsOf(t, check.Effort{Every: 20}, equivalent(),
		tree("rmarw", rmarw.Symmetric, 1, 1, 2, "rank:2", "rank:3", "rank:4"),
		tree("rmarw, more counters", rmarw.Symmetric, 4, 1, 1, "rank:2", "rank:3", "rank:4"),
		tree("rmarw, more counters, T_R 2", rmarw.Symmetric, 4, 1, 2, "rank:2", "rank:3", "rank:4"))
}

// asym is the lock with the asymmetric counter: one on a node, and one per rank on several.
func asym(name string, tl int, tr int64) lock.Info {
	apart := tree(name, rmarw.Asymmetric, 4, tl, tr, "rank:2", "rank:3", "rank:4")
	together := tree(name, rmarw.Asymmetric, 1, tl, tr, "node:1 rank:2", "node:1 rank:3", "node:1 rank:4")
	return byNodes(together, apart)
}

// byNodes is one lock where all ranks are on one node, and another one on several.
func byNodes(together, apart lock.Info) lock.Info {
	info := together
	info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		if c.Node().Count > 1 {
			return apart.Open(c, n, home)
		}
		return together.Open(c, n, home)
	}
	return info
}

// TestAsymmetricMutants: nor does it with the asymmetric counter.
func TestAsymmetricMutants(t *testing.T) {
	if !locktest.Deep() {
		t.Skip("takes many minutes: RMALOCK_DEEP is not set")
	}
	locktest.RunMutantsOf(t, check.Effort{Every: 4}, asymEquivalent(), asym("rmarw, asym", 1, 1), asym("rmarw, asym, T_R 2", 1, 2),
		tree("rmarw, asym, two elements", rmarw.Asymmetric, 4, 1, 1, "node:2 rank:1", "node:3 rank:1", "node:2 rank:2"))
}

// bargingTree is the lock with a barging leaf, in elements as in texts where all ranks
// are on one node, and otherwise in nodes.
func bargingTree(name string, counters, tl int, tr int64, texts ...string) lock.Info {
	return byNodes(leaf(name, rmarw.Barging, rmarw.Symmetric, counters, tl, tr, texts...),
		leaf(name, rmarw.Barging, rmarw.Symmetric, counters, tl, tr, "node:2 rank:1", "node:3 rank:1", "node:2 rank:2"))
}

// TestBargingMutants: nor does it with a barging leaf, N = 2.
func TestBargingMutants(t *testing.T) {
	together := []string{"node:1 rank:2", "node:1 rank:3", "node:1 rank:4"}
	locktest.RunMutantsOf(t, check.Effort{Every: 20}, bargingEquivalent(), bargingTree("rmarw, barging", 1, 1, 2, together...), bargingTree("rmarw, barging, T_L 2", 1, 2, 1, together...),
		bargingTree("rmarw, barging, apart, more counters", 4, 1, 2, "node:2 rank:1", "node:3 rank:1", "node:2 rank:2"))
}

// bargingRootTree is the lock with a barging root where all ranks are on one node, and readers
// and writers as SetBarging has them. On several nodes its leaf is MCS.
func bargingRootTree(name string, counters, tl, tries, quietAfter int) lock.Info {
	texts := []string{"rank:2", "rank:3", "rank:4"}
	root := leaf(name, rmarw.Barging, rmarw.Asymmetric, counters, tl, 1, texts...)
	open := root.Open
	root.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		t, err := open(c, n, home)
		if err == nil {
			t.(*rmarw.Table).SetBarging(tries, quietAfter)
		}
		return t, err
	}
	return byNodes(root, tree(name, rmarw.Asymmetric, 4, tl, 1, texts...))
}

// TestBargingRootMutants: nor does it with a barging root, whose readers try once or wait in
// line at once, and whose writers keep the lock from the readers when none came, or always.
func TestBargingRootMutants(t *testing.T) {
	if !locktest.Deep() {
		t.Skip("takes minutes: RMALOCK_DEEP is not set")
	}
	locktest.RunMutantsOf(t, check.Effort{Every: 4}, bargingRootEquivalent(), bargingRootTree("rmarw, barging root", 1, 1, 0, 1),
		bargingRootTree("rmarw, barging root, a try", 1, 2, 1, 0), bargingRootTree("rmarw, barging root, more counters", 4, 1, 1, 1))
}

// bargingRootEquivalent are mistakes that are none there.
func bargingRootEquivalent() []check.Equivalent {
	const (
		looks = "the head of the queue looks at STATE until it has changed, whenever it was told that it is the head"
		mine  = "only the writer that has STATE changes ADMISSION"
		loop  = "the loop around it looks again"
	)
	return []check.Equivalent{
		{Phase: check.Acquiring, Writers: true, Step: "FetchAndOp SUM rmarw.ADMISSION", Mutation: check.Torn, Why: mine},
		{Phase: check.Releasing, Step: "FetchAndOp SUM rmarw.ADMISSION", Mutation: check.Torn, Why: mine},
		{Phase: check.Releasing, Step: "Put rmarw.STATE", Mutation: check.Late, Why: looks},
		{Phase: check.Releasing, Step: "Put rmarw.STATUS0", Mutation: check.Late, Why: free},
		{Phase: check.Releasing, Step: "Flush of Get rmarw.NEXT0", Mutation: check.NoFlush, Why: short},
		{Phase: check.Acquiring, Readers: true, Step: "Await rmarw.ADMISSION", Mutation: check.AnyChange, Why: same},
		{Phase: check.Acquiring, Readers: true, Step: "Await rmarw.ADMISSION", Before: "Backoff rmarw.ADMISSION", Mutation: check.NoWait, Why: loop},
		{Phase: check.Acquiring, Readers: true, Step: "Await rmarw.ADMISSION", Before: "Flush of Accumulate SUM rmarw.READERS", Mutation: check.NoWait, Why: loop},
		{Phase: check.Acquiring, Step: "Await rmarw.STATUS0", Mutation: check.AnyChange, Why: same},
		{Phase: check.Releasing, Step: "Await rmarw.NEXT0", Mutation: check.AnyChange, Why: same},
	}
}

// bargingEquivalent are mistakes that are none there, and some that are not caught: those of
// the tree, whose leaf is another one, and some more.
func bargingEquivalent() []check.Equivalent {
	const (
		looks = "a rank that waits for STATE looks at it until it has changed, and nothing else is to come first"
		poll  = "not equivalent and not caught here, as in rmamcs: it takes two elements, one of them with two ranks, and a deadline; caught in a try, and in an acquire that queues"
		root  = "STATUS of the root says how often the lock was passed there: what it said before is no less, or the lock came without a grant; and a rank with one lock lends one node at a time"
		loop  = "the loop around it looks again"
		more  = "not equivalent and not caught here: readers pass a writer oftener than T_R lets them, and with this leaf Promise has no bound for that"
	)
	out := []check.Equivalent{
		{Phase: check.Acquiring, Writers: true, Step: "Accumulate SUM rmarw.OPENER_SIGNAL", Before: "Flush of Put rmarw.STATE", Mutation: check.Torn, Why: rare},
		{Phase: check.Acquiring, Writers: true, Step: "Await rmarw.DEPART", Before: "Flush of Get rmarw.DEPART", Mutation: check.NoWait, Why: loop},
		{Phase: check.Acquiring, Readers: true, Step: "Flush of Get rmarw.TAIL0", Mutation: check.NoFlush, Why: more},
		{Phase: check.Acquiring, Step: "CompareAndSwap rmarw.STATE", Before: "Backoff rmarw.TAIL0", Mutation: check.Torn, Why: poll},
		{Phase: check.Acquiring, Step: "CompareAndSwap rmarw.STATE", Before: "Backoff rmarw.TAIL0", Mutation: check.Blind, Why: poll},
		{Phase: check.Acquiring, Step: "Put rmarw.STATE", Before: "Flush of Put rmarw.NEXT0", Mutation: check.Late, Why: looks},
		{Phase: check.Trying, Step: "Put rmarw.STATE", Before: "Flush of Put rmarw.NEXT0", Mutation: check.Late, Why: looks},
		{Phase: check.Releasing, Step: "Put rmarw.STATE", Before: "Await rmarw.NEXT1", Mutation: check.Late, Why: looks},
		{Phase: check.Releasing, Step: "Put rmarw.STATE", Before: "Flush of Get rmarw.NEXT1", Mutation: check.Late, Why: looks},
		{Phase: check.Releasing, Step: "Put rmarw.STATUS0", Before: "Await rmarw.NEXT1", Mutation: check.Forget, Why: root},
		{Phase: check.Releasing, Step: "Put rmarw.STATUS0", Before: "Await rmarw.NEXT1", Mutation: check.Late, Why: root},
		{Phase: check.Releasing, Step: "Put rmarw.STATUS0", Before: "Flush of Get rmarw.NEXT1", Mutation: check.Late, Why: root},
		{Phase: check.Releasing, Step: "Put rmarw.STATUS0", Before: "Flush of Get rmarw.TAIL1", Mutation: check.Forget, Why: root},
	}
	for _, e := range treeEquivalent() {
		leaf := strings.Contains(e.Step+e.Before, "TAIL1") || strings.Contains(e.Step+e.Before, "NEXT1")
		if leaf && e.Phase != check.Releasing || e.Step == "Await rmarw.DEPART" && e.Mutation == check.NoWait {
			continue
		}
		out = append(out, e)
	}
	return out
}

// TestTreeMutants: nor does it with symmetric counters and N = 2.
func TestTreeMutants(t *testing.T) {
	if !locktest.Deep() {
		t.Skip("takes minutes: RMALOCK_DEEP is not set")
	}
	together := []string{"node:1 rank:2", "node:1 rank:3", "node:1 rank:4"}
	apart := []string{"node:2 rank:1", "node:3 rank:1", "node:2 rank:2"}
	locktest.RunMutantsOf(t, check.Effort{}, treeEquivalent(), tree("rmarw, one node", rmarw.Symmetric, 1, 1, 2, together...),
		tree("rmarw, nodes", rmarw.Symmetric, 1, 1, 1, apart...), tree("rmarw, nodes, more counters, T_R 2", rmarw.Symmetric, 4, 1, 2, apart...))
}

// treeEquivalent are mistakes that are none there: those of N = 1 and of the tree, and some more.
func treeEquivalent() []check.Equivalent {
	const (
		hole  = "not equivalent and not caught here: a try that finds a rank at the root and none behind it in its element; caught in acquire and in release"
		later = "the release ends with a flush"
		next  = "no rank writes NEXT of a node before its owner swaps TAIL again"
	)
	out := []check.Equivalent{
		{Phase: check.Acquiring, Writers: true, Step: "Accumulate SUM rmarw.OPENER_SIGNAL", Before: "Flush of CompareAndSwap rmarw.TAIL1", Mutation: check.Torn, Why: rare},
		{Phase: check.Acquiring, Writers: true, Step: "Accumulate SUM rmarw.OPENER_SIGNAL", Before: "Flush of Put rmarw.NEXT1", Mutation: check.Forget, Why: rung},
		{Phase: check.Acquiring, Writers: true, Step: "Accumulate SUM rmarw.OPENER_SIGNAL", Before: "Flush of Put rmarw.NEXT1", Mutation: check.Torn, Why: rung},
		{Phase: check.Trying, Writers: true, Step: "Flush of Accumulate SUM rmarw.DEPART", Mutation: check.NoFlush, Why: queue},
		{Phase: check.Trying, Writers: true, Step: "Accumulate SUM rmarw.DEPART", Mutation: check.Late, Why: queue},
		{Phase: check.Trying, Writers: true, Step: "Flush of Accumulate SUM rmarw.OPENED", Mutation: check.NoFlush, Why: last},
		{Phase: check.Trying, Writers: true, Step: "Accumulate SUM rmarw.OPENED", Mutation: check.Late, Why: last},
		{Phase: check.Trying, Writers: true, Step: "Accumulate SUM rmarw.OPENED", Mutation: check.Torn, Why: alone},
		{Phase: check.Trying, Step: "CompareAndSwap rmarw.TAIL1", Before: "Flush of Put rmarw.NEXT0", Mutation: check.Torn, Why: hole},
		{Phase: check.Trying, Step: "CompareAndSwap rmarw.TAIL1", Before: "Flush of Put rmarw.NEXT0", Mutation: check.Blind, Why: hole},
		{Phase: check.Trying, Step: "CompareAndSwap rmarw.TAIL1", Before: "Flush of Put rmarw.NEXT0", Mutation: check.Trusting, Why: hole},
		{Phase: check.Releasing, Writers: true, Step: "Accumulate SUM rmarw.OPENER_SIGNAL", Mutation: check.Late, Why: later},
		{Phase: check.Releasing, Step: "Put rmarw.NEXT0", Before: "Flush of Put rmarw.STATUS0", Mutation: check.Late, Why: next},
		{Phase: check.Releasing, Step: "Put rmarw.STATUS0", Before: "Flush of Accumulate SUM rmarw.OPENED", Mutation: check.Late, Why: free},
		{Phase: check.Releasing, Step: "Put rmarw.STATUS0", Before: "Flush of Accumulate SUM rmarw.OPENER_SIGNAL", Mutation: check.Late, Why: free},
	}
	for _, e := range equivalent() {
		atLeaf := e.Step == "Accumulate SUM rmarw.OPENER_SIGNAL" && e.Before != "" && e.Before != "Accumulate SUM rmarw.OPENER_SIGNAL" // of N = 1
		if !atLeaf && !(e.Phase == check.Releasing && e.Step == "Put rmarw.STATUS0") {
			out = append(out, e)
		}
	}
	for _, e := range asymEquivalent() {
		if !strings.Contains(e.Step+e.Before, "ADMISSION") && e.Before != "Flush of CompareAndSwap rmarw.TAIL0" {
			out = append(out, e)
		}
	}
	return out
}

// asymEquivalent are mistakes that are none with the asymmetric counter and N = 2, and one
// that is not caught.
func asymEquivalent() []check.Equivalent {
	const (
		again = "a reader that comes back early looks at ADMISSION again and waits again"
		later = "a node that was lent may come back later, or before the hand-over: a rank that knows its successor needs it no more"
		root  = "outside the root there is nothing: STATUS there tells only whether the node is lent, and a rank with one lock lends one node at a time"
		hole  = "not equivalent and not caught, as in rmamcs: its schedule is too rare for the search"
	)
	out := []check.Equivalent{
		{Phase: check.Acquiring, Step: "Await rmarw.ADMISSION", Before: "Flush of Accumulate SUM rmarw.READERS", Mutation: check.NoWait, Why: again},
		{Phase: check.Acquiring, Step: "Await rmarw.ADMISSION", Mutation: check.AnyChange, Why: again},
		{Phase: check.Acquiring, Step: "Put rmarw.STATUS1", Before: "Await rmarw.NEXT1", Mutation: check.Late, Why: free},
		{Phase: check.Trying, Step: "Put rmarw.STATUS1", Before: "Await rmarw.NEXT1", Mutation: check.Late, Why: free},
		{Phase: check.Trying, Step: "Await rmarw.NEXT1", Mutation: check.AnyChange, Why: same},
		{Phase: check.Trying, Step: "Flush of Put rmarw.NEXT1", Mutation: check.NoFlush, Why: hole},
		{Phase: check.Releasing, Step: "Put rmarw.STATUS1", Mutation: check.Late, Why: free},
		{Phase: check.Releasing, Step: "Put rmarw.STATUS0", Before: "Flush of Get rmarw.NEXT1", Mutation: check.Forget, Why: root},
		{Phase: check.Releasing, Step: "Flush of Get rmarw.STATUS0", Mutation: check.NoFlush, Why: short + "; " + root},
		{Phase: check.Releasing, Step: "Flush of Get rmarw.NEXT", Mutation: check.NoFlush, Why: short},
	}
	for _, before := range []string{"Await rmarw.NEXT0", "Flush of CompareAndSwap rmarw.TAIL0", "Flush of Get rmarw.NEXT0", "Flush of Get rmarw.STATUS0", "Flush of Put rmarw.STATUS0", "Flush of Put rmarw.ADMISSION"} {
		out = append(out, check.Equivalent{Phase: check.Releasing, Step: "Put rmarw.STATUS0", Before: before, Mutation: check.Late, Why: later})
	}
	for _, step := range []string{"Await rmarw.STATUS", "Await rmarw.NEXT"} {
		out = append(out, check.Equivalent{Phase: check.Acquiring, Step: step, Mutation: check.AnyChange, Why: same})
	}
	return append(out, check.Equivalent{Phase: check.Releasing, Step: "Await rmarw.NEXT", Mutation: check.AnyChange, Why: same})
}

// equivalent are mistakes that are none with symmetric counters and N = 1, and some that
// are not caught.
func equivalent() []check.Equivalent {
	const (
		again = "to take OPENER_SIGNAL for 0 is to look again at once"
		loop  = "the loop around it looks again"
		guess = "to take ARRIVE for 0 costs the CompareAndSwap that then fails, and no more"
		after = "OPENED is flushed when the reader departs; until then the readers wait that it lets in"
		next  = "OPENED was awaited up to the phase before: its next change is the one that is waited for"
		hole  = "not equivalent and not caught here; the same line is in a try and in a release"
		lost  = "not equivalent and not caught here: a reader may depart while the writer, whose time is up, opens the phase again; caught in a try with N = 2"
		ring  = "the signal that follows flushes all"
		swap  = "no rank writes NEXT of a node before its owner swaps TAIL again"
	)
	return []check.Equivalent{
		{Phase: check.Acquiring, Writers: true, Step: "Accumulate SUM rmarw.OPENER_SIGNAL", Before: "Accumulate SUM rmarw.OPENER_SIGNAL", Mutation: check.Torn, Why: rare},
		{Phase: check.Acquiring, Writers: true, Step: "Accumulate SUM rmarw.OPENER_SIGNAL", Before: "Flush of CompareAndSwap rmarw.TAIL0", Mutation: check.Torn, Why: rare},
		{Phase: check.Trying, Writers: true, Step: "Accumulate SUM rmarw.OPENER_SIGNAL", Mutation: check.Torn, Why: rare},
		{Phase: check.Releasing, Step: "Accumulate SUM rmarw.OPENER_SIGNAL", Mutation: check.Torn, Why: rare},
		{Phase: check.Acquiring, Writers: true, Step: "CompareAndSwap rmarw.TAIL0", Before: "Flush of Accumulate SUM rmarw.OPENED", Mutation: check.Torn, Why: hole},
		{Phase: check.Releasing, Step: "Accumulate SUM rmarw.OPENED", Mutation: check.Torn, Why: alone},
		{Phase: check.Trying, Readers: true, Step: "Accumulate SUM rmarw.OPENED", Mutation: check.Torn, Why: alone},
		{Phase: check.Trying, Readers: true, Step: "Flush of Accumulate SUM rmarw.OPENED", Mutation: check.NoFlush, Why: after},
		{Phase: check.Acquiring, Step: "Flush of Get rmarw.OPENER_SIGNAL", Mutation: check.NoFlush, Why: again},
		{Phase: check.Trying, Readers: true, Step: "Flush of Get rmarw.ARRIVE", Mutation: check.NoFlush, Why: guess},
		{Phase: check.Acquiring, Writers: true, Step: "Await rmarw.DEPART", Mutation: check.NoWait, Why: loop},
		{Phase: check.Acquiring, Writers: true, Step: "Await rmarw.DEPART", Mutation: check.AnyChange, Why: same},
		{Phase: check.Acquiring, Readers: true, Step: "Await rmarw.OPENED", Before: "Flush of CompareAndSwap rmarw.ARRIVE", Mutation: check.AnyChange, Why: next},
		{Phase: check.Acquiring, Readers: true, Step: "Await rmarw.OPENED", Before: "Flush of Get rmarw.ARRIVE", Mutation: check.AnyChange, Why: next},
		{Phase: check.Acquiring, Writers: true, Step: "Await rmarw.OPENED", Before: "Flush of Get rmarw.OPENED", Mutation: check.AnyChange, Why: same},
		{Phase: check.Acquiring, Readers: true, Step: "Accumulate SUM rmarw.OPENED", Mutation: check.Torn, Why: alone},
		{Phase: check.Acquiring, Readers: true, Step: "Flush of Accumulate SUM rmarw.OPENED", Mutation: check.NoFlush, Why: after},
		{Phase: check.Acquiring, Writers: true, Step: "Accumulate SUM rmarw.OPENER_SIGNAL", Before: "Flush of Put rmarw.NEXT0", Mutation: check.Forget, Why: rung},
		{Phase: check.Acquiring, Writers: true, Step: "Accumulate SUM rmarw.OPENER_SIGNAL", Before: "Flush of Put rmarw.NEXT0", Mutation: check.Torn, Why: rung},
		{Phase: check.Acquiring, Writers: true, Step: "Put rmarw.STATUS0", Before: "Await rmarw.NEXT0", Mutation: check.Late, Why: free},
		{Phase: check.Trying, Readers: true, Step: "Flush of Get rmarw.TAIL0", Mutation: check.NoFlush, Why: "not equivalent and not caught: a try passes a writer that has come and not yet set WRITE"},
		{Phase: check.Acquiring, Step: "Await rmarw.STATUS0", Mutation: check.AnyChange, Why: same},
		{Phase: check.Acquiring, Step: "Await rmarw.NEXT0", Mutation: check.AnyChange, Why: same},
		{Phase: check.Trying, Step: "Await rmarw.NEXT0", Mutation: check.AnyChange, Why: same},
		{Phase: check.Releasing, Step: "Await rmarw.NEXT0", Mutation: check.AnyChange, Why: same},
		{Phase: check.Acquiring, Writers: true, Step: "Accumulate SUM rmarw.OPENED", Mutation: check.Torn, Why: alone},
		{Phase: check.Acquiring, Writers: true, Step: "Flush of Accumulate SUM rmarw.OPENED", Mutation: check.NoFlush, Why: last},
		{Phase: check.Acquiring, Writers: true, Step: "Accumulate SUM rmarw.OPENED", Mutation: check.Late, Why: last},
		{Phase: check.Acquiring, Writers: true, Step: "Flush of Accumulate SUM rmarw.DEPART", Mutation: check.NoFlush, Why: queue},
		{Phase: check.Acquiring, Writers: true, Step: "Accumulate SUM rmarw.DEPART", Mutation: check.Late, Why: queue},
		{Phase: check.Acquiring, Writers: true, Step: "Accumulate SUM rmarw.DEPART", Mutation: check.Torn, Why: lost},
		{Phase: check.Trying, Step: "Accumulate SUM rmarw.OPENER_SIGNAL", Before: "Flush of Put rmarw.NEXT0", Mutation: check.Forget, Why: rung},
		{Phase: check.Trying, Step: "Put rmarw.STATUS0", Before: "Await rmarw.NEXT0", Mutation: check.Late, Why: free},
		{Phase: check.Trying, Step: "Put rmarw.NEXT0", Before: "Flush of Put rmarw.STATUS0", Mutation: check.Late, Why: swap},
		{Phase: check.Trying, Step: "Flush of Put rmarw.NEXT0", Mutation: check.NoFlush, Why: ring},
		{Phase: check.Trying, Step: "Flush of Put rmarw.STATUS0", Mutation: check.NoFlush, Why: ring},
		{Phase: check.Releasing, Step: "Put rmarw.STATUS0", Mutation: check.Late, Why: free},
		{Phase: check.Releasing, Step: "Flush of Get rmarw.NEXT0", Mutation: check.NoFlush, Why: short},
	}
}
