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

// A hall is what the check sees of one execution: who is in and who waits.
type hall struct {
	writers, readers int
	in               []bool
	promises         [][]lock.Promise // by rank and mode: what is checked; nil for none
	waits            [][]wait         // by rank: the bounds under which it waits
	patience         []int            // by rank: how often it looks at its context before it gives up
	busy             []bool           // by rank: it is between the begin of an acquire and the end of the release
	alone            []bool           // by rank: nobody else was busy since its try began
	most             int              // the largest of waits, of all executions
	states           bool             // the search compares states
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
func (h *hall) promised(rank int, table lock.Table, scripts [][]visit) {
	promises, ok := table.(lock.Checked)
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
	var bounds []lock.Bound
	if p := h.promises[me]; p != nil {
		bounds = p[mode].Bounds
	}
	last := 0
	for i := range bounds {
		last = max(last, bounds[i].After)
	}
	passed := 0
	var door func()
	door = func() {
		passed++
		for i := range bounds {
			if bounds[i].After == passed {
				h.waits[me] = append(h.waits[me], wait{&bounds[i], 0})
				c.Visible()
			}
		}
		if passed < last {
			c.Doorway(door)
		}
	}
	if last > 0 {
		c.Doorway(door)
	}
}

// gone is called when a rank does not wait any more.
func (h *hall) gone(c *sim.Comm) {
	c.Doorway(nil)
	h.waits[c.World()] = h.waits[c.World()][:0]
	c.Visible()
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
