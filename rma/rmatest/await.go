package rmatest

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

var awaitChecks = []check{
	{"Await/Relations", checkRelations},
	{"Await/WokenByAnyWrite", checkWoken},
	{"Await/PingPong", checkPingPong},
	{"Await/Ring", checkRing},
	{"Await/Crowd", checkCrowd},
	{"Await/ManyWords", checkManyWords},
	{"Await/Mask", checkMask},
	{"Await/Until", checkUntil},
	{"Await/Either", checkEither},
	{"Backoff", checkBackoff},
	{"SpinBriefly", checkLinger},
}

// checkRelations: conditions that hold already, signed, on words of every class.
func checkRelations(p *Probe) {
	n := p.Size()
	w := p.Open(classes(n))
	if w == nil {
		return
	}
	everyClass(n, func(c rma.Class, base int) {
		for _, target := range p.targets(c) {
			for _, v := range []int64{0, -5, 1 << 33} {
				p.OK(w.PutFlush(v, target, base+p.Rank()))
				for _, cond := range []rma.Cond{
					rma.Equal(v), rma.NotEqual(v + 1), rma.Less(v + 1), rma.AtLeast(v), rma.AtLeast(v - 1), rma.NotEqual(v + 1<<32),
					rma.Less(1 << 40), rma.AtLeast(-1 << 40),
				} {
					got := p.Value(w.Await(target, base+p.Rank(), cond))
					p.Equal(fmt.Sprintf("Await(%v) on a %v word at rank %d", cond, c, target), got, v)
				}
			}
		}
	})
	p.Meet()
	p.Close(w)
}

// writes are the ways to change a word from 0 to 7.
var writes = []struct {
	name string
	flag bool // allowed on a Flag word and a Plain one
	do   func(w *rma.Window, target, disp int)
}{
	{"Put", true, func(w *rma.Window, t, d int) { w.Put(7, t, d) }},
	{"PutBulk", true, func(w *rma.Window, t, d int) { w.PutBulk([]int64{7}, t, d) }},
	{"Accumulate(SUM)", false, func(w *rma.Window, t, d int) { w.Accumulate(7, t, d, rma.Sum) }},
	{"Accumulate(REPLACE)", false, func(w *rma.Window, t, d int) { w.Accumulate(7, t, d, rma.Replace) }},
	{"Pointer.Add", false, func(w *rma.Window, t, d int) { p := w.Pointer(t, d); _, _ = p.Add(7) }},
	{"Pointer.Swap", false, func(w *rma.Window, t, d int) { p := w.Pointer(t, d); _, _ = p.Swap(7) }},
	{"Pointer.CompareAndSwap", false, func(w *rma.Window, t, d int) { p := w.Pointer(t, d); _, _ = p.CompareAndSwap(7, 0) }},
	{"FetchAndOp(SUM)", false, func(w *rma.Window, t, d int) { w.FetchAndOp(7, t, d, rma.Sum) }},
	{"FetchAndOp(REPLACE)", false, func(w *rma.Window, t, d int) { w.FetchAndOp(7, t, d, rma.Replace) }},
	{"CompareAndSwap", false, func(w *rma.Window, t, d int) { w.CompareAndSwap(7, 0, t, d) }},
}

// checkWoken: a rank that waits sees every kind of write, in its own memory, in
// the writer's and in a third rank's. Rank 0 waits and another one writes; the
// writer lets the waiter fall asleep first, every second time.
func checkWoken(p *Probe) {
	n := len(writes)
	w := p.Open(classes(n))
	if w == nil {
		return
	}
	writer := p.Size() - 1
	for c := range rma.Classes {
		for _, host := range []int{0, writer, p.Size() / 2} {
			if c == rma.Near && !p.sameNode(writer, host) {
				continue
			}
			for i, write := range writes {
				disp := int(c)*n + i
				if c >= rma.Flag && !write.flag {
					continue
				}
				p.Meet()
				if p.Rank() == writer {
					if i%2 == 0 && p.Size() > 1 {
						p.Sleep(300_000)
					}
					write.do(w, host, disp)
					p.OK(w.Flush(host))
				}
				if p.Rank() == 0 {
					got := p.Value(w.Await(host, disp, rma.NotEqual(0)))
					p.Equal(fmt.Sprintf("what Await saw of %s on a %v word at rank %d", write.name, c, host), got, 7)
				}
				p.Meet()
				if p.Rank() == writer {
					p.OK(w.PutFlush(0, host, disp))
				}
			}
		}
	}
	p.Meet()
	p.Close(w)
}

// sameNode reports on all ranks alike whether some ranks are node-mates.
func (p *Probe) sameNode(ranks ...int) bool {
	index := p.Gather(int64(p.Node().Index))
	for _, r := range ranks {
		if index[r] != index[ranks[0]] {
			return false
		}
	}
	return true
}

// checkPingPong: two ranks pass a number back and forth, each waiting for the
// other, through words of theirs, and then through one word at the first.
func checkPingPong(p *Probe) {
	w := p.Open(classes(2))
	if w == nil {
		return
	}
	other := p.Rank() ^ 1
	rounds := int64(p.Rounds(1000, 60))
	for _, c := range []rma.Class{rma.Flag, rma.Far, rma.Plain} {
		own, common := int(c)*2, int(c)*2+1
		p.Meet()
		switch {
		case other >= p.Size(): // left over
		case p.Rank() < other:
			for i := int64(1); i <= rounds; i++ {
				p.OK(w.PutFlush(i, other, own))
				p.Equal("the answer", p.Value(w.Await(p.Rank(), own, rma.Equal(i))), i)
			}
			for i := int64(1); i <= rounds; i++ {
				p.OK(w.PutFlush(2*i-1, p.Rank(), common))
				p.Equal("the answer", p.Value(w.Await(p.Rank(), common, rma.AtLeast(2*i))), 2*i)
			}
		default:
			for i := int64(1); i <= rounds; i++ {
				p.Equal("the question", p.Value(w.Await(p.Rank(), own, rma.NotEqual(i-1))), i)
				p.OK(w.PutFlush(i, other, own))
			}
			for i := int64(1); i <= rounds; i++ {
				p.Equal("the question", p.Value(w.Await(other, common, rma.Equal(2*i-1))), 2*i-1)
				p.OK(w.PutFlush(2*i, other, common))
			}
		}
	}
	p.Meet()
	p.Close(w)
}

// checkRing passes a token round all ranks by additions.
func checkRing(p *Probe) {
	w := p.Open(rma.CounterSpec("ring", 1))
	if w == nil {
		return
	}
	next := (p.Rank() + 1) % p.Size()
	for i := range int64(p.Rounds(100, 10)) {
		if p.Rank() == 0 {
			p.OK(w.AccumulateFlush(1, next, 0, rma.Sum))
		}
		p.Value(w.Await(p.Rank(), 0, rma.AtLeast(i+1)))
		if p.Rank() != 0 {
			p.OK(w.AccumulateFlush(1, next, 0, rma.Sum))
		}
	}
	p.Meet()
	p.Close(w)
}

// checkCrowd: all ranks wait for one word, and all wake.
func checkCrowd(p *Probe) {
	w := p.Open(classes(1))
	if w == nil {
		return
	}
	for i := int64(1); i <= int64(p.Rounds(100, 10)); i++ {
		for _, c := range []rma.Class{rma.Flag, rma.Far} {
			host := int(i) % p.Size()
			disp := int(c)
			if p.Rank() == 0 {
				p.OK(w.PutFlush(i, host, disp))
			}
			p.Equal("what the crowd saw", p.Value(w.Await(host, disp, rma.Equal(i))), i)
		}
		p.Meet() // before the words of this host change again
	}
	p.Close(w)
}

// checkManyWords: ranks wait for different words of one part; each is woken by its
// own, whatever the others do.
func checkManyWords(p *Probe) {
	w := p.Open(rma.DataSpec("words", p.Size()))
	if w == nil {
		return
	}
	for i := int64(1); i <= int64(p.Rounds(50, 5)); i++ {
		if p.Rank() == 0 {
			for r := p.Size() - 1; r >= 0; r-- {
				w.Put(i, 0, r)
				p.OK(w.Flush(0))
			}
		}
		p.Value(w.Await(0, p.Rank(), rma.Equal(i)))
		p.Meet()
	}
	p.Close(w)
}

// checkBackoff: Backoff comes back when the word has changed, or will.
func checkBackoff(p *Probe) {
	w := p.Open(rma.CounterSpec("backoff", p.Size()))
	if w == nil {
		return
	}
	for _, target := range p.targets(rma.Far) {
		for _, try := range []int{0, 1, 10, 63, 64, 1000, 1 << 40} {
			p.OK(w.Backoff(target, p.Rank(), 1, try)) // the word holds 0
		}
	}
	p.Meet()
	if p.Rank() == p.Size()-1 { // all wait until the last one writes
		p.Sleep(200_000)
		p.OK(w.PutFlush(1, 0, 0))
	}
	seen := p.Value(w.GetFlush(0, 0))
	for try := 0; seen != 1 && p.err == nil; try++ {
		p.OK(w.Backoff(0, 0, seen, try))
		seen = p.Value(w.GetFlush(0, 0))
	}
	p.Meet()
	p.Close(w)
}

// checkLinger: SpinBriefly comes back, at once or soon, with what the word holds; a node-mate
// changes it.
func checkLinger(p *Probe) {
	w := p.Open(classes(1))
	if w == nil {
		return
	}
	disp := int(rma.Near)
	p.Equal("a word that does not change", p.Value(w.SpinBriefly(disp, 0)), 0)
	p.Equal("one that holds something else", p.Value(w.SpinBriefly(disp, 5)), 0)
	p.Meet()
	mates := w.Node().Ranks
	next := mates[(slices.Index(mates, p.Rank())+1)%len(mates)]
	p.OK(w.PutFlush(7, next, disp))
	if v := p.Value(w.SpinBriefly(disp, 0)); v != 0 { // it promises no more than to come back
		p.Equal("what a node-mate wrote", v, 7)
	}
	p.Meet()
	p.Equal("what a node-mate has written", p.Value(w.SpinBriefly(disp, 0)), 7)
	p.Close(w)
}
