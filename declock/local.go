package declock

import (
	"errors"
	"math/bits"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// From here on files are section 5: the ranks of a node share a local lock, and one of them at a
// time acts for the node in the queue of the memory node. This one has the local lock and its
// mutex, list.go those that wait for it, policy.go which of them is next, localacquire.go and
// localrelease.go Figure 10, stamp.go the time, and broken.go what deaths leave.

// A local lock is six near words of the node: a mutex of tickets, what it guards, and a sign of
// life. One serves one lock at a time; a rank that finds it in use for another goes to the queue by
// itself. So do all once a rank has died in it: see broken.go.
const (
	localTicket = iota
	localTurn
	localState
	localQueue
	localHeld
	localBeat
	localWords
)

// The mutex: a rank that finds the local lock broken takes no turn.
var (
	ticketNext   = rma.Field{Name: "next", Shift: 0, Bits: 62}
	ticketBroken = rma.Field{Name: "broken", Shift: 62, Bits: 1}
)

// The state of a local lock: Figure 9, right.
var (
	stateLock    = rma.Field{Name: "lock", Shift: 0, Bits: 32}
	stateKind    = rma.Field{Name: "state", Shift: 32, Bits: 3}
	stateHolders = rma.Field{Name: "holders", Shift: 35, Bits: 12}
	statePasses  = rma.Field{Name: "passes", Shift: 47, Bits: 12} // local hand-overs since the node has the lock
)

const (
	localFree      int64 = iota
	localBusy            // a rank takes the lock for the node, or lets it go
	localShared          // readers hold it, others may join them
	localClosed          // readers hold it, a writer waits
	localExclusive       // a writer holds it
)

// The ranks that wait for a local lock are a list through their own words. 0 is none.
var (
	queueHead = rma.Field{Name: "head", Shift: 0, Bits: 21} // client + 1
	queueTail = rma.Field{Name: "tail", Shift: 21, Bits: 21}
)

// What the node has of the lock of the memory node: cqlheld of Figure 9, with the earliest stamp
// of the ranks of other nodes that wait. Ranks that reset the lock read it.
var (
	heldLock     = rma.Field{Name: "lock", Shift: 0, Bits: 32}
	heldEpoch    = rma.Field{Name: "epoch", Shift: 32, Bits: 8}
	heldHeld     = rma.Field{Name: "held", Shift: 40, Bits: 1}
	heldDied     = rma.Field{Name: "died", Shift: 41, Bits: 1}
	heldRepaired = rma.Field{Name: "repaired", Shift: 42, Bits: 1} // a writer that was told has left
	heldStamped  = rma.Field{Name: "stamped", Shift: 43, Bits: 1}
	heldStamp    = rma.Field{Name: "stamp", Shift: 44, Bits: 16}
)

// nearSpec is the window of local locks, count of them at each rank.
func nearSpec(count, held int) rma.Spec {
	return rma.Spec{Name: "declock nodes", Regions: []rma.Region{
		{Count: held, Words: []rma.Word{
			{Name: "WANT", Class: rma.Near, Fields: []rma.Field{wantNext, wantMode, wantStamp}},
			{Name: "WAKE", Class: rma.Near, Fields: []rma.Field{wakeHow, wakeLock}},
		}},
		{Count: count, Words: []rma.Word{
			{Name: "TICKET", Class: rma.Near, Fields: []rma.Field{ticketNext, ticketBroken}}, {Name: "TURN", Class: rma.Near},
			{Name: "STATE", Class: rma.Near, Fields: []rma.Field{stateLock, stateKind, stateHolders, statePasses}},
			{Name: "QUEUE", Class: rma.Near, Fields: []rma.Field{queueHead, queueTail}},
			{Name: "HELD", Class: rma.Near, Fields: []rma.Field{heldLock, heldEpoch, heldHeld, heldDied, heldRepaired, heldStamped, heldStamp}},
			{Name: "BEAT", Class: rma.Near, Fields: []rma.Field{beatSure, beatTime}},
		}},
	}}
}

// localCount is the number of local locks at each rank: enough for all locks of the table, or
// for Config.LocalLocks at a node.
func localCount(cfg *Config, n rma.Node, ranks int) int {
	return max(1, (min(cfg.Locks, cfg.LocalLocks)*n.Count+ranks-1)/ranks)
}

// A local is a local lock as its holder of the mutex has it.
type local struct {
	rank, disp               int
	ticket                   int64
	state, queue, held, beat int64
}

// localAt is the place of a lock's local lock at a rank, of this node or another.
func (t *Table) localAt(id int) int { return 2*t.cfg.Held + id%t.perRank*localWords }

func (t *Table) wantAt(slot int) int { return 2 * slot }
func (t *Table) wakeAt(slot int) int { return 2*slot + 1 }

// localRank is the rank of this node that has a lock's local lock.
func (t *Table) localRank(id int) int {
	node := t.c.Node().Ranks
	return node[id/t.perRank%len(node)]
}

// lockLocal takes the mutex of a local lock (F10:2 F10:3). It reports false if the local lock is
// broken: then the caller has nothing.
func (t *Table) lockLocal(id int) (r local, ok bool, err error) {
	if t.failed != nil {
		return r, false, t.failed
	}
	r.rank, r.disp = t.localRank(id), t.localAt(id)
	if r.ticket, err = t.near.FetchAndOpFlush(1, r.rank, r.disp+localTicket, rma.Sum); err != nil {
		return r, false, reachable(err)
	}
	if ok, err = t.turn(&r); !ok || err != nil {
		return r, false, err
	}
	state, queue, held := t.near.Get(r.rank, r.disp+localState), t.near.Get(r.rank, r.disp+localQueue), t.near.Get(r.rank, r.disp+localHeld)
	beat := t.near.Get(r.rank, r.disp+localBeat)
	if err = t.near.Flush(r.rank); err != nil {
		return r, false, err
	}
	r.state, r.queue, r.held, r.beat = t.near.Value(state), t.near.Value(queue), t.near.Value(held), t.near.Value(beat)
	if heldStamped.Get(r.held) != 0 {
		t.follow(heldStamp.Get(r.held))
	}
	return r, true, nil
}

// unlockLocal writes a local lock back and lets the mutex go (F10:18).
func (t *Table) unlockLocal(r *local) error {
	t.near.Put(r.state, r.rank, r.disp+localState)
	t.near.Put(r.queue, r.rank, r.disp+localQueue)
	t.near.Put(r.held, r.rank, r.disp+localHeld)
	if err := t.near.Flush(r.rank); err != nil {
		return err
	}
	return t.near.PutFlush(r.ticket+1, r.rank, r.disp+localTurn)
}

// is reports whether a local lock is in a state for a lock.
func (r *local) is(id int, kind int64) bool {
	return stateKind.Get(r.state) == kind && stateLock.Get(r.state) == int64(id)
}

// other reports whether a local lock serves another lock.
func (r *local) other(id int) bool {
	return stateKind.Get(r.state) != localFree && stateLock.Get(r.state) != int64(id)
}

// become changes the state.
func (r *local) become(id int, kind, holders int64) {
	r.state = statePasses.Mask() & r.state
	r.state = stateHolders.With(stateKind.With(r.state, kind), holders)
	r.state = stateLock.With(r.state, int64(id))
	if kind == localFree {
		r.state = 0
	}
}

// add changes the number of holders.
func (r *local) add(n int64) { r.state += n * stateHolders.One() }

// passed counts a local hand-over.
func (r *local) passed() {
	if statePasses.Get(r.state) < 1<<statePasses.Bits-1 {
		r.state += statePasses.One()
	}
}

// client is this rank's name in a list or an entry.
func (t *Table) client(k *member) int64 { return int64(t.c.Rank()*maxHeld + k.slot) }

// defaultLocalLocks bounds the memory of local locks to 5 MB a node.
const defaultLocalLocks = 1 << 17

// nodesCapacity is the capacity for one rank of each node.
func nodesCapacity(n rma.Node) int { return 1 << bits.Len(uint(n.Count-1)) }

// holdsMode is the state of a local lock that is held in a mode.
func holdsMode(mode lock.Mode) int64 {
	if mode == lock.Shared {
		return localShared
	}
	return localExclusive
}

// fails notes an error that leaves a local lock in an unknown state. A later Lock of the rank would
// wait for itself.
func (t *Table) fails(err error) error {
	if err != nil && !errors.Is(err, lock.ErrLeaseLost) {
		t.failed = err
	}
	return err
}
