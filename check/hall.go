package check

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma/sim"
)

// What a check finds.
var (
	ErrExclusion = errors.New("mutual exclusion is violated")
	ErrStarved   = errors.New("a rank is overtaken oftener than the lock says")
	ErrCost      = errors.New("more remote operations than the lock says")
	ErrIdle      = errors.New("the lock is not idle when nobody wants it")
	ErrTry       = errors.New("a try fails although nobody else holds or wants the lock")
	ErrGuarded   = errors.New("what the lock guards is wrong")
)

// A hall is what the check sees of all executions.
type hall struct {
	present
	promises [][]lock.Promise // by rank and mode: what is checked; nil for none
	doors    [][]func()       // by rank and mode: called at a doorway
	most     int              // the largest of waits
	states   bool             // the search compares states
}

// present is what it sees of one execution: who is in and who waits.
type present struct {
	writers, readers int
	in               []bool
	waits            [][]wait // by rank: the bounds under which it waits
	passed           []int    // by rank: doorways of this acquire
	patience         []int    // by rank: how often it looks at its context before it gives up
	busy             []bool   // by rank: it is between the begin of an acquire and the end of the release
	alone            []bool   // by rank: nobody else was busy since its try began
}

// A wait is the waiting of a rank under one bound.
type wait struct {
	*lock.Bound
	entries int // since its doorway
}

func (h *hall) reset() {
	h.writers, h.readers = 0, 0
	for r := range h.waits {
		h.waits[r], h.in[r], h.patience[r] = h.waits[r][:0], false, 0
		h.busy[r], h.alone[r] = false, false
	}
}

// newPresent is that of a number of ranks.
func newPresent(n int) present {
	return present{in: make([]bool, n), waits: make([][]wait, n), passed: make([]int, n), patience: make([]int, n), busy: make([]bool, n), alone: make([]bool, n)}
}

// become makes p the same as q.
func (p *present) become(q *present) {
	p.writers, p.readers = q.writers, q.readers
	copy(p.in, q.in)
	copy(p.passed, q.passed)
	copy(p.patience, q.patience)
	copy(p.busy, q.busy)
	copy(p.alone, q.alone)
	for r := range p.waits {
		p.waits[r] = append(p.waits[r][:0], q.waits[r]...)
	}
}

// Save is of sim.Beside.
func (h *hall) Save(into any) any {
	p, ok := into.(*present)
	if !ok {
		n := newPresent(len(h.in))
		p = &n
	}
	p.become(&h.present)
	return p
}

// Restore is of sim.Beside.
func (h *hall) Restore(from any) { h.become(from.(*present)) }

// begins is called when a rank begins to want the lock.
func (h *hall) begins(c *sim.Comm, try bool) {
	me := c.World()
	h.busy[me], h.alone[me] = true, try
	for r, busy := range h.busy {
		if busy && r != me {
			h.alone[r], h.alone[me] = false, false
		}
	}
	c.Visible()
}

// ends is called when it has let it go, or does not get it.
func (h *hall) ends(c *sim.Comm) {
	h.busy[c.World()], h.alone[c.World()] = false, false
	c.Visible()
}

// promised notes what a rank's table promises; in every execution it is the same. Where
// states are compared, bounds that the visits cannot exceed are left out: they would
// only tell states apart.
func (h *hall) promised(c *sim.Comm, table lock.Table, scripts [][]visit) {
	promises, ok := table.(lock.Checked)
	rank := c.World()
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

// entries is the number of others' visits that count for a bound.
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

// wants is called before a rank queues: it notes the doorways that it passes.
func (h *hall) wants(c *sim.Comm, mode lock.Mode) {
	me := c.World()
	h.passed[me] = 0
	if p := h.promises[me]; p != nil && len(p[mode].Bounds) > 0 {
		c.Doorway(h.doors[me][mode])
	}
}

// door is what happens when a rank passes a doorway.
func (h *hall) door(c *sim.Comm, mode lock.Mode) func() {
	me, bounds := c.World(), h.promises[c.World()][mode].Bounds
	last := 0
	for i := range bounds {
		last = max(last, bounds[i].After)
	}
	return func() {
		h.passed[me]++
		for i := range bounds {
			if bounds[i].After == h.passed[me] {
				h.waits[me] = append(h.waits[me], wait{&bounds[i], 0})
				c.Visible()
			}
		}
		if h.passed[me] < last {
			c.Doorway(h.doors[me][mode])
		}
	}
}

// gone is called when a rank does not wait any more.
func (h *hall) gone(c *sim.Comm) {
	c.Doorway(nil)
	h.waits[c.World()] = h.waits[c.World()][:0]
	c.Visible()
}

// refused is called when a rank does not get the lock.
func (h *hall) refused(c *sim.Comm, v visit, err error) {
	h.gone(c)
	if err == nil && v.try && h.alone[c.World()] {
		c.Fail(fmt.Errorf("%w: TryLock (%v) of rank %d", ErrTry, v.mode, c.World()))
	}
}

// enters is called when a rank has the lock.
func (h *hall) enters(c *sim.Comm, mode lock.Mode) {
	me := c.World()
	h.gone(c)
	c.Mark("enters, %v", mode)
	if mode == lock.Exclusive {
		h.writers++
	} else {
		h.readers++
	}
	h.in[me] = true
	if h.writers > 1 || h.writers == 1 && h.readers > 0 {
		c.Fail(fmt.Errorf("%w: rank %d enters (%v); in are ranks %v, %d of them exclusively", ErrExclusion, me, mode, h.who(), h.writers))
	}
	for r, waits := range h.waits {
		for i := range waits {
			w := &waits[i]
			if w.Of != nil && !w.Of(me, mode) {
				continue
			}
			w.entries++
			h.most = max(h.most, w.entries)
			if w.entries > w.Most {
				c.Fail(fmt.Errorf("%w: rank %d waits, and %d entries came after its atomic operation %d; the lock says at most %d", ErrStarved, r, w.entries, w.After, w.Most))
			}
		}
	}
}

// leaves is called before a rank lets the lock go.
func (h *hall) leaves(c *sim.Comm, mode lock.Mode) {
	c.Visible()
	c.Mark("leaves")
	h.in[c.World()] = false
	if mode == lock.Exclusive {
		h.writers--
	} else {
		h.readers--
	}
}

func (h *hall) who() (out []int) {
	for r, in := range h.in {
		if in {
			out = append(out, r)
		}
	}
	return out
}

// hash is that of what the verdicts depend on beside the ranks' own states.
func (h *hall) hash() uint64 {
	x := uint64(14695981039346656037)
	for r, waits := range h.waits {
		if h.alone[r] {
			x += 1 << 40
		}
		x = (x ^ uint64(r+1)<<20 ^ uint64(h.patience[r])) * 1099511628211
		for i := range waits {
			x = (x ^ uint64(waits[i].After)<<8 ^ uint64(waits[i].entries+1)) * 1099511628211
		}
	}
	return x
}
