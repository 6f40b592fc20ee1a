package clocksync

import "github.com/rmalock/rmalock/rma"

// The words of the window in which ranks ask and answer.
const (
	question = iota // at rank 0
	answer          // at the rank that asks
)

// ask has the leader of each node ask rank 0 for the time, one node after the other.
// Collective.
func (k *Clock) ask(leaders []int) error {
	c := k.c
	w, err := c.Allocate(rma.DataSpec("clocksync", 2))
	if err != nil {
		return err
	}
	node := c.Node().Index
	switch {
	case c.Rank() == 0:
		err = k.reply(w, leaders)
	case node > 0 && leaders[node] == c.Rank():
		err = k.compare(w)
	}
	if err != nil {
		return err
	}
	return w.Free()
}

// compare is the part of a node's leader: it asks, and keeps the answer of the shortest trip.
func (k *Clock) compare(w *rma.Window) error {
	c, me := k.c, k.c.Rank()
	last, err := w.Await(me, answer, rma.NotEqual(0)) // rank 0 has begun
	if err != nil {
		return err
	}
	shortest := int64(1 << 62)
	for trip := range trips {
		sent := c.Now()
		if err := w.PutFlush(int64(me*trips+trip), 0, question); err != nil {
			return err
		}
		if last, err = w.Await(me, answer, rma.NotEqual(last)); err != nil {
			return err
		}
		if got := c.Now(); got-sent < shortest {
			shortest = got - sent
			k.offset, k.bound, k.at = last-(sent+got)/2, (shortest+1)/2+1, got
		}
	}
	return nil
}

// reply is rank 0's part.
func (k *Clock) reply(w *rma.Window, leaders []int) error {
	last := int64(0)
	now := func() int64 { // another one each time, and not 0
		last = max(k.c.Now(), last+1)
		return last
	}
	for _, r := range leaders[1:] {
		if err := w.PutFlush(now(), r, answer); err != nil {
			return err
		}
		for trip := range trips {
			if _, err := w.Await(0, question, rma.Equal(int64(r*trips+trip))); err != nil {
				return err
			}
			if err := w.PutFlush(now(), r, answer); err != nil {
				return err
			}
		}
	}
	return nil
}
