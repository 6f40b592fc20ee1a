package cider

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// A Slot is where an index keeps the pointer to the block of a key. Any index on memory nodes can
// have its slots changed by a [Sync].
type Slot struct {
	Host    int    // whose memory has the words
	Pointer int    // where the pointer is; see Version
	Lock    int    // where its LOCK and EPOCH are: LockWords, of this slot alone, and zero at first
	Key     uint64 // the key's number, or a hash of it: credits go by it
	Marks   int64  // bits of the pointer that an empty slot keeps, as Next has returned them
	// Moves says that the deletion takes the key to another slot. It stands for no other client's
	// update, since no moment before it is one at which that update could take effect. Clients that
	// wait get Again.
	Moves bool
}

// empty reports whether a pointer leads to no block.
func (at *Slot) empty(p int64) bool { return Empty(p &^ at.Marks) }

// Version is the field of a pointer, and of LOCK, that counts deletions. The other bits of a
// pointer are the index's; all of them 0, but Slot.Marks, is an empty slot. To fill an empty slot
// the index makes a CompareAndSwap that leaves the version as it is.
var Version = rma.Field{Name: "version", Shift: 0, Bits: 4, Wraps: true}

// Empty reports whether a pointer leads to no block.
func Empty(p int64) bool { return p&^Version.Mask() == 0 }

// LockWords are the two words at Slot.Lock.
func LockWords() []rma.Word {
	return []rma.Word{
		{Name: "LOCK", Class: rma.Far, Fields: []rma.Field{resets, tail, Version}},
		{Name: "EPOCH", Class: rma.Far},
	}
}

// A Writer is what an index does for one change of a slot.
type Writer interface {
	// Next is the pointer to put in place of p; its version does not matter. An empty pointer takes
	// the key out. A Sync calls Next before each CompareAndSwap. The first call writes the new
	// block, and must order it before the CompareAndSwap at the slot's host. An error of Next ends
	// the change, without Discard; clients for whom it stands get Again.
	Next(p int64) (int64, error)
	// Replaced: the last that Next has returned is in place of p, whose block is no longer used.
	Replaced(p int64)
	// Discard: no other client has seen what Next has returned.
	Discard() error
}

// Became is what became of a change.
type Became int

const (
	// Changed: the slot is changed, by this client or by one whose update stands for its own.
	Changed Became = iota
	// Absent: the slot has been emptied since p was read. If keys stay where they are, the key was
	// absent; else the index looks the key up again.
	Absent
	// Again: the slot's queue was reset. The index reads the pointer again.
	Again
)

// A Sync is one client's way to change slots. It belongs to one goroutine at a time.
type Sync struct {
	c   rma.Comm
	cfg Policy
	w   *rma.Window // the slots
	box *rma.Window // NEXT and STATUS of each client

	local *local // nil without Policy.Local

	still stillness // of the queue that this client waits in

	number int64 // of the entries of this client into queues
	heat   *heat // nil unless the scheme adapts
	random uint64
	stats  Stats
}

// Stats count what a client has done.
type Stats struct {
	Optimistic  int64 `json:"optimistic"`  // updates that began so
	Queued      int64 `json:"queued"`      // entries into a queue
	Retries     int64 `json:"retries"`     // CompareAndSwaps of a pointer that others were faster with
	Executed    int64 `json:"executed"`    // updates and deletions that changed a pointer
	Combined    int64 `json:"combined"`    // updates for which another client's stands
	Coordinated int64 `json:"coordinated"` // of these, the coordinators'
	Batched     int64 `json:"batched"`     // updates, together, that executors stood for, their own included
	Batches     int64 `json:"batches"`     // their number
	Blocked     int64 `json:"blocked"`     // entries into a queue, or under a spin lock, that others were before
	Conflicts   int64 `json:"conflicts"`   // optimistic updates with more than HotnessThreshold retries
	Local       int64 `json:"local"`       // updates that a node-mate has made
	Delegated   int64 `json:"delegated"`   // searches that a node-mate has made
	Resets      int64 `json:"resets"`      // locks that were taken from the dead
}

// NewSync opens the mail of clients that change slots in a window. Collective.
func NewSync(c rma.Comm, w *rma.Window, cfg Policy) (*Sync, error) {
	if err := cfg.validate(c.Size()); err != nil {
		return nil, err
	}
	box, err := c.Allocate(rma.Spec{Name: "cider mail", Regions: []rma.Region{{Count: 1, Words: []rma.Word{
		{Name: "NEXT", Class: rma.Plain, Fields: []rma.Field{forNumber, from}},
		{Name: "STATUS", Class: rma.Plain, Fields: []rma.Field{forNumber, info, result, batch}},
	}}}})
	if err != nil {
		return nil, fmt.Errorf("cider: %w", err)
	}
	s := &Sync{
		c: c, cfg: cfg, w: w, box: box, number: int64(rma.Generation(c)) << 16,
		random: uint64(c.Rank())*0x9E3779B97F4A7C15 + 1,
	}
	if cfg.Local > 0 {
		if s.local, err = newLocal(c, &s.cfg); err != nil {
			return nil, err
		}
	}
	if cfg.Scheme.adapts() {
		if s.heat, err = newHeat(c, &s.cfg); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Free closes the mail. Collective.
func (s *Sync) Free() error {
	err := s.box.Free()
	if s.local != nil {
		err = errors.Join(err, s.local.w.Free())
	}
	if s.heat != nil {
		err = errors.Join(err, s.heat.w.Free())
	}
	return err
}

// Stats is what this client has done so far.
func (s *Sync) Stats() Stats {
	st := s.stats
	if s.local != nil {
		st.Local, st.Delegated = s.local.stats[updates], s.local.stats[searches]
	}
	return st
}

// JoinUpdate is what an index calls before it updates a key. It has then entered a section of its memory,
// as node-mates must not wait for a client that waits for memory. With Policy.Local done says that
// the update of a node-mate stands for this one, and there whether the key is there. If not done,
// the index updates the key and calls LeaveUpdate.
func (s *Sync) JoinUpdate(key []byte) (there, done bool, err error) {
	if s.local == nil {
		return false, false, nil
	}
	_, there, done, err = s.local.enter(updates, key, nil)
	return there, done, err
}

// LeaveUpdate ends an update that JoinUpdate has begun, and gives failed back.
func (s *Sync) LeaveUpdate(key []byte, there bool, failed error) error {
	if s.local == nil {
		return failed
	}
	return errors.Join(failed, s.local.leave(updates, key, nil, there, failed != nil))
}

// JoinSearch is JoinUpdate for a search: if a node-mate has searched for this client, it appends
// what was found to dst.
func (s *Sync) JoinSearch(key, dst []byte) (out []byte, there, done bool, err error) {
	if s.local == nil {
		return dst, false, false, nil
	}
	return s.local.enter(searches, key, dst)
}

// LeaveSearch ends a search that JoinSearch has begun, and gives failed back.
func (s *Sync) LeaveSearch(key, value []byte, there bool, failed error) error {
	if s.local == nil {
		return failed
	}
	return errors.Join(failed, s.local.leave(searches, key, value, there, failed != nil))
}

// Change changes the pointer of a slot (Algorithm 1), which the client has found as p, not empty.
// With deletes the Writer empties the slot. A Writer that moves a key does so too, with Slot.Moves:
// each Next copies p to the new place. Change does not allocate. An error is the Writer's or the
// transport's. The package comment has the cost.
func (s *Sync) Change(at Slot, p int64, w Writer, deletes bool) (Became, error) {
	if s.cfg.Scheme == Spin {
		return s.spin(at, p, w)
	}
	queues := s.cfg.Scheme.queues() && (deletes || s.heat == nil)
	if !deletes && s.heat != nil { // A1:2 to A1:4
		var err error
		if queues, err = s.heat.takeCredit(at.Key); err != nil {
			return Absent, err
		}
	}
	switch {
	case queues:
		became, err := s.pessimistic(at, p, w, deletes)
		s.still = stillness{} // known no more
		return became, err
	case !deletes:
		s.stats.Optimistic++
	}
	became, retries, err := s.execute(at, p, w) // A1:6
	if !deletes && retries > s.cfg.HotnessThreshold {
		s.stats.Conflicts++
	}
	if !deletes && s.heat != nil {
		err = errors.Join(err, s.heat.cooled(at.Key, retries))
	}
	return became, err
}

// execute writes the block and changes the pointer (A1:10 A1:11, A1:18 A1:19), unless the slot is
// emptied meanwhile.
func (s *Sync) execute(at Slot, p int64, w Writer) (became Became, retries int, err error) {
	for v := Version.Get(p); !at.empty(p) && Version.Get(p) == v; {
		to, err := w.Next(p)
		if err != nil {
			return Absent, retries, err
		}
		if to = Version.With(to, v); at.empty(to) {
			to = Version.With(to, v+1)
		}
		found, err := s.w.CompareAndSwapFlush(to, p, at.Host, at.Pointer)
		if err != nil {
			return Absent, retries, err
		}
		if found == p {
			s.stats.Executed++
			w.Replaced(p)
			return Changed, retries, nil
		}
		p = found
		retries++
		s.stats.Retries++
	}
	return Absent, retries, w.Discard()
}
