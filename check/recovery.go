package check

import (
	"fmt"
	"slices"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma/sim"
)

// recovery is the part of occupancy that is about deaths and leases.
type recovery struct {
	hazards bool        // ranks may die, or lose their leases
	mode    []lock.Mode // by rank: of a holder
	until   []int64     // by rank: of a holder, when its lease may end
	began   []int64     // by rank: when it began its last acquire
	revoked []bool      // by rank: another rank has the lock that it took; its Unlock must say so
	writes  []progress  // by rank: how far a holder is with the guarded words

	died      bool // some rank has
	owed      bool // the next holder must be told that the one before died or lost its lease
	disturbed bool // some rank died, or lost its lease
	dirty     bool // a rank that is out of the lock may still write what it guards
	deaths    int
	forced    int // forced ticks since a rank died first
	idle      int // forced ticks since a rank entered, left or died
}

// progress is how far a holder is with what the lock guards.
type progress uint8

const (
	mayWrite progress = iota
	writing           // operations are pending
	written
)

func newRecovery(n int) recovery {
	return recovery{mode: make([]lock.Mode, n), until: make([]int64, n), began: make([]int64, n), revoked: make([]bool, n), writes: make([]progress, n)}
}

func (p *recovery) reset() {
	clear(p.mode)
	clear(p.until)
	clear(p.began)
	clear(p.revoked)
	clear(p.writes)
	*p = recovery{hazards: p.hazards, mode: p.mode, until: p.until, began: p.began, revoked: p.revoked, writes: p.writes}
}

func (p *recovery) copyFrom(q *recovery) {
	was := *p
	*p = *q
	p.mode, p.until, p.began, p.revoked, p.writes = was.mode, was.until, was.began, was.revoked, was.writes
	copy(p.mode, q.mode)
	copy(p.until, q.until)
	copy(p.began, q.began)
	copy(p.revoked, q.revoked)
	copy(p.writes, q.writes)
}

func (p *recovery) hash() uint64 {
	x := basis
	for r := range p.until {
		x = p.add(x, r)
	}
	return add(x, p.common())
}

const basis = uint64(14695981039346656037)

func add(x, v uint64) uint64 {
	x = (x ^ v) * 1099511628211
	return x ^ x>>31
}

// add adds to a hash what is of one rank.
func (p *recovery) add(x uint64, r int) uint64 {
	return add(add(add(x, uint64(p.until[r])), uint64(p.began[r])), uint64(p.writes[r])<<1|bit(p.revoked[r]))
}

// common is what is of no rank.
func (p *recovery) common() uint64 {
	return uint64(p.deaths)<<32 ^ uint64(p.forced)<<16 ^ uint64(p.idle)<<4 | bit(p.died)<<3 | bit(p.owed)<<2 | bit(p.disturbed)<<1 | bit(p.dirty)
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// takesOver is called when a rank enters. Holders whose leases may have ended are out then.
func (h *monitor) takesOver(c *sim.Comm, mode lock.Mode, told bool) {
	me := c.WorldRank()
	for r := range h.at {
		if h.at[r].in && (mode == lock.Exclusive || h.mode[r] == lock.Exclusive) && h.until[r] > 0 && c.Clock() >= h.until[r] {
			c.Mark("takes the lock from rank %d", r)
			h.revoked[r] = true
			h.out(r)
		}
	}
	if h.owed && !told {
		c.Fail(fmt.Errorf("%w: rank %d enters (%v)", ErrUntold, me, mode))
	}
	h.owed, h.idle = false, 0
	h.mode[me], h.until[me], h.writes[me] = mode, 0, mayWrite
	if p := h.promises[me]; p != nil && p[mode].Lease > 0 {
		h.until[me] = c.Clock() + p[mode].Lease
	}
}

// timed reports whether leases may have ended since a rank began its acquire: what a lock with
// leases promises of costs and of the order of entries holds where no time passes.
func (h *monitor) timed(c *sim.Comm, r int) bool {
	return h.hazards && h.promises[r] != nil && h.promises[r][lock.Exclusive].Lease > 0 && h.began[r] != c.Clock()
}

// bounded reports whether a rank's waits have bounds.
func (h *monitor) bounded(rank int) bool {
	return slices.ContainsFunc(h.promises[rank], func(p lock.Promise) bool { return len(p.Bounds) > 0 })
}

// out removes a holder that has died or lost its lease.
func (h *monitor) out(r int) {
	h.at[r].in = false
	if h.mode[r] == lock.Exclusive {
		h.writers--
		h.owed = true
		if h.writes[r] == writing || h.revoked[r] && h.writes[r] != written {
			h.dirty = true
		}
	} else {
		h.readers--
	}
	h.disturbed = true
	h.until[r] = 0
}

// released is called when the Unlock of a rank has returned; lost: it says that the lease ran out.
func (h *monitor) released(c *sim.Comm, lost bool) {
	me := c.WorldRank()
	switch {
	case h.revoked[me] && !lost:
		c.Fail(fmt.Errorf("%w: rank %d held the lock when another rank entered, and its Unlock does not say so", ErrUntold, me))
	case lost && !h.revoked[me] && (h.until[me] == 0 || c.Clock() < h.until[me]):
		c.Fail(fmt.Errorf("%w: rank %d is told at %d ns that it lost its lease, which ends at %d", ErrLease, me, c.Clock(), h.until[me]))
	case lost:
		c.Mark("is told that it lost its lease")
		h.takenForDead(c, "is told that it lost its lease")
		h.disturbed = true
	}
	h.revoked[me], h.until[me] = false, 0
	c.Visible()
}

// unequal is called when a holder finds that the guarded words differ. One that has lost its
// lease may find anything.
func (h *monitor) unequal(c *sim.Comm, mode lock.Mode, x, y int64) {
	if !h.dirty && !h.revoked[c.WorldRank()] {
		c.Fail(fmt.Errorf("%w: rank %d (%v) read %d and %d, which every writer makes equal", ErrGuarded, c.WorldRank(), mode, x, y))
	}
}

// Died is of sim.Watcher.
func (h *monitor) Died(r int) {
	h.died, h.disturbed, h.idle = true, true, 0
	h.deaths++
	h.visiting[r] = visiting{}
	h.forget(r)
	h.at[r].patience, h.revoked[r] = 0, false
	for i := range h.at {
		h.at[i].alone = false
	}
	if h.at[r].in {
		h.out(r)
	}
	h.until[r], h.began[r], h.writes[r] = 0, 0, mayWrite
	h.s.Visible()
}

// Joined is of sim.Watcher.
func (h *monitor) Joined(r int) {
	h.at[r].busy = false
	h.s.Visible()
}

// Ticked is of sim.Watcher. Where nothing else can happen, no rank is in, and one has died, all
// that want the lock wait for the dead one.
func (h *monitor) Ticked(forced bool) {
	if forced && h.prompt && !h.died {
		h.s.Fail(ErrWaits)
	}
	if forced && h.died && h.mostForced > 0 {
		h.s.Visible()
		if h.forced++; h.forced > h.mostForced*h.deaths {
			h.s.Fail(fmt.Errorf("%w: %d ticks, at most %d a death", ErrStalled, h.forced, h.mostForced))
		}
	}
	most := int64(0)
	for _, p := range h.promises {
		if p != nil {
			most = p[lock.Exclusive].Recovery
		}
	}
	if !forced || !h.died || most == 0 || h.writers+h.readers > 0 {
		return
	}
	h.idle++
	h.s.Visible()
	if int64(h.idle)*h.tickNs > most {
		h.s.Fail(fmt.Errorf("%w: %d ns, at most %d are promised", ErrStalled, int64(h.idle)*h.tickNs, most))
	}
}
