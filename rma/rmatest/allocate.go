package rmatest

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

var allocateChecks = []check{
	{"Allocate/Describes", checkDescribes},
	{"Allocate/Zeroed", checkZeroed},
	{"Allocate/Apart", checkApart},
	{"Allocate/Large", checkLarge},
	{"Allocate/Mismatch", checkMismatch},
	{"Allocate/BadSpec", checkBadSpec},
	{"Allocate/OpenAndFree", checkOpenAndFree},
	{"Allocate/ManyAtOnce", checkManyAtOnce},
}

func checkDescribes(p *Probe) {
	spec := classes(3)
	w := p.Open(spec)
	if w == nil {
		return
	}
	got := w.Spec()
	if w.Name() != spec.Name || got.Fingerprint() != spec.Fingerprint() {
		p.Failf("window is called %q and described by %+v, want %+v", w.Name(), got, spec)
	}
	if w.Rank() != p.Rank() || w.Size() != p.Size() || w.Words() != spec.Words() {
		p.Failf("window has rank %d of %d and %d words, want %d of %d and %d", w.Rank(), w.Size(), w.Words(), p.Rank(), p.Size(), spec.Words())
	}
	if n := w.Node(); n.Index != p.Node().Index || n.Count != p.Node().Count || len(n.Ranks) != len(p.Node().Ranks) {
		p.Failf("window has node %+v, want %+v", n, p.Node())
	}
	caps := w.Caps()
	if caps.Transport == "" || !caps.FarRanks && p.Node().Count > 1 {
		p.Failf("window on %d nodes has caps %+v", p.Node().Count, caps)
	}
	p.Close(w)
}

// checkZeroed: all words are zero at first, those in memory that a window before
// has used too.
func checkZeroed(p *Probe) {
	const n = 20
	for round := range 3 {
		w := p.Open(classes(n))
		if w == nil {
			return
		}
		everyClass(n, func(c rma.Class, base int) {
			for _, target := range p.targets(c) {
				for i := range n {
					if v := p.Value(w.GetFlush(target, base+i)); v != 0 {
						p.Failf("window %d: %v word %d of rank %d is %d at first", round, c, i, target, v)
					}
				}
			}
		})
		p.Meet()
		for i := range 3 * n {
			w.Put(-1, p.Rank(), i)
			p.OK(w.Flush(p.Rank()))
		}
		p.Meet()
		p.Close(w)
	}
}

// checkApart: windows that are open at the same time do not share words, nor do
// the parts of ranks, the first and last words included.
func checkApart(p *Probe) {
	sizes := []int{1, 7, 8, 64, 511}
	windows := make([]*rma.Window, len(sizes))
	for i, n := range sizes {
		if windows[i] = p.Open(rma.DataSpec(fmt.Sprint("apart", i), n)); windows[i] == nil {
			return
		}
	}
	mark := func(window, rank, disp int) int64 { return int64(window+1)<<40 | int64(rank)<<16 | int64(disp+1) }
	next := (p.Rank() + 1) % p.Size() // each part is written by the rank before
	for i, w := range windows {
		for disp := 0; disp < sizes[i]; disp += max(1, sizes[i]-1) {
			p.OK(w.PutFlush(mark(i, next, disp), next, disp))
		}
	}
	p.Meet()
	for i, w := range windows {
		for _, target := range p.targets(rma.Flag) {
			for disp := 0; disp < sizes[i]; disp += max(1, sizes[i]-1) {
				p.Equal(fmt.Sprintf("word %d of window %d at rank %d", disp, i, target),
					p.Value(w.GetFlush(target, disp)), mark(i, target, disp))
			}
		}
	}
	p.Meet()
	for _, w := range windows {
		p.Close(w)
	}
}

func checkLarge(p *Probe) {
	const n = 1 << 16
	w := p.Open(rma.CounterSpec("large", n))
	if w == nil {
		return
	}
	for _, target := range p.targets(rma.Far) {
		for _, disp := range []int{0, n / 2, n - 1} {
			p.OK(w.AccumulateFlush(int64(disp)+1, target, disp, rma.Sum))
		}
	}
	got := make([]int64, 4)
	p.Meet()
	w.GetBulk(got, p.Rank(), n-4)
	p.OK(w.Flush(p.Rank()))
	if got[3] == 0 || got[3]%n != 0 || got[0] != 0 {
		p.Failf("the last words of a large part are %v, want zeros and a multiple of %d", got, n)
	}
	p.Meet()
	p.Close(w)
}

// checkMismatch: when one rank describes the window differently, all learn it.
func checkMismatch(p *Probe) {
	if p.Size() == 1 {
		return
	}
	good := classes(2)
	for _, odd := range []rma.Spec{
		{Name: "other", Regions: good.Regions},
		{Name: good.Name, Regions: good.Regions[:2]},
		classes(3),
		{Name: good.Name, Regions: []rma.Region{good.Regions[0], good.Regions[2], good.Regions[1]}},
	} {
		for _, who := range []int{0, p.Size() - 1} {
			spec := good
			if p.Rank() == who {
				spec = odd
			}
			_, err := p.Allocate(spec)
			p.Is("Allocate with different Specs", err, rma.ErrMismatch)
		}
	}
	if w := p.Open(good); w != nil { // the Comm is as good as before
		p.Close(w)
	}
}

func checkBadSpec(p *Probe) {
	word := []rma.Word{{Name: "W"}}
	for _, bad := range []rma.Spec{
		{},
		{Regions: []rma.Region{{Words: word, Count: 1}}},
		{Name: "empty"},
		{Name: "empty", Regions: []rma.Region{{Words: word}}},
		{Name: "wordless", Regions: []rma.Region{{Count: 1}}},
		{Name: "negative", Regions: []rma.Region{{Words: word, Count: -1}}},
		{Name: "huge", Regions: []rma.Region{{Words: word, Count: 1 << 60}}},
		{Name: "classless", Regions: []rma.Region{{Words: []rma.Word{{Name: "W", Class: 9}}, Count: 1}}},
	} {
		_, err := p.Allocate(bad)
		p.Is(fmt.Sprintf("Allocate of %+v", bad), err, rma.ErrSpec)
	}
	if w := p.Open(rma.DataSpec("good", 1)); w != nil {
		p.Close(w)
	}
}

func checkOpenAndFree(p *Probe) {
	for i := range p.Rounds(100, 10) {
		w := p.Open(rma.DataSpec("again", 1+i))
		if w == nil {
			return
		}
		p.OK(w.PutFlush(int64(i), (p.Rank()+1)%p.Size(), i))
		p.Close(w)
	}
}

func checkManyAtOnce(p *Probe) {
	windows := make([]*rma.Window, p.Rounds(40, 8))
	for i := range windows {
		if windows[i] = p.Open(rma.CounterSpec(fmt.Sprint("many", i), 1)); windows[i] == nil {
			return
		}
	}
	for i, w := range windows {
		w.Accumulate(int64(i), i%p.Size(), 0, rma.Sum)
	}
	for _, w := range windows {
		p.OK(w.FlushAll())
	}
	p.Meet()
	for i, w := range windows {
		p.Equal(fmt.Sprintf("the word of window %d", i), p.Value(w.GetFlush(i%p.Size(), 0)), int64(i*p.Size()))
	}
	p.Meet()
	for i := range windows { // not in the order in which they were opened
		p.Close(windows[len(windows)-1-i])
	}
}
