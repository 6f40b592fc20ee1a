package alock

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// MaxHeld is the number of locks of one Table that a rank may hold or wait for at once: its
// descriptors of each kind. One more is lock.ErrTooManyHeld.
const MaxHeld = 8

// The regions of the window, and their words: a cache line of 64 bytes for the descriptors of a
// slot and for a lock, as Figure 3 has it.
const (
	descriptors = 0
	locks       = 1

	localDescriptor  = 0 // displacement in the line: LocalDescriptor of Algorithm 1
	remoteDescriptor = 4 // RemoteDescriptor
	budget           = 0 // displacement in a descriptor
	next             = 1

	remoteTail    = 0 // displacement in the line of a lock
	remoteReaders = 1
	localTail     = 2
	localReaders  = 3
	victim        = 4

	lineWords = 8
)

const (
	null    = 0  // no descriptor
	waiting = -1 // BUDGET of a descriptor whose owner waits
)

// A cohort is the ranks that reach a lock in the same way (section 5). As a number it is the
// value of VICTIM.
type cohort int64

const (
	local  cohort = 1 // by the CPU: the ranks of the home's node
	remote cohort = 2 // through the transport: all others
)

// words are the displacements, in a lock's line and in a slot's, that a cohort uses.
type words struct {
	tail, other int // the cohort's TAIL, and the other one's
	descriptor  int
	readers     int
}

var wordsOf = [...]words{
	local:  {localTail, remoteTail, localDescriptor, localReaders},
	remote: {remoteTail, localTail, remoteDescriptor, remoteReaders},
}

// line is the words of a cache line; the displacements without a name are padding.
func line(named map[int]rma.Word) []rma.Word {
	out := make([]rma.Word, lineWords)
	for i := range out {
		out[i] = rma.Word{Name: "padding", Class: rma.Flag}
		if w, ok := named[i]; ok {
			out[i] = w
		}
	}
	return out
}

func (c *Config) spec(ranks int) rma.Spec {
	words := map[int]rma.Word{
		remoteTail: {Name: "R_TAIL", Class: rma.Far},
		localTail:  {Name: "L_TAIL", Class: rma.Near},
		victim:     {Name: "VICTIM", Class: rma.Plain},
	}
	if c.Shared {
		words[remoteReaders] = rma.Word{Name: "R_READERS", Class: rma.Far}
		words[localReaders] = rma.Word{Name: "L_READERS", Class: rma.Near}
	}
	return rma.Spec{Name: c.name(), Regions: []rma.Region{
		descriptors: {Count: MaxHeld, Words: line(map[int]rma.Word{
			localDescriptor + budget:  {Name: "L_BUDGET", Class: rma.Near},
			localDescriptor + next:    {Name: "L_NEXT", Class: rma.Near},
			remoteDescriptor + budget: {Name: "R_BUDGET", Class: rma.Flag},
			remoteDescriptor + next:   {Name: "R_NEXT", Class: rma.Flag},
		})},
		locks: {Count: (c.Locks + ranks - 1) / ranks, Words: line(words)},
	}}
}

// A Table is one rank's handle on an array of ALocks of 64 bytes each.
type Table struct {
	w      *rma.Window
	rank   int
	size   int
	cfg    Config
	budget [remote + 1]int64
	node   []int64 // of each rank
	busy   uint8   // slots in use, a bit each
	slots  [MaxHeld]slot
	last   place // of the lock that was used last
}

// A slot is the use of a pair of descriptors for a lock.
type slot struct {
	id     int
	mode   lock.Mode
	budget int64 // of the holder: hand-overs left, and this holder
}

var _ lock.Checked = (*Table)(nil)

// New opens a table of locks. Collective; all ranks pass the same Config.
func New(c rma.Comm, cfg Config) (*Table, error) {
	if err := cfg.validate(c.Size()); err != nil {
		return nil, err
	}
	nodes, err := c.Allgather([]int64{int64(c.Node().Index)})
	if err != nil {
		return nil, err
	}
	w, err := c.Allocate(cfg.spec(c.Size()))
	if err != nil {
		return nil, err
	}
	t := &Table{w: w, rank: c.Rank(), size: c.Size(), cfg: cfg, node: nodes}
	t.budget[local], t.budget[remote] = int64(cfg.LocalBudget), int64(cfg.RemoteBudget)
	t.last = t.find(0)
	return t, nil
}

// Len is the number of locks.
func (t *Table) Len() int { return t.cfg.Locks }

// Home is the rank whose memory holds the lock. The ranks of its node are the local cohort.
func (t *Table) Home(id int) int { return (t.cfg.Home + id) % t.size }

// Lock takes lock id. Without a shared mode it is exclusive whatever the mode.
func (t *Table) Lock(ctx context.Context, id int, mode lock.Mode) error {
	p := t.place(id)
	if t.shares(mode) {
		return p.rlock(ctx)
	}
	return p.lock(ctx)
}

// TryLock takes lock id if it is free, or shared by others and mode is lock.Shared.
func (t *Table) TryLock(id int, mode lock.Mode) (bool, error) {
	p := t.place(id)
	if t.shares(mode) {
		return p.tryRLock()
	}
	return p.tryLock()
}

// Unlock hands lock id on, or ends the sharing.
func (t *Table) Unlock(id int, mode lock.Mode) error {
	p := t.place(id)
	if t.shares(mode) {
		return p.runlock()
	}
	return p.unlock()
}

// shares reports whether a mode is shared here.
func (t *Table) shares(mode lock.Mode) bool { return t.cfg.Shared && mode == lock.Shared }

// Mutex is a handle on lock id, a lock.RWMutex if the table has a shared mode. Handles on the same
// lock are interchangeable.
func (t *Table) Mutex(id int) lock.Mutex {
	t.place(id) // is there
	if t.cfg.Shared {
		return &RWMutex{Mutex{t, id}}
	}
	return &Mutex{t, id}
}

// A Mutex is a handle on one lock of a table.
type Mutex struct {
	t  *Table
	id int
}

var _ lock.Mutex = (*Mutex)(nil)

// Lock takes the lock. With a context that can end it polls TryLock; see package lock.
func (m *Mutex) Lock(ctx context.Context) error { return m.t.place(m.id).lock(ctx) }

// TryLock takes the lock if it is free. The paper has none.
func (m *Mutex) TryLock() (bool, error) { return m.t.place(m.id).tryLock() }

// Unlock passes the lock to the successor in its cohort, or leaves it free.
func (m *Mutex) Unlock() error { return m.t.place(m.id).unlock() }

// A place is where a lock is, as this rank reaches it.
type place struct {
	t    *Table
	id   int
	home int
	at   int // displacement of the lock's line
	own  cohort
	words
	ownTail, otherTail rma.Pointer
}

// place is the place of a lock. It is valid until the next call.
func (t *Table) place(id int) *place {
	if id != t.last.id {
		t.last = t.find(id)
	}
	return &t.last
}

// find finds out where a lock is, and which cohort this rank belongs to: the test of A2:2 and
// A2:9 with the node in place of the pointer's first four bits.
func (t *Table) find(id int) place {
	if uint(id) >= uint(t.cfg.Locks) {
		panic(fmt.Sprintf("alock: lock %d of a table of %d", id, t.cfg.Locks))
	}
	p := place{t: t, id: id, home: t.Home(id), at: (MaxHeld + id/t.size) * lineWords, own: remote}
	if t.node[p.home] == t.node[t.rank] {
		p.own = local
	}
	p.words = wordsOf[p.own]
	p.ownTail, p.otherTail = t.w.Pointer(p.home, p.at+p.tail), t.w.Pointer(p.home, p.at+p.other)
	return p
}

// Free closes the window. Collective. To free a table with a held lock is misuse.
func (t *Table) Free() error {
	err := t.w.Free()
	t.last = t.find(t.last.id) // to have ErrFreed from it
	return err
}

// named is what TAIL and NEXT hold for a slot of a rank; placed is its rank and the displacement
// of its line.
func named(rank, k int) int64 { return int64(1 + rank*MaxHeld + k) }

func placed(descriptor int64) (rank, disp int) {
	i := int(descriptor - 1)
	return i / MaxHeld, i % MaxHeld * lineWords
}

// claim finds a slot for a lock.
func (t *Table) claim(id int, mode lock.Mode) (int, error) {
	if t.busy == 0 { // the usual case: it is the only one
		t.busy, t.slots[0].id, t.slots[0].mode = 1, id, mode
		return 0, nil
	}
	return t.claimNext(id, mode)
}

// claimNext is claim for a rank that holds a lock.
func (t *Table) claimNext(id int, mode lock.Mode) (int, error) {
	if t.slotOf(id) >= 0 {
		panic("alock: lock of a lock that this rank holds")
	}
	k := bits.TrailingZeros8(^t.busy)
	if k == MaxHeld {
		return 0, fmt.Errorf("alock: rank %d holds %d locks: %w", t.rank, MaxHeld, lock.ErrTooManyHeld)
	}
	t.busy |= 1 << k
	t.slots[k].id, t.slots[k].mode = id, mode
	return k, nil
}

// unclaim ends the use of a slot.
func (t *Table) unclaim(k int) { t.busy &^= 1 << k }

// claimed is the slot of a lock that this rank holds in a mode.
func (t *Table) claimed(id int, mode lock.Mode) int {
	if k := t.slotOf(id); k >= 0 && t.slots[k].mode == mode {
		return k
	}
	panic("alock: unlock of unlocked lock")
}

// slotOf is the slot with which this rank holds a lock, or -1.
func (t *Table) slotOf(id int) int {
	if t.busy == 1 && t.slots[0].id == id { // the usual case
		return 0
	}
	for b := t.busy; b != 0; b &= b - 1 {
		if k := bits.TrailingZeros8(b); t.slots[k].id == id {
			return k
		}
	}
	return -1
}
