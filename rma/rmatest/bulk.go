package rmatest

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

var bulkChecks = []check{
	{"Bulk/PutGet", checkBulk},
	{"Bulk/AcrossRegions", checkBulkRegions},
	{"Bulk/WithWords", checkBulkWords},
	{"Bulk/WholeWords", checkWholeWords},
	{"Bulk/Buffers", checkBuffers},
}

// checkBulk: lengths from one word to thousands, on words of every class.
func checkBulk(p *Probe) {
	const n = 3000
	w := p.Open(classes(n))
	if w == nil {
		return
	}
	for writer := range min(p.Size(), 4) {
		if writer == p.Rank() {
			everyClass(n, func(c rma.Class, base int) {
				for _, target := range p.targets(c) {
					p.roundTrip(w, target, base)
				}
			})
		}
		p.Meet()
	}
	p.Close(w)
}

// checkBuffers: memory of the window's own, whole and in parts, beside memory of the
// caller's.
func checkBuffers(p *Probe) {
	const n = 3000
	w := p.Open(rma.DataSpec("buffers", n))
	if w == nil {
		return
	}
	out, err := w.Buffer(n)
	p.OK(err)
	in, err := w.Buffer(n + 1)
	p.OK(err)
	_, err = w.Buffer(0)
	p.Is("a buffer of no words", err, rma.ErrDisp)
	target := (p.Rank() + 1) % p.Size()
	p.Meet()
	if len(out) == n && len(in) == n+1 {
		for i := range out {
			p.Equal("a new buffer's word", out[i], 0)
			out[i] = int64(p.Rank()+1)<<32 + int64(i)
		}
		w.PutBulk(out, target, 0)
		p.OK(w.Flush(target))
		w.PutBulk(out[:3], target, 7) // parts, one of them of the same words
		w.Fence(target)
		w.GetBulk(in[1:], target, 0)
		p.OK(w.Flush(target))
		copy(out[7:10], out[:3])
		if !slices.Equal(out, in[1:]) {
			p.Failf("a buffer does not come back as it went")
		}
		mixed := make([]int64, 5) // memory of the caller's own beside a buffer
		w.GetBulk(mixed, target, n-5)
		w.GetBulk(in[:5], target, n-5)
		p.OK(w.Flush(target))
		if !slices.Equal(mixed, out[n-5:]) || !slices.Equal(mixed, in[:5]) {
			p.Failf("a buffer and other memory differ: %v, %v, want %v", in[:5], mixed, out[n-5:])
		}
	}
	p.Close(w)
}

// roundTrip puts and gets n words of one class, and shorter pieces of them.
func (p *Probe) roundTrip(w *rma.Window, target, base int) {
	for _, piece := range []struct{ at, n int }{{0, 3000}, {0, 1}, {2999, 1}, {1, 63}, {7, 64}, {100, 1025}} {
		src := make([]int64, piece.n)
		for i := range src {
			src[i] = int64(p.Rank()+1)<<32 + int64(piece.at+i)
		}
		w.PutBulk(src, target, base+piece.at)
		p.OK(w.Flush(target))
		clear(src) // it is the caller's again
		w.GetBulk(src, target, base+piece.at)
		p.OK(w.Flush(target))
		for i, v := range src {
			if want := int64(p.Rank()+1)<<32 + int64(piece.at+i); v != want {
				p.Failf("word %d of a piece of %d at %d is %d, want %d", i, piece.n, base+piece.at, v, want)
				break
			}
		}
		last := piece.at + piece.n - 1
		p.Equal("a word of the piece", p.Value(w.GetFlush(target, base+last)), int64(p.Rank()+1)<<32+int64(last))
	}
}

// checkBulkRegions: a piece may cross records and regions, if all its words have
// one class; otherwise it is refused and nothing of it is written.
func checkBulkRegions(p *Probe) {
	flags := []rma.Word{{Name: "A", Class: rma.Flag}, {Name: "B", Class: rma.Flag}}
	spec := rma.Spec{Name: "regions", Regions: []rma.Region{
		{Count: 3, Words: flags},
		{Count: 0, Words: []rma.Word{{Name: "NONE", Class: rma.Near}}},
		{Count: 4, Words: flags[:1]},
		{Count: 1, Words: []rma.Word{{Name: "C", Class: rma.Flag}, {Name: "T", Class: rma.Far}}},
	}}
	w := p.Open(spec)
	if w == nil {
		return
	}
	target := (p.Rank() + 1) % p.Size()
	src := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	w.PutBulk(src, target, 0)
	p.OK(w.Flush(target))
	got := make([]int64, 7)
	w.GetBulk(got, target, 3)
	p.OK(w.Flush(target))
	for i, v := range got {
		p.Equal("a word across regions", v, int64(4+i))
	}
	w.PutBulk([]int64{-1, -1}, target, 10)
	p.Is("PutBulk onto words of two classes", w.Flush(target), rma.ErrClass)
	p.Equal("the first word of a refused piece", p.Value(w.GetFlush(target, 10)), 11)
	p.Equal("the last word of a refused piece", p.Value(w.GetFlush(target, 11)), 0)
	p.Meet()
	p.Close(w)
}

// checkBulkWords: bulk and one-word operations on the same words keep the order of
// issue, and several pieces may be pending.
func checkBulkWords(p *Probe) {
	w := p.Open(classes(8 * p.Size()))
	if w == nil {
		return
	}
	for _, c := range []rma.Class{rma.Flag, rma.Far} {
		base := int(c)*8*p.Size() + 8*p.Rank()
		for _, target := range p.targets(c) {
			var a, b [8]int64
			w.PutBulk([]int64{1, 2, 3, 4, 5, 6, 7, 8}, target, base)
			w.Put(-2, target, base+1)
			w.GetBulk(a[:4], target, base)
			w.PutBulk([]int64{-6, -7}, target, base+5)
			r := w.Get(target, base+6)
			w.GetBulk(b[:], target, base)
			p.OK(w.Flush(target))
			for i, want := range []int64{1, -2, 3, 4} {
				p.Equal(fmt.Sprintf("%v word %d of the first piece", c, i), a[i], want)
			}
			for i, want := range []int64{1, -2, 3, 4, 5, -6, -7, 8} {
				p.Equal(fmt.Sprintf("%v word %d of the last piece", c, i), b[i], want)
			}
			p.Equal("a word between the pieces", w.Value(r), -7)
		}
	}
	p.Meet()
	p.Close(w)
}

// checkWholeWords: bulk operations may tear between words, never inside one. Rank 0
// writes two patterns in turn at the last rank, the others read until it is through.
func checkWholeWords(p *Probe) {
	const n = 64 // the word after the piece says that the writer is through
	w := p.Open(classes(n + 1))
	if w == nil {
		return
	}
	pieces := [2][]int64{slices.Repeat([]int64{0x1111111111111111}, n), slices.Repeat([]int64{-0x1111111111111112}, n)}
	host := p.Size() - 1
	for _, base := range []int{int(rma.Far) * (n + 1), int(rma.Flag) * (n + 1)} {
		got := make([]int64, n)
		read := func() (through bool) {
			w.GetBulk(got, host, base)
			r := w.Get(host, base+n)
			p.OK(w.Flush(host))
			for _, v := range got {
				if v != 0 && v != pieces[0][0] && v != pieces[1][0] {
					p.Failf("a word was torn: %#x", v)
				}
			}
			return w.Value(r) != 0
		}
		if p.Rank() == 0 {
			for i := range p.Rounds(300, 20) {
				w.PutBulk(pieces[i%2], host, base)
				p.OK(w.Flush(host))
			}
			p.OK(w.PutFlush(1, host, base+n))
		}
		for try := 0; !read() && !p.Lost(); try++ {
			p.OK(w.Backoff(host, base+n, 0, try))
		}
	}
	p.Meet()
	p.Close(w)
}
