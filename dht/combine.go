package dht

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Combining of Adds under locks, with Config.Combine: the idea of
//
//	J. Shen et al.: CIDER: Boosting Memory-Disaggregated Key-Value Stores with Pessimistic
//	Synchronization (cider), section 4.2,
//
// for the ranks of a node and for sums. Ranks of a node that add to one key at once queue
// up in node memory, as in an MCS lock. The first adds for those behind it: it takes the
// volume's lock once, adds the sum, and tells each of the others the value that it would have
// found. All of them are in their calls when the sum takes effect, so it stands for their
// Adds one after the other.
//
// In cider the last of the queue writes, since the last writer wins. A sum needs all of
// them, so the first one walks along the queue: by loads, where the queue is in node memory.
// Between nodes each step would be a round trip.
//
// Without locks an Add is a read and a fetch-and-add, which never fails. What cider saves, the
// CompareAndSwaps that fail, is not there: combined, a node of 32 ranks makes half as
// many Adds in virtual time as without.

// Words of the window: the mail of a rank, and tails of queues.
const (
	mailKey = iota
	mailAddend
	mailNext
	mailStatus
	mailResult
	mailWords

	queues = 64 // tails at each rank; a key belongs to one of them on each node
)

// Values of mailStatus.
const (
	waits  = iota
	leads  // the rank is the first of its queue
	added  // another rank has added for it; mailResult is its answer
	alone  // the rank adds by itself
	failed // the rank that added for it had an error
)

// A combiner is a rank's part in the queues of its node.
type combiner struct {
	w      *rma.Window
	me     int
	mates  []int   // the ranks of the node
	others []other // whose Adds this rank has taken on
}

// An other is a rank that waits for another one's Add.
type other struct {
	rank   int
	addend int64
}

// newCombiner opens the queues. Collective.
func newCombiner(c rma.Comm) (*combiner, error) {
	word := func(name string) rma.Word { return rma.Word{Name: name, Class: rma.Near} }
	w, err := c.Allocate(rma.Spec{Name: "dht combining", Regions: []rma.Region{
		{Count: 1, Words: []rma.Word{
			mailKey: word("KEY"), mailAddend: word("ADDEND"), mailNext: word("NEXT"),
			mailStatus: word("STATUS"), mailResult: word("RESULT"),
		}},
		{Count: queues, Words: []rma.Word{word("TAIL")}},
	}})
	if err != nil {
		return nil, err
	}
	mates := c.Node().Ranks
	return &combiner{w: w, me: c.Rank(), mates: mates, others: make([]other, 0, len(mates))}, nil
}

// queue is where the TAIL of a key's queue is: 0, or 1 + the last rank.
func (c *combiner) queue(key int64) (rank, disp int) {
	h := mix(mix(uint64(key))) // not the hash that has chosen volume and slot
	n := uint64(len(c.mates))
	return c.mates[h%n], mailWords + int(h/n%queues)
}

// combine is Add through the queue of the node.
func (t *Table) combine(key, addend int64) (int64, error) {
	c := t.combiner
	w, me := c.w, c.me
	host, disp := c.queue(key)
	w.Put(key, me, mailKey)
	w.Put(addend, me, mailAddend)
	w.Put(0, me, mailNext)
	w.Put(waits, me, mailStatus)
	if err := w.Flush(me); err != nil { // before the swap shows them
		return 0, err
	}
	before, err := w.FetchAndOpFlush(int64(me+1), host, disp, rma.Replace)
	if err != nil {
		return 0, err
	}
	if before == 0 {
		return t.lead(host, disp, key, addend)
	}
	if err := w.PutFlush(int64(me+1), int(before-1), mailNext); err != nil {
		return 0, err
	}
	status, err := w.Await(me, mailStatus, rma.NotEqual(waits))
	if err != nil {
		return 0, err
	}
	switch status {
	case added:
		return w.GetFlush(me, mailResult)
	case alone:
		return t.lockedAdd(key, addend)
	case failed:
		return 0, fmt.Errorf("dht: a rank of this node that added to key %d for this one had an error; whether the addend is in is not known: %w", key, rma.ErrPeer)
	}
	return t.lead(host, disp, key, addend)
}

// lead adds for the rank and for those behind it with the same key.
func (t *Table) lead(host, disp int, key, addend int64) (int64, error) {
	c := t.combiner
	c.others = c.others[:0]
	before, err := t.addForAll(key, addend)
	status := int64(added)
	switch {
	case errors.Is(err, ErrFull): // nothing has changed
		status = alone
	case err != nil:
		status = failed
	}
	// The queue goes on before the last of the others is answered: then its mail is its own
	// again.
	if err := errors.Join(c.handOver(host, disp), c.answer(status, before+addend)); err != nil {
		return 0, err
	}
	return before, err
}

// addForAll adds under the lock. It takes on others when it has the lock: while it waited for
// that, more have come.
func (t *Table) addForAll(key, addend int64) (before int64, err error) {
	v, slot := t.locate(key)
	if err := t.cfg.Locks.Lock(context.Background(), v, lock.Exclusive); err != nil {
		return 0, err
	}
	sum, err := t.combiner.gather(key, addend)
	if err == nil {
		before, _, err = t.critical(v, slot, key, sum, true)
	}
	return before, t.unlock(v, lock.Exclusive, err)
}

// gather takes on the Adds of the ranks behind that have linked themselves, up to one to
// another key, and returns the sum. A rank is in the queue once, which bounds it.
func (c *combiner) gather(key, sum int64) (int64, error) {
	w := c.w
	next, err := w.GetFlush(c.me, mailNext)
	for err == nil && next != 0 {
		at := int(next - 1)
		k, addend, n := w.Get(at, mailKey), w.Get(at, mailAddend), w.Get(at, mailNext)
		if err = w.Flush(at); err != nil || w.Value(k) != key {
			break
		}
		c.others = append(c.others, other{at, w.Value(addend)})
		sum += w.Value(addend)
		next = w.Value(n)
	}
	return sum, err
}

// handOver makes the rank behind those that were taken on the first, or leaves the queue empty.
func (c *combiner) handOver(host, disp int) error {
	last := c.me
	if n := len(c.others); n > 0 {
		last = c.others[n-1].rank
	}
	next, err := c.w.GetFlush(last, mailNext)
	if err != nil {
		return err
	}
	if next == 0 {
		tail, err := c.w.CompareAndSwapFlush(0, int64(last+1), host, disp)
		if err != nil || tail == int64(last+1) {
			return err
		}
		if next, err = c.w.Await(last, mailNext, rma.NotEqual(0)); err != nil {
			return err
		}
	}
	return c.w.PutFlush(leads, int(next-1), mailStatus)
}

// answer tells the others; the first of them finds the value at.
func (c *combiner) answer(status, at int64) error {
	for _, o := range c.others {
		c.w.Put(at, o.rank, mailResult)
		at += o.addend
	}
	if err := c.w.FlushAll(); err != nil { // before STATUS shows it
		return err
	}
	for _, o := range c.others {
		c.w.Put(status, o.rank, mailStatus)
	}
	return c.w.FlushAll()
}
