package rmatest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

var memoryNodeChecks = []check{
	{"MemoryNodes/Describe", checkMemoryNodes},
	{"MemoryNodes/Operations", checkMemoryNodeOps},
	{"MemoryNodes/BothWindows", checkBothWindows},
}

// onNodes is a window of memory nodes with n words of each class that they have.
func onNodes(n int) rma.Spec {
	return rma.Spec{Name: "nodes", Hosts: rma.MemoryNodes, Regions: []rma.Region{
		{Count: n, Words: []rma.Word{{Name: "FAR", Class: rma.Far}}},
		{Count: n, Words: []rma.Word{{Name: "FLAG", Class: rma.Flag}}},
		{Count: n, Words: []rma.Word{{Name: "PLAIN", Class: rma.Plain}}},
	}}
}

// checkMemoryNodes: a window of memory nodes has them for targets, and no rank of its own;
// a job without them refuses it.
func checkMemoryNodes(p *Probe) {
	nodes := p.MemoryNodes()
	for _, n := range p.Gather(int64(nodes)) {
		p.Equal("the number of memory nodes, as another rank sees it,", n, int64(nodes))
	}
	near := onNodes(1)
	near.Regions[0].Words[0].Class = rma.Near
	_, err := p.Allocate(near)
	p.Is("a near word on memory nodes", err, rma.ErrSpec)
	if nodes == 0 {
		_, err := p.Allocate(onNodes(1))
		p.Is("a window of memory nodes in a job without", err, rma.ErrSpec)
		return
	}
	w := p.Open(onNodes(2))
	if w == nil {
		return
	}
	if w.Size() != nodes || w.Rank() != -1 || len(w.Node().Ranks) != 0 || w.Words() != 6 || !w.Caps().FarRanks {
		p.Failf("a window of %d memory nodes has size %d, rank %d, node %v, %d words, far ranks %v",
			nodes, w.Size(), w.Rank(), w.Node(), w.Words(), w.Caps().FarRanks)
	}
	err = w.PutFlush(1, nodes, 0)
	p.Is("Put at a memory node that does not exist", err, rma.ErrRank)
	var e *rma.AccessError
	if !errors.As(err, &e) || !strings.Contains(err.Error(), fmt.Sprintf("memory node %d", nodes)) {
		p.Failf("error %q does not name the memory node", fmt.Sprint(err))
	}
	p.Is("Put at rank -1", w.PutFlush(1, w.Rank(), 0), rma.ErrRank)
	p.Meet()
	p.Close(w)
}

// checkMemoryNodeOps: all ranks operate on words of all memory nodes.
func checkMemoryNodeOps(p *Probe) {
	nodes, n := p.MemoryNodes(), p.Size()
	if nodes == 0 {
		return
	}
	w := p.Open(onNodes(n + 2))
	if w == nil {
		return
	}
	far, flag, plain := 0, n+2, 2*(n+2)
	rounds := p.Rounds(100, 10)
	for m := range nodes {
		p.Equal("a word of a memory node at first", p.Value(w.GetFlush(m, far+p.Rank())), 0)
		p.Meet()
		for i := range int64(rounds) {
			w.Accumulate(1, m, far+n, rma.Sum)
			old := p.Value(w.FetchAndOpFlush(i+1, m, far+p.Rank(), rma.Replace))
			p.Equal("what a swap found", old, i)
			p.Equal("what a CAS found", p.Value(w.CompareAndSwapFlush(-1, 0, m, far+p.Rank())), i+1)
		}
		buf := []int64{int64(p.Rank()), int64(m)}
		w.PutBulk(buf[:1], m, flag+p.Rank())
		w.Fence(m)
		w.Put(int64(m)+1, m, plain+p.Rank())
		p.OK(w.Flush(m))
		next := (p.Rank() + 1) % n
		p.Equal("a word that another rank wrote", p.Value(w.Await(m, plain+next, rma.NotEqual(0))), int64(m)+1)
		p.Equal("what its Fence orders before", p.Value(w.GetFlush(m, flag+next)), int64(next))
		p.Equal("the sum of all ranks", p.Value(w.Await(m, far+n, rma.Equal(int64(rounds*n)))), int64(rounds*n))
		_, held, err := w.AwaitUntil(m, far+n+1, rma.NotEqual(0), p.Now()+200_000)
		p.OK(err)
		if held {
			p.Failf("a word that no rank wrote has changed")
		}
	}
	p.Meet()
	p.Close(w)
}

// checkBothWindows: windows of ranks and of memory nodes beside each other have words of
// their own.
func checkBothWindows(p *Probe) {
	nodes := p.MemoryNodes()
	if nodes == 0 {
		return
	}
	a, b := p.Open(rma.CounterSpec("ranks", 2)), p.Open(onNodes(2))
	if a == nil || b == nil {
		return
	}
	for target := range p.Size() {
		a.Accumulate(1, target, 0, rma.Sum)
	}
	for m := range nodes {
		b.Accumulate(10, m, 0, rma.Sum)
	}
	p.OK(a.FlushAll())
	p.OK(b.FlushAll())
	p.Meet()
	for target := range p.Size() {
		p.Equal("a word of a rank", p.Value(a.GetFlush(target, 0)), int64(p.Size()))
	}
	for m := range nodes {
		p.Equal("a word of a memory node", p.Value(b.GetFlush(m, 0)), int64(10*p.Size()))
	}
	p.Meet()
	p.Close(a)
	p.Close(b)
}
