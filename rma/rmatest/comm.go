package rmatest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

var commChecks = []check{
	{"RankAndSize", checkRank},
	{"Node", checkNode},
	{"Clock", checkClock},
	{"Barrier", checkBarrier},
	{"Allgather", checkAllgather},
	{"AllgatherBytes", checkBytes},
	{"Agree", checkAgree},
}

func checkRank(p *Probe) {
	if p.Size() < 1 || p.Rank() < 0 || p.Rank() >= p.Size() {
		p.Failf("rank %d of %d", p.Rank(), p.Size())
	}
	for r, got := range p.Gather(int64(p.Rank())) {
		p.Equal(fmt.Sprintf("what rank %d says of its rank", r), got, int64(r))
	}
	for r, got := range p.Gather(int64(p.Size())) {
		p.Equal(fmt.Sprintf("the size that rank %d sees", r), got, int64(p.Size()))
	}
	if p.Describe() == "" {
		p.Failf("Describe is empty")
	}
}

// checkNode: the nodes are a partition, numbered by their lowest ranks, and
// node-mates agree on it.
func checkNode(p *Probe) {
	n := p.Node()
	if !slices.IsSorted(n.Ranks) || !slices.Contains(n.Ranks, p.Rank()) {
		p.Failf("node of rank %d has ranks %v, want them ascending with the rank among them", p.Rank(), n.Ranks)
	}
	index := p.Gather(int64(n.Index))
	for r, count := range p.Gather(int64(n.Count)) {
		p.Equal(fmt.Sprintf("the number of nodes that rank %d sees", r), count, int64(n.Count))
	}
	seen := int64(0)
	for r, i := range index {
		if i > seen || i < 0 {
			p.Failf("rank %d is on node %d, and nodes up to %d came before: not ordered by lowest rank", r, i, seen-1)
		}
		seen = max(seen, i+1)
		mate := i == int64(n.Index)
		if n.Has(r) != mate || slices.Contains(n.Ranks, r) != mate {
			p.Failf("rank %d is on node %d, rank %d on node %d, but Has says %v and Ranks %v", p.Rank(), n.Index, r, i, n.Has(r), n.Ranks)
		}
	}
	p.Equal("the number of nodes", int64(n.Count), seen)
	if n.Has(-1) || n.Has(p.Size()) {
		p.Failf("the node has a rank that does not exist")
	}
}

func checkClock(p *Probe) {
	last := p.Now()
	for range 1000 {
		now := p.Now()
		if now < last {
			p.Failf("the clock went back from %d to %d", last, now)
		}
		last = now
	}
	for _, ns := range []int64{0, 1, 1000, 200_000, 2_000_000} {
		before := p.Now()
		p.Sleep(ns)
		if slept := p.Now() - before; slept < ns {
			p.Failf("Sleep(%d) took %d ns", ns, slept)
		}
	}
	p.Sleep(-1)
	p.mates()
}

// mates: the clock is one for the ranks of a node: a message does not come before it was sent,
// to a microsecond.
func (p *Probe) mates() {
	w := p.Open(rma.DataSpec("times", p.Size()))
	if w == nil {
		return
	}
	for range p.Rounds(20, 5) {
		sent := p.Now()
		for _, mate := range p.Node().Ranks {
			p.OK(w.PutFlush(sent, mate, p.Rank()))
		}
		for _, mate := range p.Node().Ranks {
			got := p.Value(w.Await(p.Rank(), mate, rma.NotEqual(0)))
			if now := p.Now(); now < got-1000 {
				p.Failf("what rank %d sent at %d is here at %d", mate, got, now)
			}
		}
		p.Meet()
		for _, mate := range p.Node().Ranks {
			p.OK(w.PutFlush(0, p.Rank(), mate))
		}
		p.Meet()
	}
	p.Close(w)
}

// checkBarrier: no rank leaves before all have entered.
func checkBarrier(p *Probe) {
	w := p.Open(rma.CounterSpec("arrivals", 1))
	if w == nil {
		return
	}
	for round := range p.Rounds(200, 20) {
		p.OK(w.AccumulateFlush(1, 0, 0, rma.Sum))
		p.Meet()
		if got, want := p.Value(w.GetFlush(0, 0)), int64((round+1)*p.Size()); got < want {
			p.Failf("round %d: %d arrivals after the Barrier, want at least %d", round, got, want)
		}
	}
	p.Meet()
	p.Close(w)
}

func checkAllgather(p *Probe) {
	for _, n := range []int{1, 0, 3, 17, 1000} {
		mine := make([]int64, n)
		for i := range mine {
			mine[i] = int64(p.Rank()*10_000+i) << 20
		}
		all := p.GatherAll(mine)
		clear(mine) // what was passed is the caller's again
		for i, v := range all {
			p.Equal(fmt.Sprintf("word %d of %d", i, n), v, int64(i/n*10_000+i%n)<<20)
		}
	}
}

func checkBytes(p *Probe) {
	for _, size := range []func(rank int) int{
		func(r int) int { return r * 7 % 23 },
		func(r int) int { return 0 },
		func(r int) int { return 8 * (r % 3) },
		func(r int) int { return 1 },
		func(r int) int { return 5000 * (1 - min(r, 1)) },
	} {
		all, err := rma.AllgatherBytes(p.Comm, pattern(p.Rank(), size(p.Rank())))
		p.OK(err)
		if len(all) != p.Size() {
			p.Failf("AllgatherBytes returned %d strings for %d ranks", len(all), p.Size())
			continue
		}
		for r, b := range all {
			if !bytes.Equal(b, pattern(r, size(r))) {
				p.Failf("the %d bytes of rank %d arrived as %q", size(r), r, b)
			}
		}
	}
}

// pattern is a byte string that tells ranks and places apart.
func pattern(rank, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rank*31 + i*7 + 1)
	}
	return b
}

// checkAgree: one failure reaches all, the lowest rank's text the ones without.
func checkAgree(p *Probe) {
	p.OK(rma.Agree(p.Comm, nil))
	mine := errors.New("error of rank " + fmt.Sprint(p.Rank()))
	for _, fails := range []func(r int) bool{
		func(r int) bool { return r == 0 },
		func(r int) bool { return r == p.Size()-1 },
		func(r int) bool { return r%2 == 0 },
		func(int) bool { return true },
	} {
		lowest := 0
		for !fails(lowest) {
			lowest++
		}
		if fails(p.Rank()) {
			if err := rma.Agree(p.Comm, mine); err != mine {
				p.Failf("Agree with an error of one's own returned %q", fmt.Sprint(err))
			}
			continue
		}
		err := rma.Agree(p.Comm, nil)
		if !errors.Is(err, rma.ErrPeer) || !strings.Contains(err.Error(), "error of rank "+fmt.Sprint(lowest)) {
			p.Failf("rank %d failed, Agree told %q", lowest, fmt.Sprint(err))
		}
	}
	p.OK(rma.Agree(p.Comm, nil))
}
