package rmatest

import (
	"fmt"
	"math"

	"github.com/rmalock/rmalock/rma"
)

var opChecks = []check{
	{"Ops/PutGet", checkPutGet},
	{"Ops/Atomics", checkAtomics},
	{"Ops/Pointer", checkPointer},
	{"Ops/Wraparound", checkWraparound},
	{"Ops/OrderOnAWord", checkOrderOnAWord},
	{"Ops/ManyResults", checkManyResults},
	{"Ops/FlushByTarget", checkFlushByTarget},
	{"Ops/Pending", checkPending},
}

// odd are values whose every byte matters.
var odd = []int64{1, -1, 0, math.MinInt64, math.MaxInt64, 0x0123456789ABCDEF, -0x0123456789ABCDEF, 1 << 32, 1<<32 - 1, 1 << 31}

// checkPutGet: what one rank puts is what the others get, on words of every class,
// its own, a node-mate's and far ones.
func checkPutGet(p *Probe) {
	n := p.Size() // word i of each class is rank i's
	w := p.Open(classes(n))
	if w == nil {
		return
	}
	everyClass(n, func(c rma.Class, base int) {
		for _, target := range p.targets(c) {
			for _, v := range odd {
				w.Put(v, target, base+p.Rank())
				p.OK(w.Flush(target))
				r := w.Get(target, base+p.Rank())
				p.OK(w.Flush(target))
				p.Equal(fmt.Sprintf("%v word at rank %d", c, target), w.Value(r), v)
				p.OK(w.PutFlush(^v, target, base+p.Rank()))
				p.Equal(fmt.Sprintf("%v word at rank %d", c, target), p.Value(w.GetFlush(target, base+p.Rank())), ^v)
			}
			p.OK(w.PutFlush(int64(p.Rank()*1000+target), target, base+p.Rank()))
		}
		p.Equal(fmt.Sprintf("Peek of a %v word", c), w.Peek(base+p.Rank()), int64(p.Rank()*1001))
	})
	p.Meet()
	everyClass(n, func(c rma.Class, base int) { // all see what the neighbour wrote
		writer := (p.Rank() + 1) % p.Size()
		for _, target := range targetsOf(writer, p.Size()) {
			if c == rma.Near && !p.sameNode(target, writer) {
				continue
			}
			p.Equal(fmt.Sprintf("%v word of rank %d at rank %d", c, writer, target),
				p.Value(w.GetFlush(target, base+writer)), int64(writer*1000+target))
		}
	})
	p.Meet()
	p.Close(w)
}

// checkAtomics: each operation does what it says, in both forms, on words that may
// be updated by atomics.
func checkAtomics(p *Probe) {
	n := p.Size()
	w := p.Open(classes(n))
	if w == nil {
		return
	}
	for _, c := range []rma.Class{rma.Far, rma.Near} {
		disp := int(c)*n + p.Rank()
		for _, target := range p.targets(c) {
			value := int64(0) // what the word must hold
			result := func(what string, got, want int64) {
				p.Equal(fmt.Sprintf("the result of %s on a %v word at rank %d", what, c, target), got, want)
				p.Equal(fmt.Sprintf("after %s a %v word at rank %d", what, c, target), p.Value(w.GetFlush(target, disp)), value)
			}
			fetch := func(operand int64, op rma.Op, after int64) {
				r := w.FetchAndOp(operand, target, disp, op)
				p.OK(w.Flush(target))
				before := value
				value = after
				result("FetchAndOp("+op.String()+")", w.Value(r), before)
			}
			fetch(5, rma.Sum, 5)
			fetch(-7, rma.Sum, -2)
			fetch(1<<40, rma.Replace, 1<<40)
			fetch(99, rma.NoOp, 1<<40)

			swap := func(v, cmp, want int64) {
				if want == cmp {
					value = v
				}
				r := w.CompareAndSwap(v, cmp, target, disp)
				p.OK(w.Flush(target))
				result("CompareAndSwap", w.Value(r), want)
			}
			swap(3, 4, 1<<40) // the low halves of cmp and the word are unlike too
			swap(3, 0, 1<<40) // the low half of the word is 0
			swap(-3, 1<<40, 1<<40)

			masked := func(v, swapMask, cmp, cmpMask, after int64) {
				before := value
				got := p.Value(w.MaskedSwapFlush(v, swapMask, cmp, cmpMask, target, disp))
				value = after
				result("MaskedSwap", got, before)
			}
			masked(0x1234, 0xFF00, 0, 0, -3&^0xFF00|0x1200)             // bits of v beyond the mask do not count
			masked(0, -1, 0x1100, 0xFF00, -3&^0xFF00|0x1200)            // nor does it swap where the bits differ
			masked(-1, 0xFF00, 0x12FF, 0xFF00, -3)                      // but where those of the mask do not
			masked(7<<60, math.MinInt64|7<<60, -3, -1, math.MaxInt64-2) // the whole word is compared
			masked(math.MinInt64, math.MinInt64, 0, math.MinInt64, -3)

			accumulate := func(operand int64, op rma.Op, after int64) {
				w.Accumulate(operand, target, disp, op)
				p.OK(w.Flush(target))
				value = after
				result("Accumulate("+op.String()+")", 0, 0)
			}
			accumulate(10, rma.Sum, 7)
			accumulate(-1, rma.NoOp, 7)
			accumulate(1<<33, rma.Replace, 1<<33)

			p.Equal("FetchAndOpFlush(SUM)", p.Value(w.FetchAndOpFlush(1, target, disp, rma.Sum)), 1<<33)
			p.Equal("FetchAndOpFlush(NO_OP)", p.Value(w.FetchAndOpFlush(1, target, disp, rma.NoOp)), 1<<33+1)
			p.Equal("FetchAndOpFlush(REPLACE)", p.Value(w.FetchAndOpFlush(4, target, disp, rma.Replace)), 1<<33+1)
			p.Equal("CompareAndSwapFlush that loses", p.Value(w.CompareAndSwapFlush(6, 5, target, disp)), 4)
			p.Equal("CompareAndSwapFlush that wins", p.Value(w.CompareAndSwapFlush(6, 4, target, disp)), 4)
			p.OK(w.AccumulateFlush(2, target, disp, rma.Sum))
			p.Equal("the word at last", p.Value(w.GetFlush(target, disp)), 8)
			p.OK(w.PutFlush(0, target, disp))
		}
	}
	p.Meet()
	p.Close(w)
}

// checkPointer: a Pointer does what the window's operations do, on words of every class, and
// returns their errors.
func checkPointer(p *Probe) {
	n := p.Size()
	w := p.Open(classes(n))
	if w == nil {
		return
	}
	everyClass(n, func(c rma.Class, base int) {
		for _, target := range p.targets(c) {
			disp := base + p.Rank()
			word := w.Pointer(target, disp)
			p.OK(w.PutFlush(7, target, disp))
			p.Equal(fmt.Sprintf("a %v word at rank %d by a Pointer", c, target), p.Value(word.Get()), 7)
			if c == rma.Flag || c == rma.Plain {
				for _, update := range []func() (int64, error){
					func() (int64, error) { return word.Add(1) },
					func() (int64, error) { return word.Swap(1) },
					func() (int64, error) { return word.CompareAndSwap(1, 7) },
				} {
					_, err := update()
					p.Is(fmt.Sprintf("an update of a %v word by a Pointer", c), err, rma.ErrClass)
				}
				p.Equal(fmt.Sprintf("the %v word then", c), p.Value(word.Get()), 7)
				continue
			}
			p.Equal("Add", p.Value(word.Add(-9)), -2)
			p.Equal("Add after Add", p.Value(word.Add(1<<40)), 1<<40-2)
			p.Equal("Swap", p.Value(word.Swap(0)), 1<<40-2)
			p.Equal("CompareAndSwap that loses", p.Value(word.CompareAndSwap(6, 5)), 0)
			p.Equal("CompareAndSwap of 0", p.Value(word.CompareAndSwap(6, 0)), 0)
			p.Equal("CompareAndSwap that wins", p.Value(word.CompareAndSwap(-1, 6)), 6)
			p.Equal("the word by the window", p.Value(w.GetFlush(target, disp)), -1)
			p.Equal("the word by the Pointer", p.Value(word.Get()), -1)
		}
	})
	nowhere := w.Pointer(0, w.Words())
	_, err := nowhere.Get()
	p.Is("a Pointer beyond the words", err, rma.ErrDisp)
	_, err = nowhere.Add(1)
	p.Is("a Pointer beyond the words", err, rma.ErrDisp)
	nobody := w.Pointer(p.Size(), 0)
	_, err = nobody.Swap(1)
	p.Is("a Pointer to a rank that is not there", err, rma.ErrRank)
	p.Meet()
	p.Close(w)
}

func checkWraparound(p *Probe) {
	w := p.Open(rma.CounterSpec("wrap", p.Size()))
	if w == nil {
		return
	}
	for _, target := range p.targets(rma.Far) {
		at := p.Rank()
		p.OK(w.PutFlush(math.MaxInt64, target, at))
		p.Equal("before the overflow the word", p.Value(w.FetchAndOpFlush(1, target, at, rma.Sum)), math.MaxInt64)
		p.Equal("after the overflow the word", p.Value(w.FetchAndOpFlush(-1, target, at, rma.Sum)), math.MinInt64)
		p.Equal("after the underflow the word", p.Value(w.GetFlush(target, at)), math.MaxInt64)
		w.Accumulate(math.MaxInt64, target, at, rma.Sum)
		p.OK(w.Flush(target))
		p.Equal("twice the greatest number", p.Value(w.GetFlush(target, at)), -2)
	}
	p.Meet()
	p.Close(w)
}

// checkOrderOnAWord: operations of one handle on one word take effect in the order
// of issue, without a Flush between them.
func checkOrderOnAWord(p *Probe) {
	n := p.Size()
	w := p.Open(classes(n))
	if w == nil {
		return
	}
	for _, c := range []rma.Class{rma.Far, rma.Near} {
		disp := int(c)*n + p.Rank()
		for _, target := range p.targets(c) {
			w.Put(5, target, disp)
			a := w.FetchAndOp(3, target, disp, rma.Sum)
			b := w.CompareAndSwap(20, 8, target, disp)
			w.Accumulate(1, target, disp, rma.Sum)
			x := w.Get(target, disp)
			d := w.FetchAndOp(50, target, disp, rma.Replace)
			w.Put(60, target, disp)
			e := w.CompareAndSwap(70, 50, target, disp) // loses
			f := w.Get(target, disp)
			p.OK(w.Flush(target))
			for i, want := range []int64{5, 8, 21, 21, 60, 60} {
				p.Equal(fmt.Sprintf("result %d on a %v word at rank %d", i, c, target), w.Value([]rma.Result{a, b, x, d, e, f}[i]), want)
			}
			var chain [rma.MaxPending - 2]rma.Result
			w.Put(-1, target, disp)
			for i := range chain {
				chain[i] = w.FetchAndOp(int64(i), target, disp, rma.Replace)
			}
			p.OK(w.Flush(target))
			for i, r := range chain {
				p.Equal("a swap in a chain of swaps", w.Value(r), int64(i-1))
			}
		}
	}
	disp := int(rma.Flag)*n + p.Rank()
	for _, target := range p.targets(rma.Flag) {
		for i := range p.Rounds(100, 10) {
			w.Put(int64(-i), target, disp)
			a := w.Get(target, disp)
			w.Put(int64(i), target, disp)
			b := w.Get(target, disp)
			p.OK(w.Flush(target))
			p.Equal("a Get after the first Put", w.Value(a), int64(-i))
			p.Equal("a Get after the second Put", w.Value(b), int64(i))
		}
	}
	p.Meet()
	p.Close(w)
}

// checkManyResults: MaxPending results are readable after one Flush, whatever ranks
// they came from.
func checkManyResults(p *Probe) {
	w := p.Open(rma.CounterSpec("results", rma.MaxPending))
	if w == nil {
		return
	}
	for i := range rma.MaxPending {
		p.OK(w.PutFlush(int64(1000*p.Rank()+i), p.Rank(), i))
	}
	p.Meet()
	targets := p.targets(rma.Far)
	for range p.Rounds(20, 2) {
		var r [rma.MaxPending]rma.Result
		for i := range r {
			r[i] = w.Get(targets[i%len(targets)], i)
		}
		p.OK(w.FlushAll())
		for i := range r {
			p.Equal("one result of many", w.Value(r[i]), int64(1000*targets[i%len(targets)]+i))
		}
	}
	p.Meet()
	p.Close(w)
}

// checkFlushByTarget: a Flush completes the operations of its target, and leaves
// the others to theirs.
func checkFlushByTarget(p *Probe) {
	n := p.Size()
	w := p.Open(rma.CounterSpec("flushes", n))
	if w == nil {
		return
	}
	targets := p.targets(rma.Far)
	for round := range int64(p.Rounds(50, 5)) {
		results := make([]rma.Result, len(targets))
		for i, target := range targets {
			results[i] = w.FetchAndOp(1, target, p.Rank(), rma.Sum)
		}
		for i := range targets { // in another order than that of issue
			i = (i + 1) % len(targets)
			p.OK(w.Flush(targets[i]))
			p.Equal("the result of a target that was flushed", w.Value(results[i]), round)
		}
		p.OK(w.FlushAll())
		for i := range targets {
			p.Equal("a result after FlushAll", w.Value(results[i]), round)
		}
	}
	p.Meet()
	p.Close(w)
}

// checkPending: one operation more than MaxPending is refused, not done, and leaves
// the handle usable. A window that does the operations at once may take it.
func checkPending(p *Probe) {
	w := p.Open(rma.CounterSpec("pending", p.Size()))
	if w == nil {
		return
	}
	for _, target := range p.targets(rma.Far) {
		w.Put(0, target, p.Rank())
		p.OK(w.Flush(target))
		for range rma.MaxPending + 1 {
			w.Accumulate(1, target, p.Rank(), rma.Sum)
		}
		err := w.Flush(target)
		want := int64(rma.MaxPending + 1)
		if err != nil || w.Caps().FarRanks {
			p.Is("Flush of too many operations", err, rma.ErrPending)
			want = rma.MaxPending
		}
		p.OK(w.Flush(target))
		p.Equal("the operations done", p.Value(w.GetFlush(target, p.Rank())), want)
	}
	p.Meet()
	p.Close(w)
}
