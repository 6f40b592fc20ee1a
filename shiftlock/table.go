package shiftlock

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// A Table is one rank's handle on an array of ShiftLocks of 8 bytes each.
type Table struct {
	c      rma.Comm
	w      *rma.Window // LOCK of each lock
	box    *rma.Window // NEXT and TURN of each rank's slots
	cfg    Config
	gen    int
	busy   uint16 // places in use, a bit each
	held   int    // and their number
	places [MaxHeld]place
}

// A place is what a rank knows of a lock that it holds or waits for.
type place struct {
	id, home, disp int
	me             name // in tail
	mode           lock.Mode
	word           int64 // LOCK as the rank saw it last
	cons           int64 // of a writer: those since the mode was flipped, this one with them
	// since is a moment at which the rank did not hold the lock yet. Other ranks reset the lock
	// three leases later at the earliest.
	since int64
	told  bool // a writer before may have died in the lock
	used  bool // this use of the mailboxes, or the one before, may have left messages in them
}

var _ lock.Checked = (*Table)(nil)

// New opens a table of locks, on the job's memory nodes if it has some. Collective; all ranks
// pass the same Config. Its only collective calls are two of Allocate.
func New(c rma.Comm, cfg Config) (*Table, error) {
	spec := rma.Spec{Name: "shiftlock"}
	hosts := c.Size()
	if c.MemoryNodes() > 0 {
		spec.Hosts, hosts = rma.MemoryNodes, c.MemoryNodes()
	}
	if err := cfg.validate(hosts, c.Size()); err != nil {
		return nil, err
	}
	spec.Regions = []rma.Region{{
		Count: (cfg.Locks + hosts - 1) / hosts,
		Words: []rma.Word{{Name: "LOCK", Class: rma.Far, Fields: fields()}},
	}}
	w, err := c.Allocate(spec)
	if err != nil {
		return nil, err
	}
	box, err := c.Allocate(rma.Spec{Name: "shiftlock mail", Regions: []rma.Region{{Count: MaxHeld, Words: []rma.Word{
		{Name: "NEXT", Class: rma.Plain, Fields: []rma.Field{forLock, forEra, forGen, there, from}},
		{Name: "TURN", Class: rma.Plain, Fields: []rma.Field{forLock, forEra, forGen, there, drains, age, cons, target}},
	}}}})
	if err != nil {
		return nil, err
	}
	t := &Table{c: c, w: w, box: box, cfg: cfg, gen: rma.Generation(c)}
	for i := range t.places {
		t.places[i].used = t.gen > 0 // by a predecessor
	}
	return t, nil
}

// Len is the number of locks.
func (t *Table) Len() int { return t.cfg.Locks }

// Hosts says whether homes are memory nodes or ranks.
func (t *Table) Hosts() rma.Hosts { return t.w.Spec().Hosts }

// Home is the host whose memory holds the lock's word.
func (t *Table) Home(id int) int { return (t.cfg.Home + id) % t.w.Size() }

// Lock takes lock id. Beside the errors of lock.Table it returns lock.ErrOwnerDied, with which the
// caller holds the lock. It returns lock.ErrGiveWay if the lock was reset while the caller waited
// and held other locks of the table: then a deadlock is likely. The package comment has the cost,
// Promise the fairness.
func (t *Table) Lock(ctx context.Context, id int, m lock.Mode) error {
	p, err := t.claim(id, m)
	if err != nil {
		return err
	}
	if ctx.Done() != nil {
		return t.poll(ctx, p)
	}
	for {
		in, err := t.enter(p)
		if in {
			return t.granted(p)
		}
		if err == nil && t.held > 1 {
			err = fmt.Errorf("shiftlock: lock %d: another rank waits too long: %w", id, lock.ErrGiveWay)
		}
		if err != nil {
			t.unclaim(p)
			return err
		}
	}
}

// enter queues as the mode says. It reports false if the lock was reset meanwhile, or the rank
// was too slow: then it begins again.
func (t *Table) enter(p *place) (bool, error) {
	if p.mode == lock.Shared {
		return t.share(p)
	}
	return t.queue(p)
}

// granted is the end of an acquire that succeeds.
func (t *Table) granted(p *place) error {
	if p.told {
		return fmt.Errorf("shiftlock: lock %d: %w", p.id, lock.ErrOwnerDied)
	}
	return nil
}

// TryLock takes lock id if it is free, by a Get and a CompareAndSwap.
func (t *Table) TryLock(id int, m lock.Mode) (bool, error) {
	p, err := t.claim(id, m)
	if err != nil {
		return false, err
	}
	got, _, err := t.try(p)
	if !got {
		t.unclaim(p)
		return false, err
	}
	return true, t.granted(p)
}

// Unlock releases lock id. lock.ErrLeaseLost says that other ranks took the caller for dead.
func (t *Table) Unlock(id int, m lock.Mode) error {
	p := t.find(id)
	if p == nil || p.mode != m {
		panic("shiftlock: unlock of unlocked lock")
	}
	defer t.unclaim(p)
	if m == lock.Shared {
		return t.leave(p)
	}
	return t.release(p)
}

// Free closes the windows. Collective where Allocate is. To free a table with a held lock is
// misuse.
func (t *Table) Free() error { return errors.Join(t.w.Free(), t.box.Free()) }

// claim makes a place for a lock.
func (t *Table) claim(id int, m lock.Mode) (*place, error) {
	if uint(id) >= uint(t.cfg.Locks) {
		panic(fmt.Sprintf("shiftlock: lock %d of a table of %d", id, t.cfg.Locks))
	}
	if t.find(id) != nil {
		panic("shiftlock: lock of a lock that this rank holds")
	}
	i := bits.TrailingZeros16(^t.busy)
	if i == MaxHeld {
		return nil, fmt.Errorf("shiftlock: rank %d holds %d locks: %w", t.c.Rank(), MaxHeld, lock.ErrTooManyHeld)
	}
	t.busy |= 1 << i
	t.held++
	p := &t.places[i]
	*p = place{id: id, home: t.Home(id), disp: id / t.w.Size(), me: nameOf(t.gen, t.c.Rank(), i), mode: m, used: p.used}
	return p, nil
}

// unclaim ends the use of a place.
func (t *Table) unclaim(p *place) {
	t.busy &^= 1 << p.me.slot()
	t.held--
	*p = place{used: p.used}
}

// find is the place of this rank at a lock, or nil.
func (t *Table) find(id int) *place {
	for b := t.busy; b != 0; b &= b - 1 {
		if p := &t.places[bits.TrailingZeros16(b)]; p.id == id {
			return p
		}
	}
	return nil
}
