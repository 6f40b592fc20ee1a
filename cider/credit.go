package cider

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// The clients of a node, in groups of Policy.Share, share Algorithm 1's two maps. They are a table
// of words in the memory of one client, which all change by CompareAndSwap. A key has one place;
// one that is not there has no credits and no record.

// The fields of a HEAT: 4 bytes of them for a key, as in section 4.6, and a part of its hash.
var (
	record = rma.Field{Name: "retries", Shift: 0, Bits: 12}
	credit = rma.Field{Name: "credit", Shift: 12, Bits: 20}
	hotKey = rma.Field{Name: "key", Shift: 32, Bits: 32}
)

const (
	maxRecord = 1<<12 - 1
	maxCredit = 1<<20 - 1
)

// A heat is a client's way to what its node knows of hot keys.
type heat struct {
	w       *rma.Window
	at      int // the client whose memory has the table
	keys    int
	initial int64 // INITIAL_CREDIT
	hot     int64 // HOTNESS_THRESHOLD
	factor  int64 // AIMD_FACTOR
}

// newHeat opens the tables. Collective.
func newHeat(c rma.Comm, p *Policy) (*heat, error) {
	h := &heat{keys: p.Hot, initial: int64(p.InitialCredit), hot: int64(p.HotnessThreshold), factor: int64(p.Factor)}
	h.at = leader(c, p.Share)
	var err error
	h.w, err = c.Allocate(rma.Spec{Name: "cider heat", Regions: []rma.Region{
		{Count: h.keys, Words: []rma.Word{{Name: "HEAT", Class: rma.Near, Fields: []rma.Field{hotKey, credit, record}}}},
	}})
	if err != nil {
		return nil, fmt.Errorf("cider: %w", err)
	}
	return h, nil
}

// leader is the first of the caller's group among the clients of its node; 0 is one group.
func leader(c rma.Comm, group int) int {
	mates := c.Node().Ranks
	if group == 0 {
		group = len(mates)
	}
	for i, r := range mates {
		if r == c.Rank() {
			return mates[i/group*group]
		}
	}
	return c.Rank()
}

// change replaces a key's word by what next makes of it, and returns the word before. mark is the
// key's part of a word that is its own. A node-mate that has died keeps its table to itself.
func (h *heat) change(key uint64, next func(v, mark int64) int64) (before, mark int64, err error) {
	hash := key * 0x9E3779B97F4A7C15
	at, mark := int(hash>>32%uint64(h.keys)), int64(hash&(1<<32-1))|1
	v, err := h.w.GetFlush(h.at, at)
	for err == nil {
		to := next(v, mark)
		if to == v {
			return v, mark, nil
		}
		found, cerr := h.w.CompareAndSwapFlush(to, v, h.at, at)
		if cerr != nil || found == v {
			return v, mark, unlessGone(cerr)
		}
		v = found
	}
	return 0, mark, unlessGone(err)
}

// takeCredit takes one of a key's credits, and reports whether there was one (A1:2 A1:3).
func (h *heat) takeCredit(key uint64) (bool, error) {
	v, mark, err := h.change(key, func(v, mark int64) int64 {
		if hotKey.Get(v) != mark || credit.Get(v) == 0 {
			return v
		}
		return v - credit.One()
	})
	return hotKey.Get(v) == mark && credit.Get(v) > 0, err
}

// cooled notes the retries of an optimistic update (A1:20 to A1:22). A key takes the place of one
// without credits, and takes a credit from one that has some, by which it ages.
func (h *heat) cooled(key uint64, retries int) error {
	n := min(int64(retries), maxRecord)
	_, _, err := h.change(key, func(v, mark int64) int64 {
		switch {
		case hotKey.Get(v) == mark:
		case n == 0:
			return v
		case credit.Get(v) > 0:
			return v - credit.One()
		default:
			v = hotKey.With(0, mark)
		}
		if n >= h.hot && record.Get(v) >= h.hot {
			v = credit.With(v, min(credit.Get(v)+h.initial, maxCredit))
		}
		return record.With(v, n)
	})
	return err
}

// batched notes whether an executor stood for more than itself (A1:13 to A1:16).
func (h *heat) batched(key uint64, combined bool) error {
	_, _, err := h.change(key, func(v, mark int64) int64 {
		switch {
		case hotKey.Get(v) != mark:
			return v
		case combined:
			return credit.With(v, min(credit.Get(v)+2, maxCredit))
		}
		return credit.With(v, credit.Get(v)/h.factor)
	})
	return err
}
