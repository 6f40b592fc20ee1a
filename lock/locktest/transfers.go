package locktest

import (
	"context"
	"errors"

	"github.com/rmalock/rmalock/lock"
)

// checkTransfers: ranks move money between accounts, with both accounts locked, the
// one with the lower number first. None is made or lost. A rank that may hold but one
// lock at once is excused.
func checkTransfers(p *probe) {
	const accounts, each = 6, 1000
	h := p.fixture(accounts, 0)
	if h == nil {
		return
	}
	n := h.t.Len()
	if p.Rank() == 0 {
		for id := range n {
			p.OK(h.data.PutFlush(each, h.host, 2*id))
		}
	}
	p.Meet()
	for range p.visits() {
		from, to := h.rng.IntN(n), h.rng.IntN(n)
		if from == to || p.Lost() || !h.both(min(from, to), max(from, to)) {
			continue
		}
		amount := 1 + h.rng.Int64N(10)
		a, b := p.Value(h.data.GetFlush(h.host, 2*from)), p.Value(h.data.GetFlush(h.host, 2*to))
		h.stay()
		p.OK(h.data.PutFlush(a-amount, h.host, 2*from))
		p.OK(h.data.PutFlush(b+amount, h.host, 2*to))
		p.OK(h.t.Unlock(from, lock.Exclusive)) // in either order
		p.OK(h.t.Unlock(to, lock.Exclusive))
		h.stay()
	}
	p.Meet()
	total := int64(0)
	for id := range n {
		total += p.Value(h.data.GetFlush(h.host, 2*id))
	}
	p.Equal("the money", total, int64(n)*each)
	p.Meet()
	if p.Rank() == 0 { // what the fixture expects of a lock that no rank visited
		for id := range n {
			p.OK(h.data.PutFlush(0, h.host, 2*id))
		}
	}
	h.close()
}

// both locks two accounts.
func (h *fixture) both(first, second int) bool {
	if err := h.t.Lock(context.Background(), first, lock.Exclusive); err != nil {
		h.p.OK(err)
		return false
	}
	err := h.t.Lock(context.Background(), second, lock.Exclusive)
	if err == nil {
		return true
	}
	if !errors.Is(err, lock.ErrTooManyHeld) {
		h.p.OK(err)
	}
	h.p.OK(h.t.Unlock(first, lock.Exclusive))
	return false
}
