// Package declock is DecLock, a queue on the memory node and hand-over between clients, for
// readers and writers. It follows
//
//	DecLock: A Case of Decoupled Locking for Disaggregated Memory (declock).
//
// In the code Fn:m is line m of Figure n of declock.
//
// A rank enters the queue with one FetchAndOp on the lock's header, which also tells it whether
// it has the lock. If not, it writes its entry, and waits for a message. A rank that releases
// leaves with one FetchAndOp, reads the queue in the same doorbell, and tells the ranks that are
// next: a writer, or all readers up to the next writer. So the memory node sees at most two
// operations for an acquire and two for a release, however long ranks wait.
//
// # Words
//
//	word     class  whose memory                     fields
//	HEADER   far    the home: memory node or rank    qhead, qsize, wcnt, epoch, died, rst
//	ENTRY    plain  the home, Capacity of them       version, mode, client, epoch, stamp
//	PART     plain  each rank, Held of them          what the rank does with which lock
//	GRANT    plain  each rank, Held of them          the lock is yours
//	RESET    plain  each rank, Held of them          the lock is reset, begin again
//	BEAT     near   each rank                        when it said last that it lives
//
// A lock takes 8 + 8 * Capacity bytes at its home, and a rank 24 * Held + 8 bytes in all.
//
// # Hierarchy
//
// With Config.Policy the ranks of a node share local locks, near words of the node, and one of
// them at a time acts for the node in the queue (section 5). So the queue needs an entry for each
// node, and a hand-over inside a node makes no remote operation. TaskFair and PhaseFair compare
// timestamps, so that the ranks of a node do not pass older ones of other nodes.
//
//	word     class  whose memory                     fields
//	TICKET   near   a rank of the node               the mutex of a local lock
//	TURN     near   the same
//	STATE    near   the same                         lock, state, holders, hand-overs
//	QUEUE    near   the same                         first and last rank that waits
//	HELD     near   the same                         the node has the lock; a stamp of another node
//	BEAT     near   the same                         when one that has it said last that it lives
//	WANT     near   each rank, Held of them          mode, stamp, next in the list
//	WAKE     near   each rank, Held of them          how a rank that waits goes on
//	SYNC     far    host 0                           Synchronise: section 5.3
//
// A local lock takes 48 bytes, Config.LocalLocks of them at most 6 MB a node.
//
// # Resets
//
// A lock is reset when more ranks want it than its queue has entries, when the versions of
// entries are used up, and when a rank of the queue has died. All ranks in the queue begin again
// then, and the order of the queue is lost. A rank that is in no call need not answer: the
// one that resets reads the PARTs of the others (docs/decisions/0019-declock.md).
//
// # Leases and death
//
// A rank says that it lives when it calls the table, and while it waits. A rank that has not
// for more than two leases is taken for dead, if others want a lock that it has. Its Unlock then
// returns lock.ErrLeaseLost, and the next holder's Lock lock.ErrOwnerDied. Safety rests on time as
// in any lease: an operation takes effect within a lease of the moment at which the rank has looked
// at its clock. Config.Detector replaces the heartbeats.
//
// With a hierarchy a rank may die alone, as the holder, as one that waits, or with the mutex of a
// local lock. Those that have a lock in a local lock write the time into its BEAT. If that stays
// the same for two leases, others reset the lock, and the ranks of the node use the local
// lock no more: they go to the queue by themselves (docs/decisions/0024-lone-deaths.md).
//
// # Where it differs from the paper
//
// The header has an epoch, which counts resets in place of counters at each client (section
// 4.4), and a bit for deaths. Step 3 of a reset changes the header by CompareAndSwap. A reader
// that leaves waits for entries in an order in which they come, and takes a newer one for a sign
// that it is not asked. Entries that are overwritten are written again. A message has the stamp
// of the next entry, and not the earliest of the queue. A rank that waits resets the lock only
// if a rank of the queue has died, and not after some time. docs/errata.md has the reasons.
package declock
