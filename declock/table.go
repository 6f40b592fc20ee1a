package declock

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// A Table is one rank's handle on an array of DecLock's locks.
type Table struct {
	c          rma.Comm
	locks      *rma.Window // headers and queues
	ranks      *rma.Window // each rank's parts and mailboxes
	cfg        Config
	header     header
	generation int64    // of ranks with this number
	name       int64    // of this rank as the one that resets a lock
	alive      Detector // nil if no rank may die
	beaten     int64    // when this rank said last that it lives

	failed  error       // of the transport, while the rank had the mutex of a local lock
	near    *rma.Window // local locks; nil without a hierarchy
	perRank int         // local locks at each rank
	quiet   []quiet     // by rank
	offset  int64       // of timestamps from the rank's clock

	busy  uint64 // members in use, a bit each
	all   [maxHeld]member
	queue []int64 // a queue as it was read
	parts []int64 // a rank's parts as they were read
	scan  []int64 // those of several ranks, where that was ever needed
	rest  []int32 // ranks that may have a part in the lock that this rank resets
}

// Stats count what a rank does beside plain acquires and releases.
type Stats struct {
	Waits     int64 // acquires that waited
	Messages  int64 // grants sent
	Refetches int64 // waits for an entry that was not written yet
	Resets    int64 // made by this rank
	ResetNs   int64 // that they took, nanoseconds, where ranks may die
	Aborts    int64 // acquires that met a reset, and began again
}

// A member is what this rank has to do with a lock.
type member struct {
	id, home, disp int // the lock and its header
	slot           int // of this rank
	mode           lock.Mode
	index          int64 // in the queue, of a rank that waits
	epoch          int64 // the header's when the rank entered the queue
	died           bool  // a holder before may have died
	unsure         bool  // the rank was silent for a lease while it had a part in the lock
	alone          bool  // it is in the queue by itself, though there is a hierarchy
	shares         bool  // in what the node has of the lock, or does for it
	stamp          int64 // when the acquire began
	remote         remote
	turn           int64 // of the local lock, which a try has found in use; 0 if it looked at the header
	guess          int   // a rank that lived, and had a part in the lock, when this rank looked
}

// Displacements in the window of the ranks, and in that of the locks: see New.
func (t *Table) partAt(slot int) int  { return slot }
func (t *Table) grantAt(slot int) int { return t.cfg.Held + 2*slot }
func (t *Table) resetAt(slot int) int { return t.cfg.Held + 2*slot + 1 }
func (t *Table) headerAt(id int) int  { return t.cfg.At + id/t.locks.Size() }
func (t *Table) entryAt(k *member, index int64) int {
	return t.cfg.At + t.perHost() + (k.disp-t.cfg.At)*t.cfg.Capacity + t.header.slot(index)
}
func (t *Table) perHost() int { return (t.cfg.Locks + t.locks.Size() - 1) / t.locks.Size() }

var _ lock.Checked = (*Table)(nil)

// hostsOf are where locks lie: the job's memory nodes if it has some, else its ranks.
func hostsOf(c rma.Comm) (int, rma.Hosts) {
	if n := c.MemoryNodes(); n > 0 {
		return n, rma.MemoryNodes
	}
	return c.Size(), rma.Ranks
}

// Regions are the words of locks at each host, for a window of the caller's: see Config.Window.
func Regions(c rma.Comm, cfg Config) ([]rma.Region, error) {
	hosts, _ := hostsOf(c)
	h, err := cfg.validate(hosts, c.Size(), c.Node())
	if err != nil {
		return nil, err
	}
	return regions(&cfg, &h, hosts), nil
}

func regions(cfg *Config, h *header, hosts int) []rma.Region {
	n := (cfg.Locks + hosts - 1) / hosts
	return []rma.Region{
		{Count: n, Words: []rma.Word{{Name: "HEADER", Class: rma.Far, Fields: h.fields()}}},
		{Count: n * cfg.Capacity, Words: []rma.Word{{Name: "ENTRY", Class: rma.Plain,
			Fields: []rma.Field{entryVersion, entryStamp, entryStamped, entryMode, entryEpoch, entryGeneration, entryClient}}}},
		{Count: 1, Words: []rma.Word{{Name: "SYNC", Class: rma.Far}}},
	}
}

// fits reports an error if a window of the caller's does not have the words of the locks at a
// displacement.
func fits(w *rma.Window, at, hosts int, words rma.Spec) error {
	has := w.Spec()
	n := words.Words()
	switch {
	case w.Size() != hosts || has.Hosts != words.Hosts:
		return fmt.Errorf("declock: Config.Window is %q of %d hosts; locks lie at the job's memory nodes if it has some, else at its ranks, here %d: %w",
			has.Name, w.Size(), hosts, lock.ErrConfig)
	case at < 0 || at > w.Words()-n:
		return fmt.Errorf("declock: Config.At is %d, and Config.Window, %q, has %d words a host, of which the locks need %d: %w", at, has.Name, w.Words(), n, lock.ErrConfig)
	}
	for i := range words.Regions {
		first := words.Base(i)
		last := n - 1
		if i+1 < len(words.Regions) {
			last = words.Base(i+1) - 1
		}
		for _, disp := range []int{first, last} {
			if got, want := has.Class(at+disp), words.Class(disp); got != want {
				return fmt.Errorf("declock: Config.Window, %q, has a word of class %v at %d, want %v: are the words of Regions at Config.At, %d? %w",
					has.Name, got, at+disp, want, at, lock.ErrConfig)
			}
		}
	}
	return nil
}

// New opens a table of locks, on the job's memory nodes if it has some. Collective; all ranks
// pass the same Config. Its only collective calls are Allocates.
func New(c rma.Comm, cfg Config) (*Table, error) {
	hosts, on := hostsOf(c)
	h, err := cfg.validate(hosts, c.Size(), c.Node())
	if err != nil {
		return nil, err
	}
	if cfg.Stats == nil {
		cfg.Stats = new(Stats)
	}
	t := &Table{c: c, cfg: cfg, header: h, generation: int64(rma.Generation(c) % generations)}
	t.name = int64(c.Rank())*generations + t.generation + 1
	t.queue, t.parts = make([]int64, cfg.Capacity), make([]int64, cfg.Held)
	words := rma.Spec{Name: "declock", Hosts: on, Regions: regions(&cfg, &h, hosts)}
	if t.locks = cfg.Window; t.locks != nil {
		if err := fits(t.locks, cfg.At, hosts, words); err != nil {
			return nil, err
		}
	} else if t.locks, err = c.Allocate(words); err != nil {
		return nil, err
	}
	message := []rma.Field{msgSought, msgStamp, msgStamped, msgDied, msgSent, msgGeneration, msgEpoch, msgLock}
	if t.ranks, err = c.Allocate(rma.Spec{Name: "declock ranks", Regions: []rma.Region{
		{Count: cfg.Held, Words: []rma.Word{{Name: "PART", Class: rma.Plain, Fields: []rma.Field{partIndex, partGeneration, partMode, partState, partLock}}}},
		{Count: cfg.Held, Words: []rma.Word{
			{Name: "GRANT", Class: rma.Plain, Fields: message}, {Name: "RESET", Class: rma.Plain, Fields: message}}},
	}}); err != nil {
		return nil, err
	}
	if t.alive = cfg.Detector; t.alive == nil && cfg.Lease > 0 {
		if t.alive, err = NewHeartbeats(c, cfg.Lease); err != nil {
			return nil, err
		}
	}
	if cfg.Policy != None {
		t.perRank = localCount(&cfg, c.Node(), c.Size())
		t.quiet = make([]quiet, c.Size())
		if t.near, err = c.Allocate(nearSpec(t.perRank, cfg.Held)); err != nil {
			return nil, err
		}
	}
	err = t.inherit()
	t.beaten = 0
	return t, err
}

// Len is the number of locks.
func (t *Table) Len() int { return t.cfg.Locks }

// Hosts says whether homes are memory nodes or ranks.
func (t *Table) Hosts() rma.Hosts { return t.locks.Spec().Hosts }

// Home is the host whose memory holds the lock's header and queue.
func (t *Table) Home(id int) int { return (t.cfg.Home + id) % t.locks.Size() }

// count adds 1 to one of the rank's Stats.
func (t *Table) count(of func(s *Stats) *int64) { *of(t.cfg.Stats)++ }

// Counts are what the rank has counted, by name: its Stats.
func (t *Table) Counts() map[string]int64 {
	s := t.cfg.Stats
	return map[string]int64{"waits": s.Waits, "messages": s.Messages, "refetches": s.Refetches, "resets": s.Resets, "reset ns": s.ResetNs, "aborts": s.Aborts}
}

// Lock takes lock id. Beside the errors of lock.Table it returns lock.ErrOwnerDied, with which
// the caller holds the lock.
func (t *Table) Lock(ctx context.Context, id int, mode lock.Mode) error {
	k, err := t.claim(id, mode)
	if err != nil {
		return err
	}
	switch {
	case t.failed != nil:
		err = t.failed
	case ctx.Done() != nil:
		err = t.poll(ctx, k)
	case t.near != nil:
		err = t.acquireInNode(k)
	default:
		err = t.acquire(k)
	}
	if err != nil {
		t.unclaim(k)
		return err
	}
	return k.told()
}

// TryLock takes lock id if it is free, by a Get and a CompareAndSwap.
func (t *Table) TryLock(id int, mode lock.Mode) (bool, error) {
	k, err := t.claim(id, mode)
	if err != nil {
		return false, err
	}
	try := t.try
	if t.near != nil {
		try = t.tryLocal
	}
	got, _, err := try(k)
	if t.near != nil {
		err = t.fails(err)
	}
	if !got {
		t.unclaim(k)
		return false, err
	}
	return true, k.told()
}

// Unlock releases lock id. lock.ErrLeaseLost says that other ranks took the caller for dead.
func (t *Table) Unlock(id int, mode lock.Mode) error {
	k := t.find(id)
	if k == nil || k.mode != mode {
		panic("declock: unlock of unlocked lock")
	}
	defer t.unclaim(k)
	if t.near != nil {
		return t.fails(t.releaseLocal(k))
	}
	return t.release(k)
}

// Free closes the windows. Collective where Allocate is. To free a table with a held lock is
// misuse.
func (t *Table) Free() error {
	if t.near != nil {
		if err := t.near.Free(); err != nil {
			return err
		}
	}
	if t.alive != nil && t.cfg.Detector == nil {
		if err := t.alive.Free(); err != nil {
			return err
		}
	}
	if err := t.ranks.Free(); err != nil || t.cfg.Window != nil {
		return err
	}
	return t.locks.Free()
}

// told is the end of an acquire that succeeds.
func (k *member) told() error {
	if k.died {
		return fmt.Errorf("declock: lock %d: %w", k.id, lock.ErrOwnerDied)
	}
	return nil
}

// claim makes a member for a lock.
func (t *Table) claim(id int, mode lock.Mode) (*member, error) {
	if uint(id) >= uint(t.cfg.Locks) {
		panic(fmt.Sprintf("declock: lock %d of a table of %d", id, t.cfg.Locks))
	}
	if t.find(id) != nil {
		panic("declock: lock of a lock that this rank holds")
	}
	i := bits.TrailingZeros64(^t.busy)
	if i >= t.cfg.Held {
		return nil, fmt.Errorf("declock: rank %d holds %d locks: %w", t.c.Rank(), t.cfg.Held, lock.ErrTooManyHeld)
	}
	t.busy |= 1 << i
	k := &t.all[i]
	*k = member{id: id, home: t.Home(id), disp: t.headerAt(id), slot: i, mode: mode}
	return k, nil
}

// unclaim ends the use of a member.
func (t *Table) unclaim(k *member) {
	t.busy &^= 1 << k.slot
	*k = member{}
	if t.busy == 0 {
		t.beaten = 0
	}
}

// find is the member with which this rank holds a lock, or nil.
func (t *Table) find(id int) *member {
	for b := t.busy; b != 0; b &= b - 1 {
		if k := &t.all[bits.TrailingZeros64(b)]; k.id == id {
			return k
		}
	}
	return nil
}

// set says in this rank's part what it does with a lock.
func (t *Table) set(k *member, state int64) error {
	v := int64(0)
	if state != out {
		v = partLock.With(partState.With(0, state), int64(k.id))
		v = partGeneration.With(partMode.With(v, int64(k.mode)), t.generation)
	}
	if state == waiting {
		v = partIndex.With(v, k.index)
	}
	return t.ranks.PutFlush(v, t.c.Rank(), t.partAt(k.slot))
}

// message is a message about a lock to a rank of a generation.
func (t *Table) message(k *member, generation int64) int64 {
	m := msgGeneration.With(msgSent.With(0, 1), generation)
	return msgLock.With(msgEpoch.With(m, k.epoch), int64(k.id))
}
