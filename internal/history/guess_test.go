package history

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// act is a call, or what ends one.
type act struct {
	rank    int
	returns bool
	c       Call
	a       Answer
}

// draw draws the next acts of some clients, of which some may not come back from a call. Half of the
// answers are those of a map, so that histories that can be explained are common.
func draw(rng *rand.Rand, n int, busy []*Call, m map[int64]value) (out []act) {
	for range n {
		r := rng.IntN(len(busy))
		c := busy[r]
		if c == nil {
			c = &Call{What: "gsdiua"[rng.IntN(6)], Key: int64(rng.IntN(2)), Value: int64(1 + rng.IntN(3))}
			busy[r] = c
			out = append(out, act{rank: r, c: *c})
			continue
		}
		busy[r] = nil
		if rng.IntN(12) == 0 { // it dies, and has a successor
			continue
		}
		was := m[c.Key]
		a := Answer{}
		switch c.What {
		case Get:
			a = Answer{Value: was.is, OK: was.there}
		case Delete, Update:
			a.OK = was.there
		case Insert:
			a.OK = !was.there
		case Add:
			a.Value = was.is
		}
		if rng.IntN(4) == 0 && c.What != Get {
			a.OK = !a.OK
		}
		if rng.IntN(8) == 0 && (c.What == Set || c.What == Insert || c.What == Add) {
			a = Answer{Full: true}
		}
		if _, next := step(was, *c, a); rng.IntN(8) > 0 {
			m[c.Key] = next
		}
		out = append(out, act{rank: r, returns: true, c: *c, a: a})
	}
	return out
}

func (h *Record) do(acts []act) {
	for _, x := range acts {
		if x.returns {
			h.Returned(x.rank, x.a)
		} else {
			h.Called(x.rank, x.c)
		}
	}
}

// TestGuesses: a history can be explained if there is a way for each key, and histories with one
// frontier can go on in the same ways.
func TestGuesses(t *testing.T) {
	const clients = 3
	rng := rand.New(rand.NewPCG(1, 2))
	type past struct{ acts []act }
	type future struct {
		acts []act
		good bool
	}
	n := 40_000
	if testing.Short() {
		n = 10_000
	}
	pasts, good, same, futures := map[string]past{}, 0, 0, map[uint64]future{}
	for range n {
		busy, m := make([]*Call, clients), map[int64]value{0: {7, true}}
		h := New(clients, Call{What: Set, Key: 0, Value: 7})
		h.Compare()
		h.Reset()
		before := draw(rng, 1+rng.IntN(8), busy, m)
		h.do(before)
		at := fmt.Sprint(h.Hash()) // and which clients wait: a search knows of each whether it has died
		for _, c := range busy {
			at += fmt.Sprint(" ", c != nil)
		}
		after := draw(rng, rng.IntN(8), busy, m)
		h.do(after)
		ways := true
		for i := range h.now.keys {
			ways = ways && len(h.now.keys[i].may) > 0
		}
		verdict := linearizable(h.did, h.time)
		if verdict != ways {
			t.Fatalf("%+v: it can be explained: %v, and has ways: %v", append(before, after...), verdict, ways)
		}
		if verdict {
			good++
		}
		if p, ok := pasts[at]; ok { // the same future after another past
			same++
			h := New(clients, Call{What: Set, Key: 0, Value: 7})
			h.Reset()
			h.do(p.acts)
			h.do(after)
			if linearizable(h.did, h.time) != verdict {
				t.Fatalf("after %+v and after %+v another verdict on %+v", p.acts, before, after)
			}
		} else {
			pasts[at] = past{before}
		}
		if f, ok := futures[h.Hash()]; ok && f.good != verdict {
			t.Fatalf("one frontier, two verdicts: %+v and %+v", f.acts, append(before, after...))
		}
		futures[h.Hash()] = future{append(before, after...), verdict}
	}
	t.Logf("%d histories, %d of them good; %d had the frontier of another one in the middle", n, good, same)
	if good < n/10 || good > n*9/10 || same < n/10 {
		t.Error("too few of a kind")
	}
}
