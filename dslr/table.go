package dslr

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// MaxHeld is the number of locks of one Table that a rank may hold or wait for at once. One
// more is lock.ErrTooManyHeld.
const MaxHeld = 64

// A Table is one rank's handle on an array of DSLR locks of 8 bytes each.
type Table struct {
	c       rma.Comm
	w       *rma.Window
	cfg     Config
	layout  *layout
	busy    uint64 // tickets in use, a bit each
	held    int    // and their number
	tickets [MaxHeld]ticket
	random  uint64
}

var _ lock.Checked = (*Table)(nil)

// New opens a table of locks, on the job's memory nodes if it has some. Collective; all ranks
// pass the same Config. Its only collective call is Allocate.
func New(c rma.Comm, cfg Config) (*Table, error) {
	spec := rma.Spec{Name: "dslr"}
	hosts := c.Size()
	if c.MemoryNodes() > 0 {
		spec.Hosts, hosts = rma.MemoryNodes, c.MemoryNodes()
	}
	if err := cfg.validate(hosts); err != nil {
		return nil, err
	}
	l, err := cfg.layout(c.Size())
	if err != nil {
		return nil, err
	}
	spec.Regions = []rma.Region{{
		Count: (cfg.Locks + hosts - 1) / hosts,
		Words: []rma.Word{{Name: "LOCK", Class: rma.Far, Fields: l.fields()}},
	}}
	w, err := c.Allocate(spec)
	if err != nil {
		return nil, err
	}
	t := &Table{c: c, w: w, cfg: cfg, layout: &l}
	if cfg.BackoffLast > 0 { // else ranks are alike
		t.random = uint64(c.Rank())*0x9E3779B97F4A7C15 + 1
	}
	return t, nil
}

// Len is the number of locks.
func (t *Table) Len() int { return t.cfg.Locks }

// Hosts says whether homes are memory nodes or ranks.
func (t *Table) Hosts() rma.Hosts { return t.w.Spec().Hosts }

// Home is the host whose memory holds the lock's word.
func (t *Table) Home(id int) int { return (t.cfg.Home + id) % t.w.Size() }

// Lock takes lock id. Beside the errors of lock.Table it returns lock.ErrOwnerDied, with
// which the caller holds the lock, and lock.ErrGiveWay if the caller holds other locks of
// the table: then a deadlock is likely.
func (t *Table) Lock(ctx context.Context, id int, mode lock.Mode) error {
	return t.acquire(ctx, id, kindOf(mode), 1)
}

// LockFor is Lock with a lease of several slots, for a holder that takes longer: section 5.1.
// slots is at most Config.MaxSlots. Unlock lets it go.
func (t *Table) LockFor(ctx context.Context, id int, mode lock.Mode, slots int) error {
	if slots < 1 || int64(slots) > t.cfg.MaxSlots {
		return fmt.Errorf("dslr: lock %d with %d slots, want 1 to Config.MaxSlots, which is %d: %w", id, slots, t.cfg.MaxSlots, lock.ErrConfig)
	}
	return t.acquire(ctx, id, kindOf(mode), int64(slots))
}

// TryLock takes lock id if it is free, by a Get and a CompareAndSwap.
func (t *Table) TryLock(id int, mode lock.Mode) (bool, error) {
	k, err := t.claim(id, kindOf(mode), 1)
	if err != nil {
		return false, err
	}
	got, _, err := t.try(k)
	if !got {
		t.unclaim(k)
		return false, err
	}
	return true, t.granted(k)
}

// Unlock releases lock id. lock.ErrLeaseLost says that other ranks took the caller for dead: another
// rank may have been in.
func (t *Table) Unlock(id int, mode lock.Mode) error { return t.unlock(id, kindOf(mode)) }

func (t *Table) unlock(id int, kind kind) error {
	k := t.find(id)
	if k == nil || k.kind != kind {
		panic("dslr: unlock of unlocked lock")
	}
	defer t.unclaim(k)
	return t.release(k)
}

// Token is a fencing token of a lock that the caller holds: it is greater than those of all
// exclusive holders before, as long as gen does not wrap: docs/locks/dslr.md. Storage that keeps
// the greatest token seen, and refuses smaller ones, is safe from holders taken for dead.
func (t *Table) Token(id int) int64 {
	k := t.find(id)
	if k == nil {
		panic("dslr: token of unlocked lock")
	}
	l := t.layout
	token := l.gen.Get(k.prev) << (l.max[shared].Bits + 2) // the sum of three counters fits below
	for b := range kinds {
		token += l.max[b].Get(k.prev)
	}
	return token
}

// Free closes the window. Collective where Allocate is. To free a table with a held lock is
// misuse.
func (t *Table) Free() error { return t.w.Free() }

func kindOf(mode lock.Mode) kind {
	if mode == lock.Shared {
		return shared
	}
	return exclusive
}

// claim makes a ticket for a lock.
func (t *Table) claim(id int, kind kind, slots int64) (*ticket, error) {
	if uint(id) >= uint(t.cfg.Locks) {
		panic(fmt.Sprintf("dslr: lock %d of a table of %d", id, t.cfg.Locks))
	}
	if t.find(id) != nil {
		panic("dslr: lock of a lock that this rank holds")
	}
	i := bits.TrailingZeros64(^t.busy)
	if i == MaxHeld {
		return nil, fmt.Errorf("dslr: rank %d holds %d locks: %w", t.c.Rank(), MaxHeld, lock.ErrTooManyHeld)
	}
	t.busy |= 1 << i
	t.held++
	k := &t.tickets[i]
	k.id, k.home, k.disp, k.kind, k.slots = id, t.Home(id), id/t.w.Size(), kind, slots
	return k, nil
}

// unclaim ends the use of a ticket.
func (t *Table) unclaim(k *ticket) {
	for b := t.busy; b != 0; b &= b - 1 {
		if i := bits.TrailingZeros64(b); &t.tickets[i] == k {
			t.busy &^= 1 << i
			t.held--
			*k = ticket{}
			return
		}
	}
}

// find is the ticket with which this rank holds a lock, or nil.
func (t *Table) find(id int) *ticket {
	for b := t.busy; b != 0; b &= b - 1 {
		if k := &t.tickets[bits.TrailingZeros64(b)]; k.id == id {
			return k
		}
	}
	return nil
}

// Abandon forgets a lock that the caller holds, as a client does that dies with it: other ranks
// take it over after two leases. It is for experiments.
func (t *Table) Abandon(id int) {
	k := t.find(id)
	if k == nil {
		panic("dslr: abandon of unlocked lock")
	}
	t.unclaim(k)
}
