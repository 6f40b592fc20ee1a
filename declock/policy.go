package declock

import "github.com/rmalock/rmalock/lock"

// A Policy says whether a lock is handed over inside a node, and which of the node's ranks is
// next: section 5.3, and those that section 6.3 compares with.
type Policy uint8

const (
	// None has no local locks: each rank is in the queue of the memory node.
	None Policy = iota
	// TaskFair is by timestamps across nodes, and in the order of arrival inside one. A node that lets
	// the lock go stands at the end of the queue again: of N ranks an acquire is passed N - 1
	// times at most, and 2 (N - 1) times where there are readers (TestOrder).
	TaskFair
	// PhaseFair is TaskFair, but all readers of a node enter together, and come first after
	// a writer: of N ranks an acquire is passed 3 (N - 1) times at most (TestOrder).
	PhaseFair
	// RemotePrefer hands over to other nodes always.
	RemotePrefer
	// LocalPrefer hands over to other nodes when no rank of the node waits in the same mode.
	LocalPrefer
	// LocalBound hands over inside the node Config.Bound times in a row.
	LocalBound
)

// timed reports whether the policy looks at timestamps.
func (t *Table) timed() bool { return t.cfg.Policy == TaskFair || t.cfg.Policy == PhaseFair }

// mayPass reports whether the policy hands the lock over to a rank of the node that has a stamp.
func (t *Table) mayPass(r *local, stamp int64) bool {
	switch t.cfg.Policy {
	case TaskFair, PhaseFair:
		return heldStamped.Get(r.held) == 0 || t.older(stamp, heldStamp.Get(r.held))
	case LocalPrefer:
		return true
	case LocalBound:
		return statePasses.Get(r.state) < int64(t.cfg.Bound)
	case None, RemotePrefer:
	}
	return false
}

// choose is the rank of the list that takes the lock again for the node: the first one, or,
// phase-fair after a writer, the first reader. A writer that is first, and older than the ranks of
// other nodes, is not asked: handOver gives it the lock.
func (t *Table) choose(r *local, after lock.Mode) (before, at, want int64, err error) {
	at = queueHead.Get(r.queue)
	if want, err = t.want(at); err != nil || t.cfg.Policy == TaskFair || after == lock.Shared {
		return 0, at, want, err
	}
	first := want
	for before, next := int64(0), at; next != 0; {
		w, err := t.want(next)
		if err != nil {
			return 0, 0, 0, err
		}
		if lock.Mode(wantMode.Get(w)) == lock.Shared {
			return before, next, w, nil
		}
		before, next = next, wantNext.Get(w)
	}
	return 0, at, first, nil
}
