package rmatest

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

var orderChecks = []check{
	{"Order/MessagePassing", checkMessages},
	{"Order/IndependentWindows", checkIndependent},
	{"Order/PublishByAtomic", checkPublish},
	{"Order/Fence", checkFence},
	{"Order/FencesInARow", checkFences},
	{"Order/Dekker", checkDekker},
	{"Order/Coherence", checkCoherence},
	{"Order/Locked", checkLocked},
}

// peers are the ranks that a rank passes messages to: all in a small job, else the
// next few; sources are the ranks that pass messages to it.
func (p *Probe) peers() (peers, sources []int) {
	for d := 1; d < p.Size() && d <= 8; d++ {
		peers = append(peers, (p.Rank()+d)%p.Size())
		sources = append(sources, (p.Rank()-d+p.Size())%p.Size())
	}
	return peers, sources
}

// messages passes numbered messages between all pairs at the same time: data is
// flushed before the flag is raised, so a rank that sees the flag sees the data or newer.
// The data of the pair lies at host(from, to) in the window of data, the flag at
// the receiver, both at the displacement that disp gives the pair.
func (p *Probe) messages(data, flags *rma.Window, dataBase, flagBase int, host func(from, to int) int) {
	const n = 3 // words of data
	at := func(from, to int) int { return from*p.Size() + to }
	peers, sources := p.peers()
	spec := flags.Spec()
	for i := int64(1); i <= int64(p.Rounds(2000, 60)/p.Size()+1); i++ {
		for _, to := range peers {
			h, pair := host(p.Rank(), to), at(p.Rank(), to)
			data.PutBulk([]int64{i, -i}, h, dataBase+n*pair)
			data.Put(i, h, dataBase+n*pair+2)
			p.OK(data.Flush(h))
			p.OK(flags.PutFlush(i, to, flagBase+pair))
		}
		for _, from := range sources {
			h, pair := host(from, p.Rank()), at(from, p.Rank())
			flag := p.Value(flags.Await(p.Rank(), flagBase+pair, rma.AtLeast(i)))
			var got [2]int64
			data.GetBulk(got[:], h, dataBase+n*pair)
			r := data.Get(h, dataBase+n*pair+2)
			p.OK(data.Flush(h))
			if got[0] < flag || -got[1] < flag || data.Value(r) < flag {
				p.Failf("rank %d saw %s %d of rank %d and data %v, %d at rank %d, older than the flag",
					p.Rank(), spec.WordName(flagBase+pair), flag, from, got, data.Value(r), h)
			}
		}
	}
	p.Meet()
}

// hosts are where the data of a pair may lie: at the receiver, the sender or a third
// rank.
func (p *Probe) hosts() []func(from, to int) int {
	return []func(from, to int) int{
		func(_, to int) int { return to },
		func(from, _ int) int { return from },
		func(from, to int) int { return (from + to) % p.Size() },
	}
}

func checkMessages(p *Probe) {
	pairs := p.Size() * p.Size()
	for _, host := range p.hosts() {
		for _, c := range []rma.Class{rma.Flag, rma.Far} {
			w := p.Open(classes(4 * pairs))
			if w == nil {
				return
			}
			base := int(c) * 4 * pairs
			p.messages(w, w, base, base+3*pairs, host)
			p.Close(w)
		}
	}
}

// checkIndependent: as checkMessages, with data and flags in two windows.
func checkIndependent(p *Probe) {
	pairs := p.Size() * p.Size()
	data, flags := p.Open(rma.DataSpec("data", 3*pairs)), p.Open(rma.CounterSpec("flags", pairs))
	if data == nil || flags == nil {
		return
	}
	for _, host := range p.hosts() {
		p.messages(data, flags, 0, 0, host)
		everything := make([]int64, 3*pairs) // anew for the next host
		data.PutBulk(everything, p.Rank(), 0)
		flags.PutBulk(everything[:pairs], p.Rank(), 0)
		p.OK(data.Flush(p.Rank()))
		p.OK(flags.Flush(p.Rank()))
		p.Meet()
	}
	p.Close(data)
	p.Close(flags)
}

// checkPublish: what was flushed before an atomic is visible to the rank whose own
// atomic sees its effect. All ranks push on one list; each looks at what was
// pushed before it.
func checkPublish(p *Probe) {
	rounds := p.Rounds(1000, 12)
	w := p.Open(rma.Spec{Name: "publish", Regions: []rma.Region{
		{Count: 1, Words: []rma.Word{{Name: "HEAD", Class: rma.Far}}},
		{Count: rounds, Words: []rma.Word{{Name: "ITEM", Class: rma.Flag}}},
	}})
	if w == nil {
		return
	}
	seen := int64(0)
	for i := range rounds {
		me := int64(1 + p.Rank()*rounds + i)
		p.OK(w.PutFlush(me, p.Rank(), 1+i))
		before := seen
		if i%2 == 0 {
			before = p.Value(w.FetchAndOpFlush(me, 0, 0, rma.Replace))
		} else {
			for try := 0; p.err == nil; try++ {
				got := p.Value(w.CompareAndSwapFlush(me, before, 0, 0))
				if got == before {
					break
				}
				p.OK(w.Backoff(0, 0, before, try))
				before = got
			}
		}
		seen = me
		if before > 0 {
			host, item := int(before-1)/rounds, int(before-1)%rounds
			p.Equal(fmt.Sprintf("the item that rank %d published", host), p.Value(w.GetFlush(host, 1+item)), before)
		}
	}
	p.Meet()
	p.Close(w)
}

// checkDekker: two ranks raise a word each and read the other's. After a Flush every
// rank sees the effect, so at least one of the two sees the other's.
func checkDekker(p *Probe) {
	w := p.Open(classes(1))
	if w == nil {
		return
	}
	rounds := p.Rounds(2000, 15)
	first, second := p.Rank()&^1, p.Rank()|1
	for _, way := range []struct {
		name  string
		disp  int
		raise func(i int64, at int) error
		look  func(at int) (int64, error)
	}{
		{"Put and Get of Flag words", int(rma.Flag),
			func(i int64, at int) error { return w.PutFlush(i, at, int(rma.Flag)) },
			func(at int) (int64, error) { return w.GetFlush(at, int(rma.Flag)) }},
		{"Put and Get of Far words", int(rma.Far),
			func(i int64, at int) error { return w.PutFlush(i, at, int(rma.Far)) },
			func(at int) (int64, error) { return w.GetFlush(at, int(rma.Far)) }},
		{"swap and read by atomics", int(rma.Far),
			func(i int64, at int) error { _, err := w.FetchAndOpFlush(i, at, int(rma.Far), rma.Replace); return err },
			func(at int) (int64, error) { return w.FetchAndOpFlush(0, at, int(rma.Far), rma.NoOp) }},
	} {
		for _, crossed := range []bool{false, true} { // one's own word at the other rank
			missed := make([]int64, rounds)
			mine, his := p.Rank(), p.Rank()^1
			if crossed {
				mine, his = his, mine
			}
			p.Meet()
			for i := range rounds {
				if second < p.Size() {
					p.OK(way.raise(int64(i+1), mine))
					if p.Value(way.look(his)) < int64(i+1) {
						missed[i] = 1
					}
				}
				if i%8 == 7 {
					p.Meet() // keeps the two together
				}
			}
			all := p.GatherAll(missed)
			if second < p.Size() {
				for i := range rounds {
					if all[first*rounds+i]+all[second*rounds+i] == 2 {
						p.Failf("%s, round %d: ranks %d and %d both missed the other", way.name, i, first, second)
					}
				}
			}
			p.OK(w.PutFlush(0, p.Rank(), way.disp))
			p.Meet()
		}
	}
	p.Close(w)
}

// checkCoherence: a word that one rank counts up never goes back for anybody.
func checkCoherence(p *Probe) {
	w := p.Open(classes(1))
	if w == nil {
		return
	}
	rounds := int64(p.Rounds(2000, 60))
	for _, c := range []rma.Class{rma.Flag, rma.Far} {
		for _, host := range []int{0, p.Size() - 1, p.Size() / 2} {
			p.Meet()
			if p.Rank() == 0 {
				for i := int64(1); i <= rounds; i++ {
					p.OK(w.PutFlush(i, host, int(c)))
				}
			}
			for last := int64(0); last < rounds && p.err == nil; {
				v := p.Value(w.GetFlush(host, int(c)))
				if v < last || v > rounds {
					p.Failf("a %v word at rank %d went from %d to %d", c, host, last, v)
				}
				if v == last {
					p.OK(w.Backoff(host, int(c), v, 0))
				}
				last = v
			}
			p.Meet()
			if p.Rank() == 0 {
				p.OK(w.PutFlush(0, host, int(c)))
			}
		}
	}
	p.Meet()
	p.Close(w)
}

// checkLocked: plain data guarded by the simplest lock there is, a swap of a Far
// word, with the data in another window.
func checkLocked(p *Probe) {
	l, data := p.Open(rma.CounterSpec("lock", 1)), p.Open(rma.DataSpec("guarded", 2))
	if l == nil || data == nil {
		return
	}
	rounds, host := p.Rounds(100, 5), p.Size()-1
	for range rounds {
		for try := 0; p.err == nil && p.Value(l.FetchAndOpFlush(1, 0, 0, rma.Replace)) != 0; try++ {
			p.OK(l.Backoff(0, 0, 1, try))
		}
		a, b := p.Value(data.GetFlush(host, 0)), p.Value(data.GetFlush(host, 1))
		if a != b {
			p.Failf("guarded words are %d and %d, want them equal", a, b)
		}
		data.Put(a+1, host, 0)
		data.Put(b+1, host, 1)
		p.OK(data.Flush(host))
		p.OK(l.PutFlush(0, 0, 0))
	}
	p.Meet()
	p.Equal("the guarded count", p.Value(data.GetFlush(host, 0)), int64(rounds*p.Size()))
	p.Meet()
	p.Close(l)
	p.Close(data)
}
