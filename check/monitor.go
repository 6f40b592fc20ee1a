package check

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma/sim"
)

// The errors that a check finds.
var (
	ErrExclusion = errors.New("mutual exclusion is violated")
	ErrStarved   = errors.New("a rank is overtaken oftener than the lock says")
	ErrCost      = errors.New("more remote operations than the lock says")
	ErrIdle      = errors.New("the lock is not idle when no rank wants it")
	ErrTry       = errors.New("a try fails although no other rank holds or wants the lock")
	ErrGuarded   = errors.New("what the lock guards is wrong")
	ErrUntold    = errors.New("a rank is not told that a holder died or lost its lease")
	ErrLease     = errors.New("a lease ends before the lock says")
	ErrStalled   = errors.New("ranks wait for a dead one for longer than the lock says")
)

// A monitor follows the executions of a check: promises, and the occupancy of the lock.
type monitor struct {
	occupancy
	promises [][]lock.Promise // by rank and mode: what is checked; nil for none
	doors    [][]func()       // by rank and mode: called at a doorway
	most     int              // the largest of waits
	states   bool             // the search compares states

	calm, prompt bool       // as Plan.Pace and Plan.Prompt say
	mostForced   int        // Plan.Recover
	visiting     []visiting // by rank

	s      *sim.Comm // of a rank
	tickNs int64
}

// occupancy is the state of one execution: the holders and the waiting ranks.
type occupancy struct {
	writers, readers int
	at               []standing // by rank
	waits            []wait
	recovery
}

// standing is where a rank is in its acquire or release.
type standing struct {
	in       bool
	busy     bool // between the begin of an acquire and the end of its release
	alone    bool // no other rank was busy since its try began
	passed   int  // doorways in this acquire
	patience int  // checks of its context until it gives up
}

// A wait is the waiting of a rank under one bound.
type wait struct {
	*lock.Bound
	rank    int
	entries int // since its doorway
}

func (h *monitor) reset() {
	h.writers, h.readers = 0, 0
	h.waits = h.waits[:0]
	clear(h.at)
	clear(h.visiting)
	h.recovery.reset()
}

// newOccupancy is an occupancy for n ranks.
func newOccupancy(n int) occupancy {
	return occupancy{at: make([]standing, n), recovery: newRecovery(n)}
}

// copyFrom makes p the same as q.
func (p *occupancy) copyFrom(q *occupancy) {
	p.writers, p.readers = q.writers, q.readers
	copy(p.at, q.at)
	if q.hazards {
		p.recovery.copyFrom(&q.recovery)
	}
	p.waits = append(p.waits[:0], q.waits...)
}

// Save is of sim.Snapshotter.
func (h *monitor) Save(into any) any {
	p, ok := into.(*occupancy)
	if !ok {
		n := newOccupancy(len(h.at))
		p = &n
	}
	p.copyFrom(&h.occupancy)
	return p
}

// Restore is of sim.Snapshotter.
func (h *monitor) Restore(from any) { h.copyFrom(from.(*occupancy)) }

// begins is called when a rank begins an acquire.
func (h *monitor) begins(c *sim.Comm, try bool) {
	me := c.WorldRank()
	h.at[me].busy, h.at[me].alone = true, try && !h.died
	for r := range h.at {
		if h.at[r].busy && r != me {
			h.at[r].alone, h.at[me].alone = false, false
		}
	}
	c.Visible()
}

// ends is called when the rank has released the lock, or does not get it.
func (h *monitor) ends(c *sim.Comm) {
	h.at[c.WorldRank()].busy, h.at[c.WorldRank()].alone = false, false
	c.Visible()
}

// promised notes the promises of a rank's table, which are the same in every execution.
// Where a search compares states, bounds that the visits cannot exceed are left out: they
// would make states differ for nothing.
func (h *monitor) promised(c *sim.Comm, table lock.Table, scripts [][]visit) {
	promises, ok := table.(lock.Checked)
	rank := c.WorldRank()
	if !ok || h.promises[rank] != nil {
		return
	}
	for _, mode := range []lock.Mode{lock.Exclusive, lock.Shared} {
		p := promises.Promise(mode)
		var bounds []lock.Bound
		if p.Bypass != lock.Unbounded {
			bounds = append(bounds, lock.Bound{After: 1, Most: p.Bypass})
		}
		for _, b := range p.Bounds {
			if !h.states || b.Most < entries(&b, rank, scripts) {
				bounds = append(bounds, b)
			}
		}
		p.Bounds = bounds
		h.promises[rank] = append(h.promises[rank], p)
	}
	for mode := range h.promises[rank] {
		h.doors[rank] = append(h.doors[rank], h.door(c, lock.Mode(mode)))
	}
}

// entries is the number of visits of other ranks that count for a bound.
func entries(b *lock.Bound, rank int, scripts [][]visit) (n int) {
	for r, visits := range scripts {
		for _, v := range visits {
			if r != rank && (b.Of == nil || b.Of(r, v.mode)) {
				n++
			}
		}
	}
	return n
}

// wants is called before a rank queues, and counts the doorways that it passes from then on.
func (h *monitor) wants(c *sim.Comm, mode lock.Mode) {
	me := c.WorldRank()
	h.at[me].passed = 0
	if p := h.promises[me]; p != nil && len(p[mode].Bounds) > 0 {
		c.Doorway(h.doors[me][mode])
	}
}

// door is the function to call when a rank passes a doorway.
func (h *monitor) door(c *sim.Comm, mode lock.Mode) func() {
	me, bounds := c.WorldRank(), h.promises[c.WorldRank()][mode].Bounds
	last := 0
	for i := range bounds {
		last = max(last, bounds[i].After)
	}
	return func() {
		h.at[me].passed++
		for i := range bounds {
			if bounds[i].After == h.at[me].passed {
				h.waits = append(h.waits, wait{&bounds[i], me, 0})
				c.Visible()
			}
		}
		if h.at[me].passed < last {
			c.Doorway(h.doors[me][mode])
		}
	}
}

// stopsWaiting is called when a rank does not wait any more.
func (h *monitor) stopsWaiting(c *sim.Comm) {
	c.Doorway(nil)
	h.forget(c.WorldRank())
	c.Visible()
}

// forget ends the waits of a rank.
func (h *monitor) forget(rank int) {
	h.waits = slices.DeleteFunc(h.waits, func(w wait) bool { return w.rank == rank })
}

// refused is called when a rank does not get the lock.
func (h *monitor) refused(c *sim.Comm, v visit, err error) {
	h.stopsWaiting(c)
	if err == nil && v.try && h.at[c.WorldRank()].alone {
		c.Fail(fmt.Errorf("%w: TryLock (%v) of rank %d", ErrTry, v.mode, c.WorldRank()))
	}
}

// enters is called when a rank has the lock.
// told: it was told that the holder before died, or lost its lease.
func (h *monitor) enters(c *sim.Comm, mode lock.Mode, told bool) {
	me := c.WorldRank()
	h.stopsWaiting(c)
	if told {
		c.Mark("enters, %v, and is told that the holder before died", mode)
	} else {
		c.Mark("enters, %v", mode)
	}
	if h.hazards {
		if told && !h.died {
			h.takenForDead(c, "is told that the holder before died")
		}
		h.takesOver(c, mode, told)
	}
	if mode == lock.Exclusive {
		h.writers++
	} else {
		h.readers++
	}
	h.at[me].in = true
	if h.writers > 1 || h.writers == 1 && h.readers > 0 {
		c.Fail(fmt.Errorf("%w: rank %d enters (%v); in are ranks %v, %d of them exclusively", ErrExclusion, me, mode, h.inside(), h.writers))
	}
	for i := range h.waits {
		w := &h.waits[i]
		if w.Of != nil && !w.Of(me, mode) {
			continue
		}
		w.entries++
		h.most = max(h.most, w.entries)
		if w.entries > w.Most && !h.timed(c, w.rank) {
			c.Fail(fmt.Errorf("%w: rank %d waits, and %d entries came after its atomic operation %d; the lock says at most %d", ErrStarved, w.rank, w.entries, w.After, w.Most))
		}
	}
}

// leaves is called before a rank releases the lock.
func (h *monitor) leaves(c *sim.Comm, mode lock.Mode) {
	c.Visible()
	c.Mark("leaves")
	if !h.at[c.WorldRank()].in { // it has lost its lease
		return
	}
	h.at[c.WorldRank()].in = false
	h.idle = 0
	if mode == lock.Exclusive {
		h.writers--
	} else {
		h.readers--
	}
}

func (h *monitor) inside() (out []int) {
	for r := range h.at {
		if h.at[r].in {
			out = append(out, r)
		}
	}
	return out
}

// scatter spreads a value over 64 bits.
func scatter(x uint64) uint64 {
	x *= 0x9E3779B97F4A7C15
	x ^= x >> 32
	x *= 0xD6E8FEB86659FD93
	return x ^ x>>29
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// hash is the hash of the state outside the ranks that verdicts depend on. It is a sum, since
// the order of waits has no meaning.
func (h *monitor) hash() (x uint64) {
	for r := range h.at {
		if a := &h.at[r]; a.alone || a.patience > 0 {
			x += scatter(uint64(r+1)<<32 ^ uint64(a.patience)<<1 ^ b2u(a.alone))
		}
	}
	for i := range h.waits {
		w := &h.waits[i]
		x += scatter(1<<63 ^ uint64(w.rank)<<48 ^ uint64(w.After)<<32 ^ uint64(w.entries))
	}
	if h.hazards {
		x += h.recovery.hash()
	}
	return x
}

// hashOf is the part of hash that is of a rank, without its number; for Plan.Alike.
func (h *monitor) hashOf(rank int) uint64 {
	a := &h.at[rank]
	x := scatter(uint64(a.patience)<<1 ^ b2u(a.alone))
	for i := range h.waits {
		if w := &h.waits[i]; w.rank == rank {
			x += scatter(1<<63 ^ uint64(w.After)<<32 ^ uint64(w.entries))
		}
	}
	if h.hazards {
		x = h.recovery.add(x, rank)
	}
	return x
}

// hashOfNone is the part of hash that is of no rank.
func (h *monitor) hashOfNone() uint64 {
	if !h.hazards {
		return 0
	}
	return scatter(1<<62 ^ h.recovery.common())
}
