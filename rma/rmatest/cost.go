package rmatest

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

var costChecks = []check{
	{"Computing", checkComputing},
	{"Allocations", checkAllocations},
}

// checkComputing: the memory of a rank that computes, and makes no call, can be
// reached, and a rank that waits for it wakes when it is through.
func checkComputing(p *Probe) {
	w := p.Open(classes(1))
	if w == nil {
		return
	}
	computer := p.Size() - 1
	for i := int64(1); i <= 3; i++ {
		if p.Rank() == computer {
			for until := p.Now() + 5_000_000; p.Now() < until; {
			}
			p.OK(w.PutFlush(i, p.Rank(), int(rma.Flag)))
		} else {
			p.OK(w.AccumulateFlush(1, computer, int(rma.Far), rma.Sum))
		}
		p.Equal("what the computing rank wrote", p.Value(w.Await(computer, int(rma.Flag), rma.AtLeast(i))), i)
		p.Meet()
		p.Equal("the sum at the computing rank", p.Value(w.GetFlush(computer, int(rma.Far))), i*int64(p.Size()-1))
		p.Meet()
	}
	p.Close(w)
}

// checkAllocations: no operation, flush, wait or failed try allocates, whatever the
// target. One rank at a time measures, since the heap of a process is one.
func checkAllocations(p *Probe) {
	const n = 4
	w := p.Open(classes(n))
	if w == nil {
		return
	}
	bulk := make([]int64, n)
	for rank := range min(p.Size(), 3) {
		p.Meet()
		if rank != p.Rank() {
			continue
		}
		for _, target := range p.targets(rma.Far) {
			for _, step := range []struct {
				name string
				do   func() error
			}{
				{"Put", func() error { return w.PutFlush(1, target, int(rma.Flag)*n) }},
				{"Get", func() error { _, err := w.GetFlush(target, int(rma.Flag)*n); return err }},
				{"Accumulate", func() error { return w.AccumulateFlush(1, target, 0, rma.Sum) }},
				{"FetchAndOp", func() error { _, err := w.FetchAndOpFlush(1, target, 0, rma.Replace); return err }},
				{"CompareAndSwap", func() error { _, err := w.CompareAndSwapFlush(1, 2, target, 0); return err }},
				{"MaskedSwap", func() error { _, err := w.MaskedSwapFlush(1, 3, 2, 2, target, 0); return err }},
				{"several operations", func() error {
					w.Put(1, target, 1)
					w.Get(target, 1)
					w.FetchAndOp(1, target, 1, rma.Sum)
					w.CompareAndSwap(1, 5, target, 2)
					return w.FlushAll()
				}},
				{"PutBulk and GetBulk", func() error {
					w.PutBulk(bulk, target, int(rma.Flag)*n)
					w.GetBulk(bulk, target, int(rma.Flag)*n)
					return w.Flush(target)
				}},
				{"Await", func() error { _, err := w.Await(target, 3, rma.Equal(0)); return err }},
				{"Backoff", func() error { return w.Backoff(target, 3, 1, 0) }},
				{"SpinBriefly", func() error { _, err := w.SpinBriefly(int(rma.Near)*n, 0); return err }},
			} {
				p.NoAllocations(fmt.Sprintf("%s at rank %d", step.name, target), step.do)
			}
		}
	}
	p.Meet()
	p.Close(w)
}
