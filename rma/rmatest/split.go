package rmatest

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

var splitChecks = []check{
	{"Split/Colors", checkColors},
	{"Split/Keys", checkKeys},
	{"Split/Negative", checkNegative},
	{"Split/Nested", checkNested},
	{"Split/Windows", checkSplitWindows},
}

// split is Split with a color that is not negative.
func (p *Probe) split(c rma.Comm, color, key int) rma.Comm {
	if p.Lost() {
		return nil
	}
	part, err := c.Split(color, key)
	p.OK(err)
	if err == nil && part == nil {
		p.Failf("Split with color %d returned nil", color)
	}
	if rma.Agree(c, p.err) != nil {
		return nil
	}
	return part
}

// checkPlace notes a wrong place in a part of a Split.
func (p *Probe) checkPlace(part rma.Comm, rank, size int) {
	if part.Rank() != rank || part.Size() != size {
		p.Failf("rank %d of %d became %d of %d, want %d of %d", p.Rank(), p.Size(), part.Rank(), part.Size(), rank, size)
	}
}

func checkColors(p *Probe) {
	for _, colors := range []int{1, 2, 3} {
		color := p.Rank() % colors
		part := p.split(p.Comm, color+5, 0)
		if part == nil {
			return
		}
		p.checkPlace(part, p.Rank()/colors, (p.Size()-color+colors-1)/colors)
		all, err := part.Allgather([]int64{int64(p.Rank())})
		p.OK(err)
		for i, r := range all {
			p.Equal(fmt.Sprintf("rank %d of color %d", i, color), r, int64(i*colors+color))
			if part.Node().Has(i) != p.Node().Has(int(r)) {
				p.Failf("rank %d is rank %d of the part; its node changed", r, i)
			}
		}
		sub := &Probe{Comm: part}
		checkNode(sub)
		checkClock(sub)
		p.OK(sub.err)
	}
}

// checkKeys: reversed keys reverse the ranks, equal keys keep their order.
func checkKeys(p *Probe) {
	if part := p.split(p.Comm, 0, -p.Rank()); part != nil {
		p.checkPlace(part, p.Size()-1-p.Rank(), p.Size())
		sub := &Probe{Comm: part}
		checkNode(sub)
		p.OK(sub.err)
	}
	if part := p.split(p.Comm, 0, 1-p.Rank()%2); part != nil { // odd ranks first
		odd := p.Size() / 2
		if p.Rank()%2 == 1 {
			p.checkPlace(part, p.Rank()/2, p.Size())
		} else {
			p.checkPlace(part, odd+p.Rank()/2, p.Size())
		}
	}
}

func checkNegative(p *Probe) {
	color := -1
	if p.Rank() == p.Size()-1 {
		color = 0
	}
	part, err := p.Split(color, 0)
	p.OK(err)
	if (part != nil) != (color == 0) {
		p.Failf("Split with color %d returned %v", color, part)
	}
	if color == 0 && part != nil {
		p.checkPlace(part, 0, 1)
		p.OK(part.Barrier())
	}
	part, err = p.Split(-2-p.Rank(), 0)
	p.OK(err)
	if part != nil {
		p.Failf("Split without any color returned %v", part)
	}
}

// checkNested halves the Comm until each rank is alone.
func checkNested(p *Probe) {
	c, rank, size := p.Comm, p.Rank(), p.Size()
	for size > 1 {
		half := (size + 1) / 2
		color := rank / half
		if c = p.split(c, color, 0); c == nil {
			return
		}
		if color == 1 {
			rank, size = rank-half, size-half
		} else {
			size = half
		}
		p.checkPlace(c, rank, size)
		all, err := c.Allgather([]int64{int64(p.Rank())})
		p.OK(err)
		for i, r := range all {
			p.Equal("the old rank of a member", r, int64(p.Rank()-rank+i))
		}
	}
	p.OK(c.Barrier())
}

// checkSplitWindows: windows of the parts are apart from each other and from the
// whole one's.
func checkSplitWindows(p *Probe) {
	part := p.split(p.Comm, p.Rank()%2, -p.Rank())
	if part == nil {
		return
	}
	whole := p.Open(rma.CounterSpec("whole", 1))
	w := p.openOn(part, rma.CounterSpec("part", 2))
	if whole == nil || w == nil {
		return
	}
	if w.Size() != part.Size() || w.Rank() != part.Rank() {
		p.Failf("window of a part has rank %d of %d, want %d of %d", w.Rank(), w.Size(), part.Rank(), part.Size())
	}
	for target := range part.Size() {
		w.Accumulate(int64(1+p.Rank()%2), target, 1, rma.Sum)
	}
	p.OK(w.FlushAll())
	p.OK(whole.AccumulateFlush(1, 0, 0, rma.Sum))
	p.Meet()
	for target := range part.Size() {
		p.Equal("a word of the part", p.Value(w.GetFlush(target, 1)), int64((1+p.Rank()%2)*part.Size()))
		p.Equal("a word of the part that nobody wrote", p.Value(w.GetFlush(target, 0)), 0)
	}
	p.Equal("the word of the whole", p.Value(whole.GetFlush(0, 0)), int64(p.Size()))
	p.Meet()
	p.Close(w)
	p.Close(whole)
}
