// Package lock says what a distributed lock is: the interfaces Mutex, RWMutex and
// Table, the errors, the adapter to sync.Locker and the registry by name.
//
// # What every lock of this module promises
//
// The n'th Unlock of a lock synchronizes before the m'th Lock that returns nil,
// for all n < m, across ranks, for everything that the holder had flushed before
// its Unlock, in whatever window. What it did not flush is not covered. For a
// shared mode, an Unlock synchronizes before the RLocks after it, and an RUnlock
// before the Locks after it; RLocks are not ordered with each other.
//
// Locks are not recursive: Lock of a lock that the rank holds panics, and so does
// Unlock of one that it does not hold. A handle belongs to one rank and to one
// goroutine at a time, and must not be copied. [Local] is for more goroutines.
//
// A context that can end (with a deadline, or cancelled) changes how a lock is
// taken: by trying, without queueing, until it succeeds or the context ends. That
// is not fair, and it leaves the lock unchanged when it fails with [ErrDeadline].
// With context.Background() a lock queues as its protocol says, and waits as long
// as it takes.
//
// An error other than those of this package comes from the transport or says that a
// peer died. It leaves the lock in an unknown state: the job should end. Each lock's
// package says what happens when a rank dies.
//
// A lock that recovers ([Info.Recovers]) goes on without a rank that died. The next
// holder gets the lock with [ErrOwnerDied]. A holder that was only slow, and was taken
// for dead, learns it from its Unlock as [ErrLeaseLost].
package lock
