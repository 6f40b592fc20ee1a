package rmatest

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

var errorChecks = []check{
	{"Errors/RankAndDisplacement", checkRange},
	{"Errors/Class", checkClass},
	{"Errors/FlushReportsAndClears", checkClears},
	{"Errors/AfterFree", checkFreed},
}

// access is an operation with its place still open.
type access struct {
	name  string
	words int
	do    func(w *rma.Window, target, disp int)
}

var accesses = []access{
	{"Put", 1, func(w *rma.Window, t, d int) { w.Put(1, t, d) }},
	{"Get", 1, func(w *rma.Window, t, d int) { w.Get(t, d) }},
	{"Accumulate(SUM)", 1, func(w *rma.Window, t, d int) { w.Accumulate(1, t, d, rma.Sum) }},
	{"FetchAndOp(REPLACE)", 1, func(w *rma.Window, t, d int) { w.FetchAndOp(1, t, d, rma.Replace) }},
	{"CompareAndSwap", 1, func(w *rma.Window, t, d int) { w.CompareAndSwap(1, 0, t, d) }},
	{"PutBulk", 3, func(w *rma.Window, t, d int) { w.PutBulk([]int64{1, 1, 1}, t, d) }},
	{"GetBulk", 3, func(w *rma.Window, t, d int) { w.GetBulk(make([]int64, 3), t, d) }},
}

// atomic reports whether the access is an update by an atomic.
func (a *access) atomic() bool {
	return strings.HasPrefix(a.name, "Acc") || strings.HasPrefix(a.name, "Fetch") || strings.HasPrefix(a.name, "Comp")
}

// refused checks the error of an access: its sentinel, its fields, and that its
// text names window, operation, rank and displacement.
func (p *Probe) refused(err error, a *access, w *rma.Window, target, disp int, sentinel error) {
	what := fmt.Sprintf("%s at rank %d, displacement %d", a.name, target, disp)
	p.Is(what, err, sentinel)
	var e *rma.AccessError
	if !errors.As(err, &e) {
		p.Failf("%s: error %q is no AccessError", what, fmt.Sprint(err))
		return
	}
	if e.Window != w.Name() || e.Op != a.name || e.Target != target || e.Disp != disp || e.Words != a.words || e.Size != p.Size() {
		p.Failf("%s: error %+v tells of another access", what, *e)
	}
	last := fmt.Sprint("displacement ", disp)
	if a.words > 1 && sentinel == rma.ErrDisp {
		last = fmt.Sprint("displacements ", disp, " to ", disp+a.words-1)
	}
	for _, part := range []string{`"` + w.Name() + `"`, a.name, fmt.Sprint("rank ", target), last} {
		if !strings.Contains(err.Error(), part) {
			p.Failf("%s: error %q does not name %s", what, err, part)
		}
	}
}

func checkRange(p *Probe) {
	const n = 4
	w := p.Open(rma.CounterSpec("range", n))
	if w == nil {
		return
	}
	for i := range accesses {
		a := &accesses[i]
		for _, target := range []int{-1, p.Size(), p.Size() + 1000, -1 << 40} {
			a.do(w, target, 0)
			p.refused(w.FlushAll(), a, w, target, 0, rma.ErrRank)
		}
		for _, target := range p.targets(rma.Far) {
			for _, disp := range []int{-1, n - a.words + 1, n, 1 << 50, -1 << 50} {
				a.do(w, target, disp)
				p.refused(w.Flush(target), a, w, target, disp, rma.ErrDisp)
			}
		}
	}
	w.Peek(n)
	p.Is("Flush after Peek of a word that does not exist", w.FlushAll(), rma.ErrDisp)
	w.PutBulk(nil, 0, 0)
	p.Is("PutBulk of nothing", w.Flush(0), rma.ErrDisp)
	w.GetBulk(make([]int64, n+1), 0, 0)
	p.Is("GetBulk of more words than there are", w.Flush(0), rma.ErrDisp)
	anything := rma.AtLeast(math.MinInt64)
	_, err := w.Await(p.Size(), 0, anything)
	p.Is("Await at a rank that does not exist", err, rma.ErrRank)
	_, err = w.Await(0, n, anything)
	p.Is("Await on a word that does not exist", err, rma.ErrDisp)
	p.Is("Backoff at a rank that does not exist", w.Backoff(-1, 0, 0, 0), rma.ErrRank)
	p.Is("Backoff on a word that does not exist", w.Backoff(0, -1, 0, 0), rma.ErrDisp)
	p.Is("Flush of a rank that does not exist", w.Flush(p.Size()), rma.ErrRank)
	p.Is("Flush of a negative rank", w.Flush(-1), rma.ErrRank)
	p.OK(w.FlushAll())
	p.Meet()
	for disp := range n {
		p.Equal("a word that only refused operations named", p.Value(w.GetFlush(p.Rank(), disp)), 0)
	}
	p.Meet()
	p.Close(w)
}

// checkClass: atomics on Flag words, and changes of Near words of other nodes, are
// refused.
func checkClass(p *Probe) {
	w := p.Open(classes(4))
	if w == nil {
		return
	}
	for turn := range p.Size() { // one after the other: a flag word has one writer at a time
		if turn == p.Rank() {
			classesOn(p, w)
		}
		p.Meet()
	}
	w.Accumulate(1, p.Rank(), 0, rma.NoOp+1)
	p.Is("Accumulate with an unknown Op", w.Flush(p.Rank()), rma.ErrClass)
	_, err := w.FetchAndOpFlush(1, p.Rank(), 0, rma.NoOp+1)
	p.Is("FetchAndOp with an unknown Op", err, rma.ErrClass)
	p.Meet()
	p.Close(w)
}

// classesOn does every operation on a word of every class.
func classesOn(p *Probe, w *rma.Window) {
	for i := range accesses {
		a := &accesses[i]
		for _, target := range p.targets(rma.Far) {
			a.do(w, target, int(rma.Flag)*4)
			if err := w.Flush(target); a.atomic() {
				p.refused(err, a, w, target, int(rma.Flag)*4, rma.ErrClass)
				if err == nil || !strings.Contains(err.Error(), "FLAG[0] (flag)") {
					p.Failf("error %q does not name the word and its class", fmt.Sprint(err))
				}
			} else {
				p.OK(err)
			}
			a.do(w, target, int(rma.Plain)*4)
			if err := w.Flush(target); a.atomic() {
				p.refused(err, a, w, target, int(rma.Plain)*4, rma.ErrClass)
			} else {
				p.OK(err)
			}
			a.do(w, target, int(rma.Near)*4)
			if err := w.Flush(target); !p.Node().Has(target) && a.name != "Get" {
				p.refused(err, a, w, target, int(rma.Near)*4, rma.ErrClass)
			} else {
				p.OK(err)
			}
			a.do(w, target, int(rma.Far)*4)
			p.OK(w.Flush(target))
		}
	}
}

// checkClears: a Flush returns the first error since the last one, the operations
// around the refused one are done, and the next Flush is clean. The blocking forms
// and Await flush or report likewise.
func checkClears(p *Probe) {
	w := p.Open(rma.CounterSpec("clears", p.Size()))
	if w == nil {
		return
	}
	mine := p.Rank()
	for _, target := range p.targets(rma.Far) {
		for _, form := range []struct {
			name  string
			flush func() error
		}{
			{"Flush", func() error { return w.Flush(target) }},
			{"FlushAll", w.FlushAll},
			{"GetFlush", func() error { _, err := w.GetFlush(target, mine); return err }},
			{"PutFlush", func() error { return w.PutFlush(2, target, mine) }},
			{"AccumulateFlush", func() error { return w.AccumulateFlush(0, target, mine, rma.Sum) }},
			{"FetchAndOpFlush", func() error { _, err := w.FetchAndOpFlush(0, target, mine, rma.NoOp); return err }},
			{"CompareAndSwapFlush", func() error { _, err := w.CompareAndSwapFlush(0, 77, target, mine); return err }},
			{"MaskedSwapFlush", func() error { _, err := w.MaskedSwapFlush(0, -1, 77, -1, target, mine); return err }},
			{"Await", func() error { _, err := w.Await(target, mine, rma.AtLeast(0)); return err }},
		} {
			p.OK(w.PutFlush(0, target, mine))
			w.Accumulate(1, target, mine, rma.Sum)
			w.Put(9, p.Size(), 0)   // the first error
			w.Put(9, target, 1<<20) // a later one
			w.Accumulate(1, target, mine, rma.Sum)
			p.Is(form.name+" after an operation that was refused", form.flush(), rma.ErrRank)
			p.OK(w.Flush(target))
			p.Equal("after "+form.name+" the word", p.Value(w.GetFlush(target, mine)), 2)
		}
	}
	p.Meet()
	p.Close(w)
}

// checkFreed: everything on a window that was freed is ErrFreed.
func checkFreed(p *Probe) {
	w, other := p.Open(rma.CounterSpec("freed", 8)), p.Open(rma.CounterSpec("other", 1))
	if w == nil || other == nil {
		return
	}
	p.Close(w)
	for i := range accesses {
		accesses[i].do(w, p.Rank(), 0)
		p.Is(accesses[i].name+" after Free", w.Flush(p.Rank()), rma.ErrFreed)
		accesses[i].do(w, (p.Rank()+1)%p.Size(), 0)
		p.Is(accesses[i].name+" after Free", w.FlushAll(), rma.ErrFreed)
	}
	w.Peek(0)
	p.Is("Flush after Peek after Free", w.FlushAll(), rma.ErrFreed)
	p.Is("PutFlush after Free", w.PutFlush(1, 0, 0), rma.ErrFreed)
	_, err := w.GetFlush(0, 0)
	p.Is("GetFlush after Free", err, rma.ErrFreed)
	_, err = w.FetchAndOpFlush(1, 0, 0, rma.Sum)
	p.Is("FetchAndOpFlush after Free", err, rma.ErrFreed)
	_, err = w.CompareAndSwapFlush(1, 0, 0, 0)
	p.Is("CompareAndSwapFlush after Free", err, rma.ErrFreed)
	_, err = w.MaskedSwapFlush(1, 1, 0, 0, 0, 0)
	p.Is("MaskedSwapFlush after Free", err, rma.ErrFreed)
	_, err = w.Await(0, 0, rma.AtLeast(math.MinInt64))
	p.Is("Await after Free", err, rma.ErrFreed)
	p.Is("Backoff after Free", w.Backoff(0, 0, 0, 0), rma.ErrFreed)
	p.Is("Flush after Free", w.Flush(0), rma.ErrFreed)
	p.Is("FlushAll after Free", w.FlushAll(), rma.ErrFreed)
	p.Is("Free after Free", w.Free(), rma.ErrFreed)
	if w.Name() != "freed" || w.Size() != p.Size() {
		p.Failf("a freed window forgot its name and size")
	}
	p.OK(other.AccumulateFlush(1, 0, 0, rma.Sum))
	p.Meet()
	p.Equal("a word of another window", p.Value(other.GetFlush(0, 0)), int64(p.Size()))
	p.Meet()
	p.Close(other)
}
