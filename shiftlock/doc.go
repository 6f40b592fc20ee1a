// Package shiftlock is ShiftLock, a queue of writers and a count of readers in one word. It follows
//
//	J. Gao, Q. Wang, J. Shu: ShiftLock: Mitigate One-sided RDMA Lock Contention via Handover.
//	FAST 2025 (shiftlock).
//
// It is the protocol of the authors' public code (github.com/thustorage/shiftlock, bb73bf4,
// src/shiftlock/mod.rs), and not that of the text. Words have 8 bytes where the code has 16. Names
// of its functions are in the comments.
//
// A writer makes itself the tail of the lock's word. If there was a tail before, it names itself to
// that writer by a message, and gets the lock from it by another. A hand-over makes no operation at
// the lock's home. A reader counts itself in, and is inside unless there is a tail; then it reads
// the word until a writer flips its mode. That is a writer with no other behind it, or the K'th in
// a row. The writer after a flip waits until the readers have left that were let in.
//
// # Words
//
//	word     class  whose memory                     fields
//	LOCK     far    the home: memory node or rank    rel, era, died, tail, rdr, mode
//	NEXT     plain  a rank's slot                    lock, era, gen of the receiver; from
//	TURN     plain  a rank's slot                    lock, era, gen of the receiver; drains, age, cons, target
//
// rdr counts the readers inside and waiting, rel the releases of readers and the flips, era the
// resets; tail names a generation, a rank and its slot. A lock takes 8 bytes, and a rank 256 for
// its 16 slots and some 2 KB for a table of any size.
//
// # Cost in remote operations
//
// An uncontended writer has one MaskedSwap to acquire, and one CompareAndSwap to release; a reader
// one FetchAndOp for each. A hand-over is one message, and one more when the
// writer came. A reader that waits reads the word at the pace of the backend.
//
// # Fairness
//
// Writers enter in the order in which they became the tail. A reader is passed by K writers at
// most. To become the tail is one masked swap. Without rma.Caps.MaskedSwap it is a loop of
// CompareAndSwap, two where the lock has been used, which each reader that comes or goes may
// disturb, without a bound.
//
// # Leases and death
//
// A holder has a lease. When rel and era have stood still for three leases, a waiter resets the
// lock. The next era has no tail and no readers, and all waiters begin again. With other locks of
// the table held they get lock.ErrGiveWay first. A holder that was taken for dead gets
// lock.ErrLeaseLost, and the next one after a writer lock.ErrOwnerDied. A rank that only tries, as
// one whose context can end, takes no rank for dead.
//
// rel stands still while writers hand the lock over. So a hand-over says how old rel is at most,
// and a writer that gets the lock late makes rel move before it enters. That age is known but for
// the time of the message, and a reader's FetchAndOp cannot look at the era: both must take effect
// within one lease after the rank looked at its clock. With ReleaseByCAS nothing rests on that.
//
// # Where it differs from the code
//
// This is variant A of the ways to have 8 bytes, with all in one word. Others have the tail, or the
// readers that have left, in a second word. rel has 20 bits, and eras are counted apart. Messages
// name lock, era and generation. docs/errata.md says what the code lacks, with schedules.
package shiftlock
