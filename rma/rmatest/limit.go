package rmatest

import (
	"fmt"
	"math"

	"github.com/rmalock/rmalock/rma"
)

// checkMask: a condition looks at the bits of its mask alone.
func checkMask(p *Probe) {
	n := p.Size()
	w := p.Open(classes(n))
	if w == nil {
		return
	}
	everyClass(n, func(c rma.Class, base int) {
		for _, target := range p.targets(c) {
			const v = 0x7001_0002_0003_0004
			p.OK(w.PutFlush(v, target, base+p.Rank()))
			for _, cond := range []rma.Cond{
				rma.Equal(4).In(0xffff), rma.Equal(3 << 16).In(0xffff << 16), rma.NotEqual(0).In(1 << 32 << 1), rma.Less(5).In(0xffff),
				rma.AtLeast(0x7001 << 48).In(math.MaxInt64 &^ 0xffff_ffff_ffff), rma.Equal(0).In(1 << 40), rma.Equal(0).In(math.MinInt64),
			} {
				got := p.Value(w.Await(target, base+p.Rank(), cond))
				p.Equal(fmt.Sprintf("Await(%v) on a %v word at rank %d", cond, c, target), got, v)
			}
		}
	})
	p.Meet()
	p.Close(w)
}

// checkUntil: a wait with a limit ends with the condition or with the limit.
func checkUntil(p *Probe) {
	n := p.Size()
	w := p.Open(classes(n))
	if w == nil {
		return
	}
	everyClass(n, func(c rma.Class, base int) {
		for _, target := range p.targets(c) {
			disp := base + p.Rank()
			until := p.Now() + 300_000
			_, held, err := w.AwaitUntil(target, disp, rma.Equal(7), until)
			p.OK(err)
			if held || p.Now() < until {
				p.Failf("AwaitUntil on a %v word at rank %d, which is 0, held: %v, %d ns before the limit", c, target, held, until-p.Now())
			}
			p.OK(w.PutFlush(7, target, disp))
			for _, limit := range []int64{until, p.Now() + 1e12, rma.Forever} { // a limit of the past: it holds
				v, held, err := w.AwaitUntil(target, disp, rma.Equal(7), limit)
				p.OK(err)
				if !held || v != 7 {
					p.Failf("AwaitUntil on a %v word at rank %d, which is 7: %d, %v", c, target, v, held)
				}
			}
		}
	})
	_, _, err := w.AwaitUntil(p.Size(), 0, rma.Equal(0), 0)
	p.Is("AwaitUntil at a rank that does not exist", err, rma.ErrRank)
	p.Meet()
	p.untilWoken(w, n)
	p.Close(w)
}

// untilWoken: a write ends a wait with a limit that is far away.
func (p *Probe) untilWoken(w *rma.Window, n int) {
	next, before := (p.Rank()+1)%n, (p.Rank()+n-1)%n
	for _, c := range []rma.Class{rma.Far, rma.Flag, rma.Plain} {
		for i := range p.Rounds(40, 6) {
			disp, want := int(c)*n, int64(1000+i)
			if i%2 == 0 {
				p.Sleep(200_000)
			}
			p.OK(w.PutFlush(want, next, disp+p.Rank()))
			v, held, err := w.AwaitUntil(p.Rank(), disp+before, rma.Equal(want), p.Now()+1e12)
			p.OK(err)
			if !held || v != want {
				p.Failf("AwaitUntil with a limit far away saw %d, %v, want %d", v, held, want)
			}
			p.Meet()
		}
	}
}

// checkEither: a wait for two words ends with either, in own memory and others', asleep or
// not.
func checkEither(p *Probe) {
	n := p.Size()
	w := p.Open(classes(2 * n))
	if w == nil {
		return
	}
	for _, c := range []rma.Class{rma.Far, rma.Flag, rma.Plain} {
		for _, target := range p.targets(c) {
			p.eitherAt(w, c, int(c)*2*n+2*p.Rank(), target)
		}
	}
	p.Meet()
	p.eitherWoken(w, 2*n)
	p.Close(w)
}

// eitherAt waits for words of a target that only the caller writes.
func (p *Probe) eitherAt(w *rma.Window, c rma.Class, disp, target int) {
	a, b := rma.Wait{Target: target, Disp: disp, Cond: rma.Equal(1)}, rma.Wait{Target: target, Disp: disp + 1, Cond: rma.Less(0)}
	for _, k := range []struct{ first, second, which, value int64 }{{0, 0, -1, 0}, {1, 0, 0, 1}, {1, -3, 0, 1}, {0, -3, 1, -3}} {
		p.OK(w.PutFlush(k.first, target, disp))
		p.OK(w.PutFlush(k.second, target, disp+1))
		until := rma.Forever
		if k.which < 0 {
			until = p.Now() + 200_000
		}
		which, v, err := w.AwaitEither(a, b, until)
		p.OK(err)
		if int64(which) != k.which || which >= 0 && v != k.value {
			p.Failf("AwaitEither on %v words at rank %d that are %d and %d: word %d, %d; want word %d, %d",
				c, target, k.first, k.second, which, v, k.which, k.value)
		}
	}
}

// eitherWoken: the next rank writes one word of the caller's or the other.
func (p *Probe) eitherWoken(w *rma.Window, n int) {
	next := (p.Rank() + 1) % p.Size()
	for _, c := range []rma.Class{rma.Far, rma.Flag, rma.Plain} {
		first := int(c) * n
		p.OK(w.PutFlush(0, p.Rank(), first))
		p.OK(w.PutFlush(0, p.Rank(), first+1))
		p.Meet()
		for i := range int64(p.Rounds(40, 6)) {
			if i%4 < 2 {
				p.Sleep(200_000)
			}
			p.OK(w.PutFlush(i+1, next, first+int(i%2)))
			a := rma.Wait{Target: p.Rank(), Disp: first, Cond: rma.AtLeast(i + 1)}
			b := rma.Wait{Target: p.Rank(), Disp: first + 1, Cond: rma.AtLeast(i + 1)}
			which, v, err := w.AwaitEither(a, b, rma.Forever)
			p.OK(err)
			if int64(which) != i%2 || v != i+1 {
				p.Failf("AwaitEither on %v words saw word %d, %d; want word %d, %d", c, which, v, i%2, i+1)
			}
			p.Meet()
		}
	}
}
