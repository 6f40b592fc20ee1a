package rmatest

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/rma"
)

var atomicChecks = []check{
	{"Atomic/Sum", checkSum},
	{"Atomic/Swap", checkSwap},
	{"Atomic/CompareAndSwap", checkCAS},
	{"Atomic/OneWinner", checkOneWinner},
	{"Atomic/MaskedSwap", checkMaskedSwap},
	{"Atomic/Mixed", checkMixed},
	{"Atomic/NearWords", checkNearAtomics},
	{"Atomic/PlainWords", checkPlainWords},
}

// contend opens a window of counters and calls f for the words of the first and
// the last rank: one is the caller's own for some rank, and both are far for most.
func (p *Probe) contend(n int, f func(w *rma.Window, target int)) {
	w := p.Open(rma.CounterSpec("contended", n))
	if w == nil {
		return
	}
	f(w, 0)
	if p.Size() > 1 {
		f(w, p.Size()-1)
	}
	p.Meet()
	p.Close(w)
}

// checkSum: no addition is lost, and each value is returned to one rank only.
func checkSum(p *Probe) {
	p.contend(1, func(w *rma.Window, target int) {
		rounds := p.Rounds(2000, 25)
		mine := make([]int64, 0, rounds)
		p.Meet()
		for i := range rounds {
			if i%5 == 4 { // two additions that need no answer
				w.Accumulate(3, target, 0, rma.Sum)
				w.Accumulate(-3, target, 0, rma.Sum)
			}
			mine = append(mine, p.Value(w.FetchAndOpFlush(1<<20, target, 0, rma.Sum))>>20)
		}
		p.OK(w.Flush(target))
		if !slices.IsSorted(mine) {
			p.Failf("additions of one rank returned falling values")
		}
		all := p.GatherAll(mine)
		p.Equal("the sum", p.Value(w.GetFlush(target, 0)), int64(rounds*p.Size())<<20)
		p.Meet()
		slices.Sort(all)
		// The pairs of 3 and -3 may be seen half: a few ones that shift does not show.
		for i, v := range all {
			if v != int64(i) {
				p.Failf("the additions returned %d where %d is due: one was lost or seen twice", v, i)
				break
			}
		}
	})
}

// checkSwap: of the tokens that ranks swap into a word none is lost or doubled.
func checkSwap(p *Probe) {
	p.contend(1, func(w *rma.Window, target int) {
		rounds := p.Rounds(2000, 25)
		got := make([]int64, 0, rounds)
		p.Meet()
		for i := range rounds {
			got = append(got, p.Value(w.FetchAndOpFlush(int64(1+p.Rank()*rounds+i), target, 0, rma.Replace)))
		}
		all := p.GatherAll(got)
		all = append(all, p.Value(w.GetFlush(target, 0)))
		p.Meet()
		slices.Sort(all)
		for i, v := range all {
			if v != int64(i) {
				p.Failf("the swaps returned %d where %d is due: a token was lost or doubled", v, i)
				break
			}
		}
	})
}

// checkMaskedSwap: of the tokens that ranks swap into the low half of a word none is lost or
// doubled, and no addition to the high half is, one half being the other's business. A comparison
// that fails leaves both.
func checkMaskedSwap(p *Probe) {
	p.contend(1, func(w *rma.Window, target int) {
		const low, one = int64(1)<<32 - 1, int64(1) << 32
		rounds := p.Rounds(1000, 15)
		got := make([]int64, 0, rounds)
		p.Meet()
		for i := range rounds {
			v := p.Value(w.MaskedSwapFlush(int64(1+p.Rank()*rounds+i), low, 0, 0, target, 0))
			got = append(got, v&low)
			w.Accumulate(one, target, 0, rma.Sum)
			if v := p.Value(w.MaskedSwapFlush(0, -1, -one, ^low, target, 0)); v < 0 {
				p.Failf("the high half is negative: the word is %#x", v)
			}
		}
		all := p.GatherAll(got)
		last := p.Value(w.GetFlush(target, 0))
		p.Equal("the high half", last>>32, int64(rounds*p.Size()))
		all = append(all, last&low)
		p.Meet()
		slices.Sort(all)
		for i, v := range all {
			if v != int64(i) {
				p.Failf("the swaps returned %d where %d is due: a token was lost or doubled", v, i)
				break
			}
		}
	})
}

// checkCAS: a counter that is raised by compare-and-swap loops.
func checkCAS(p *Probe) {
	p.contend(1, func(w *rma.Window, target int) {
		rounds := p.Rounds(1000, 8)
		p.Meet()
		seen := int64(0)
		for range rounds {
			for try := 0; p.err == nil; try++ {
				now := p.Value(w.CompareAndSwapFlush(seen+1, seen, target, 0))
				if now == seen {
					seen++
					break
				}
				if now < seen {
					p.Failf("a compare-and-swap found %d after %d was seen", now, seen)
				}
				seen = now
				p.OK(w.Backoff(target, 0, seen-1, try))
			}
		}
		p.Meet()
		p.Equal("the counter", p.Value(w.GetFlush(target, 0)), int64(rounds*p.Size()))
		p.Meet()
	})
}

// checkOneWinner: of compare-and-swaps that all expect 0 one succeeds, and the
// others learn which.
func checkOneWinner(p *Probe) {
	words := p.Rounds(500, 20)
	p.contend(words, func(w *rma.Window, target int) {
		p.Meet()
		won := make([]int64, words)
		for i := range won {
			if v := p.Value(w.CompareAndSwapFlush(int64(p.Rank()+1), 0, target, i)); v == 0 {
				won[i] = 1
			} else if now := p.Value(w.GetFlush(target, i)); now != v {
				p.Failf("a loser saw %d, the word holds %d", v, now)
			}
		}
		all := p.GatherAll(won)
		for i := range words {
			winners, last := int64(0), -1
			for r := range p.Size() {
				if all[r*words+i] == 1 {
					winners, last = winners+1, r
				}
			}
			p.Equal(fmt.Sprintf("the number of winners of word %d", i), winners, 1)
			p.Equal(fmt.Sprintf("word %d", i), p.Value(w.GetFlush(target, i)), int64(last+1))
		}
		p.Meet()
	})
}

// checkMixed: SUM, REPLACE, NO_OP and CAS on one word are atomic with each other.
// The word is a purse: ranks pay in, look, take a coin, or take all; what is in
// the purse and what they took is what they paid in.
func checkMixed(p *Probe) {
	p.contend(1, func(w *rma.Window, target int) {
		taken := int64(0)
		rounds := p.Rounds(1000, 20)
		p.Meet()
		for i := range rounds {
			w.Accumulate(2, target, 0, rma.Sum)
			p.OK(w.Flush(target))
			switch (i + p.Rank()) % 4 {
			case 0:
				taken += p.Value(w.FetchAndOpFlush(0, target, 0, rma.Replace))
			case 1:
				have := p.Value(w.FetchAndOpFlush(0, target, 0, rma.NoOp))
				if p.Value(w.CompareAndSwapFlush(have-1, have, target, 0)) == have {
					taken++
				}
			case 2:
				p.Value(w.FetchAndOpFlush(-1, target, 0, rma.Sum))
				taken++
			case 3:
				if have := p.Value(w.GetFlush(target, 0)); have > int64(2*rounds*p.Size()) {
					p.Failf("the purse holds %d, more than is ever paid in", have)
				}
			}
		}
		p.Meet()
		paid, out := int64(2*rounds*p.Size()), int64(0)
		for _, v := range p.Gather(taken) {
			out += v
		}
		p.Equal("the purse", p.Value(w.GetFlush(target, 0)), paid-out)
		p.Meet()
	})
}

// checkNearAtomics: sums by the ranks of one node on a Near word of each of them, while
// others read it, who take nothing away.
func checkNearAtomics(p *Probe) {
	w := p.Open(classes(1))
	if w == nil {
		return
	}
	rounds := p.Rounds(500, 200)
	p.Meet()
	for i := range rounds {
		target := p.Node().Ranks[i%len(p.Node().Ranks)]
		p.Value(w.FetchAndOpFlush(1, target, int(rma.Near), rma.Sum))
		if i%8 == 0 {
			p.Value(w.GetFlush((p.Rank()+i/8)%p.Size(), int(rma.Near)))
		}
	}
	p.Meet()
	sum := int64(0)
	for _, target := range p.Node().Ranks {
		sum += p.Value(w.GetFlush(target, int(rma.Near)))
	}
	p.Equal("the sum of a node", sum, int64(rounds*len(p.Node().Ranks)))
	p.Meet()
	p.Close(w)
}

// checkPlainWords: of the values that ranks write at once into a plain word one stays, whole,
// and no reader sees another.
func checkPlainWords(p *Probe) {
	w := p.Open(classes(1))
	if w == nil {
		return
	}
	const disp = int(rma.Plain)
	value := func(rank int) int64 { return int64(rank+1) * 0x0101010101010101 }
	written := func(v int64) bool {
		return v == 0 || v%0x0101010101010101 == 0 && v/0x0101010101010101 <= int64(p.Size())
	}
	for range p.Rounds(300, 20) {
		for _, target := range []int{0, p.Size() - 1} {
			p.OK(w.PutFlush(value(p.Rank()), target, disp))
			if v := p.Value(w.GetFlush(target, disp)); v == 0 || !written(v) {
				p.Failf("the plain word at rank %d is %#x, which no rank wrote", target, v)
			}
		}
	}
	p.Meet()
	for _, target := range []int{0, p.Size() - 1} {
		last := p.Value(w.GetFlush(target, disp))
		for r, v := range p.Gather(last) {
			p.Equal(fmt.Sprintf("the plain word at rank %d, as rank %d sees it at the end,", target, r), v, last)
		}
	}
	p.Meet()
	p.Close(w)
}
