package rmatest

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// checkFence passes numbered messages between ranks with one Flush for data and flag: the
// Fence between the two orders them.
func checkFence(p *Probe) {
	for _, c := range []rma.Class{rma.Flag, rma.Far, rma.Plain} {
		pairs := p.Size() * p.Size()
		w := p.Open(classes(4 * pairs))
		if w == nil {
			return
		}
		data, flag := int(c)*4*pairs, int(c)*4*pairs+3*pairs
		peers, sources := p.peers()
		for i := int64(1); i <= int64(p.Rounds(1000, 40)/p.Size()+1); i++ {
			for _, to := range peers {
				pair := p.Rank()*p.Size() + to
				w.PutBulk([]int64{i, i}, to, data+3*pair)
				w.Put(i, to, data+3*pair+2)
				w.Fence(to)
				w.Put(i, to, flag+pair)
				p.OK(w.Flush(to))
			}
			for _, from := range sources {
				pair := from*p.Size() + p.Rank()
				seen := p.Value(w.Await(p.Rank(), flag+pair, rma.AtLeast(i)))
				for d := range 3 {
					if got := p.Value(w.GetFlush(p.Rank(), data+3*pair+d)); got < seen {
						p.Failf("rank %d saw flag %d of rank %d and %v data %d, older than the flag: the Fence did not order them",
							p.Rank(), seen, from, c, got)
					}
				}
			}
		}
		p.Meet()
		p.Close(w)
	}
}

// checkFences: operations of every kind take effect in the order of their fences, many to one
// target, before one Flush; results are those of that order.
func checkFences(p *Probe) {
	w := p.Open(rma.CounterSpec("fences", 3))
	if w == nil {
		return
	}
	for turn := range p.Size() {
		if turn == p.Rank() {
			for _, target := range p.targets(rma.Far) {
				p.fencesTo(w, target)
			}
		}
		p.Meet()
	}
	w.Fence(p.Size())
	p.Is("Fence of a rank that does not exist", w.FlushAll(), rma.ErrRank)
	p.Meet()
	p.Close(w)
}

// fencesTo has words of a target follow each other.
func (p *Probe) fencesTo(w *rma.Window, target int) {
	for word := range 3 {
		w.Put(0, target, word)
	}
	p.OK(w.Flush(target))
	var got [8]rma.Result
	for i := range 8 {
		w.Accumulate(1, target, i%3, rma.Sum)
		w.Fence(target)
		w.CompareAndSwap(int64(100*(i+1)), 100*int64(i)+1, target, i%3)
		w.Fence(target)
		got[i] = w.FetchAndOp(0, target, i%3, rma.NoOp)
		w.Fence(target)
		w.Put(100*int64(i+1), target, (i+1)%3)
		w.Fence(target)
	}
	p.OK(w.Flush(target))
	for i, r := range got {
		p.Equal(fmt.Sprintf("what round %d of fences at rank %d found", i, target), w.Value(r), int64(100*(i+1)))
	}
	for i := range 300 { // more fences than an epoch counts
		if i%30 == 29 {
			w.Put(int64(i), target, 1)
		}
		w.Fence(target)
	}
	p.OK(w.FlushAll())
	p.Equal("the word after many fences", p.Value(w.GetFlush(target, 1)), 299)
}
