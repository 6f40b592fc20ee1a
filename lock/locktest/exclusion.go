package locktest

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

var exclusionChecks = []check{
	{"Exclusion/OneLock", checkOneLock},
	{"Exclusion/ReadersAndWriters", checkReadersAndWriters},
	{"Exclusion/AllWays", checkAllWays},
	{"Exclusion/History", checkHistory},
	{"Exclusion/Transfers", checkTransfers},
}

// visits is the number of visits of a rank.
func (p *probe) visits() int { return max(10, p.Rounds(min(200, 1600/p.Size()), 12)/p.slow) }

// checkOneLock: all ranks through one lock, each as often as it wants, so that
// no rank is forgotten.
func checkOneLock(p *probe) {
	for _, home := range []int{0, p.Size() - 1} {
		h := p.fixture(1, home)
		if h == nil {
			return
		}
		for i := range p.visits() {
			if !h.visit(0, lock.Exclusive, way(i%2)) {
				p.Failf("Lock without a deadline did not let rank %d in", p.Rank())
			}
		}
		p.Equal("the visits", h.visits[0], int64(p.visits()))
		h.close()
	}
}

// checkReadersAndWriters: one lock in both modes, with few writers and with many.
func checkReadersAndWriters(p *probe) {
	for _, writers := range []int{2, 25, 60} { // in a hundred
		h := p.fixture(1, 0)
		if h == nil {
			return
		}
		for i := range p.visits() {
			mode := lock.Shared
			if h.rng.IntN(100) < writers {
				mode = lock.Exclusive
			}
			h.visit(0, mode, way(i%2))
		}
		h.close()
	}
}

// checkAllWays: a few locks, in all modes and ways.
func checkAllWays(p *probe) {
	h := p.fixture(3, p.Size()/2)
	if h == nil {
		return
	}
	for range p.visits() {
		modes := p.modes()
		h.visit(h.rng.IntN(h.t.Len()), modes[h.rng.IntN(len(modes))], way(h.rng.IntN(int(ways))))
	}
	h.close()
}

// An entry is one line of a history: a visitor came in or is about to go.
type entry struct{ ticket, id, change int64 }

// checkHistory: visitors draw a ticket from one counter when they are in and before
// they go. Played back in the order of tickets, no two visitors are in a lock at
// once that exclude each other.
func checkHistory(p *probe) {
	h := p.fixture(2, 0)
	if h == nil {
		return
	}
	tickets := p.Open(rma.CounterSpec("tickets", 1))
	if tickets == nil {
		return
	}
	n := p.visits()
	mine := make([]int64, 0, 6*n)
	note := func(id int, change int64) {
		mine = append(mine, 1+p.Value(tickets.FetchAndOpFlush(1, 0, 0, rma.Sum)), int64(id), change)
	}
	for range n {
		modes := p.modes()
		id, mode, w := h.rng.IntN(h.t.Len()), modes[h.rng.IntN(len(modes))], way(h.rng.IntN(int(ways)))
		change := int64(1)
		if mode == lock.Exclusive {
			change = writer
		}
		if h.enter(id, mode, w) {
			note(id, change)
			h.stay()
			note(id, -change)
			h.leave(id, mode, w)
		}
		h.stay()
	}
	history := make([]entry, 0, 2*n*p.Size())
	all := p.GatherAll(mine[:cap(mine)]) // visits that were refused are zeros
	for ; len(all) > 0; all = all[3:] {
		if all[0] != 0 {
			history = append(history, entry{all[0], all[1], all[2]})
		}
	}
	p.admissible(history, h.t.Len())
	p.Meet()
	p.Close(tickets)
	h.close()
}

// admissible plays a history back.
func (p *probe) admissible(history []entry, locks int) {
	slices.SortFunc(history, func(a, b entry) int { return int(a.ticket - b.ticket) })
	inside := make([]int64, locks)
	for i, e := range history {
		if e.ticket != int64(i+1) {
			p.Failf("ticket %d is missing", i+1)
			return
		}
		if in := inside[e.id]; e.change == writer && in != 0 || e.change == 1 && in >= writer {
			p.Failf("line %d of the history: a visitor came into lock %d where %d exclusive and %d shared ones were", i+1, e.id, in/writer, in%writer)
		}
		inside[e.id] += e.change
	}
	for id, in := range inside {
		p.Equal(fmt.Sprintf("at the end of the history, the ranks in lock %d", id), in, 0)
	}
}
