package sim

import (
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// Begin gives the schedule to the Scheduler until End. Collective over all ranks of a
// search; no operation may be pending.
func (c *Comm) Begin() error {
	c.r.counts, c.r.bulkWords, c.r.bulkDue = Counts{}, c.r.bulkWords[:0], 0
	return c.r.w.engine.beginSchedule(c)
}

// End takes the schedule from the Scheduler. Collective. Operations that are pending then
// take effect before it or never.
func (c *Comm) End() error { return c.r.w.engine.endSchedule(c) }

// Keep keeps the windows of the ranks for all executions of a search. All ranks call it
// before the same Begin. At every Begin the windows hold what they held at this one.
func (c *Comm) Keep() { c.r.w.engine.keepWindows(c.r) }

// Memoise lets an exhaustive search replay a rank from its memo tree in place of its code.
// All ranks call it before the Begin at which windows are kept (Keep). Between Begin and
// End the code of a rank must then depend on the answers of its windows alone. It must
// change state outside the rank by Effect alone; outside saves and restores that state.
// Before each Begin the rank restores its own state, and Start that outside.
func (c *Comm) Memoise(outside Snapshotter) { c.r.w.engine.memoiseRanks(c.r, outside) }

// A Snapshotter is the state that a check keeps outside the ranks.
type Snapshotter interface {
	// Save copies the state. A not nil into is an earlier copy, whose memory may be reused.
	Save(into any) any
	// Restore makes the state that of a copy.
	Restore(from any)
}

// Start calls f at the start of each execution. One rank calls it, before Begin.
func (c *Comm) Start(f func()) { c.r.w.engine.startWith(c.r, f) }

// A Watcher is told of what is no rank's own step. What it does is part of the step.
type Watcher interface {
	Ticked(forced bool) // the clock has advanced; forced: nothing else could happen
	Died(rank int)
	Joined(rank int) // a successor takes the place of a dead rank
}

// Watch has the search tell w. One rank calls it, before Begin.
func (c *Comm) Watch(w Watcher) { c.r.w.engine.watch(w) }

// Effect calls f, which changes state that a check keeps outside the ranks.
func (c *Comm) Effect(f func()) { c.r.w.engine.effectOutside(c.r, f) }

// Home declares that state() is a hash of the rank's state, pending operations excepted.
// Ranks whose hashes are equal must behave alike from then on. A search recognises states
// by it.
func (c *Comm) Home(state func() uint64) { c.r.w.engine.declareHome(c.r, state) }

// Turn says where the rank is in a loop of waits. The contract is that of Home.
func (c *Comm) Turn(t Turn) { c.r.w.engine.turn(c.r, t) }

// A TurnKind is a place in a loop of waits.
type TurnKind uint8

const (
	TurnFirst TurnKind = iota // the loop begins
	TurnNext                  // the rank is about to wait again
	TurnRead                  // the rank keeps in mind what it reads from the clock now
)

// A Turn is what a rank says in a loop of waits.
type Turn struct {
	Kind TurnKind
	// Ends, of a TurnFirst, says that a wait whose condition holds ends the loop: after it the rank
	// knows nothing of the loop but the value that it has seen.
	Ends bool
	// State, of a TurnNext, is a hash of what the rank has learnt in the loop and still knows, the
	// clock excepted. What it has learnt before TurnFirst it may know as well.
	State uint64
	// Since is a reading of the clock that the rank still knows, 0 for none. How much longer than
	// Most ago that was makes no difference to it.
	Since, Most int64
}

// Repeats reports whether a search only repeats what the rank has done up to here: Home and Effect do
// nothing then.
func (c *Comm) Repeats() bool { return c.r.lagging }

// Visible says that the check depends on the order of this call among those of other ranks:
// a search then tells schedules apart in which the order differs.
func (c *Comm) Visible() { c.r.w.engine.seeVisible() }

// Doorway calls f when the rank's next atomic operation that changes a word takes effect.
func (c *Comm) Doorway(f func()) { c.r.doorway = f }

// Counts counts what the rank did since Begin.
func (c *Comm) Counts() Counts { return c.r.counts }

// Mark writes a line into the trace.
func (c *Comm) Mark(format string, args ...any) {
	if c.r.w.engine.traces(c.r) {
		c.r.w.engine.markTrace(c.r, fmt.Sprintf(format, args...))
	}
}

// Extra adds the hash of a check's own state to that of the search's state.
func (c *Comm) Extra(hash func() uint64) { c.r.w.engine.extraHash(hash) }

// Alike says, before Begin, that the caller and the ranks that say the same class may change
// places: a search takes states that differ by that for one. All of them run the same code with
// the same state. Between Begin and End neither that code nor a word may depend on which of them
// a rank is. All windows are on memory nodes. It has no effect with faults, or on more than 8 ranks.
//
// Where ranks are alike, Extra is what the check keeps of no rank, and ExtraOf what it keeps of each.
func (c *Comm) Alike(class uint64) { c.r.w.engine.alikeAs(c.r, class) }

// ExtraOf adds the hash of what a check keeps of a rank to that of the rank's state, where ranks
// are alike.
func (c *Comm) ExtraOf(hash func(rank int) uint64) { c.r.w.engine.extraHashOf(hash) }

// Fail ends the execution with an error that a check found.
func (c *Comm) Fail(err error) { c.r.w.engine.failWith(c.r, err) }

// Now is the virtual time. Between Begin and End of a search it advances by Search.TickNs with
// each tick, and not otherwise: a rank that reads it often waits for the next tick.
func (c *Comm) Now() int64 { return c.r.w.engine.now(c.r) }

// Sleep suspends the rank for ns nanoseconds of virtual time. In a search without ticks, and
// for an ns of 0 in any, it is a step that comes when the schedule says.
func (c *Comm) Sleep(ns int64) { c.r.w.engine.sleep(c.r, ns) }

// Elapsed is what the run has taken up to now, in virtual time; of a search it is zero.
func (c *Comm) Elapsed() Elapsed { return c.r.w.engine.elapsedSoFar() }

// Clock is Now for a check and for decorators: it takes no time, and the rank does not learn it.
func (c *Comm) Clock() int64 { return c.r.w.engine.clockForCheck(c.r) }

// Generation is the number of ranks that had the caller's place before it and died; see
// [rma.Generation].
func (c *Comm) Generation() int { return int(c.r.generation) }

// WorldRank is the caller's rank in the job, also on a part of it that Split made.
func (c *Comm) WorldRank() int { return c.r.id }

// Counts counts what a rank did since Begin.
type Counts struct {
	Own, Mate, Far int // operations on ranks, by the distance of their target
	Memory         int // operations on memory nodes
	Awaits         int
	Late           int // of these, ended by their limit
	Backoffs       int
	Woke           int64 // when the last Await ended by its limit, or the last Backoff ended
	WokeAfter      int   // operations before
}

// All is the number of operations.
func (c Counts) All() int { return c.Own + c.Others() }

// Others is the number of operations on memory that is not the rank's own.
func (c Counts) Others() int { return c.Mate + c.Far + c.Memory }

// add counts an operation.
func (n *Counts) add(c *Comm, s *segment, target int) {
	switch {
	case s.spec.Hosts == rma.MemoryNodes:
		n.Memory++
	case target == c.rank:
		n.Own++
	case c.g.mates(c.rank, target):
		n.Mate++
	default:
		n.Far++
	}
}
