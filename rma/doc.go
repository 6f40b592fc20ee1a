// Package rma is the window: 64-bit words in the memory of other ranks, reached
// one-sidedly, with the operations of Listing 1 of
//
//	P. Schmid, M. Besta, T. Hoefler: High-Performance Distributed RMA Locks.
//	HPDC 2016 (called rma-rw in this module).
//
// under MPI-3's names. It holds the interface, the memory model and the errors;
// no protocol and no transport. Backends (rma/inproc, rma/mpi, rma/verbs, rma/sim) hand out a [Comm];
// a Comm allocates a [Window]; a lock package sees nothing else.
//
// # Addresses
//
// A word is named by (target, displacement in words). The targets of a window are its
// hosts: the ranks of the communicator that allocated it, from 0, or the memory nodes of
// the job ([Hosts]). Windows are symmetric: every rank passes the same [Spec], and every
// host holds the same number of words, all zero at first.
//
// # Memory model
//
//   - An operation is issued by its call and complete when a [Window.Flush] of its
//     target, or [Window.FlushAll], has returned nil. In between it may take effect
//     at any moment. A result may be read only after that Flush.
//   - Operations that are issued and not flushed may take effect in any order, with
//     two exceptions: those of one handle on one and the same word take effect in
//     the order of issue, and so do those with a [Window.Fence] between them.
//   - Put, Get, Accumulate, FetchAndOp, CompareAndSwap and MaskedSwap on one word are atomic.
//     The bulk forms are atomic word by word, not as a whole: they may tear
//     between words.
//   - Nothing orders two windows or two targets but a Flush that has returned, and two
//     words of a target but that or a Fence. After a Flush, every rank that reads the
//     word sees the effect.
//   - A rank may stop for ever at any step. What it has issued and not flushed takes
//     effect later, once, or never.
//   - A value read by Get, FetchAndOp, CompareAndSwap or Await synchronizes with
//     the operation that wrote it: whatever the writer had flushed before it issued
//     that operation is visible to the reader. So Unlock of any lock of this module
//     orders what the holder flushed before Unlock, in whatever window, before the
//     next holder's Lock returns; what the holder did not flush is not covered.
//
// # Classes of words
//
// CPU atomics and a network's atomics on one word are not atomic with each other
// on most hardware (Table 1 of alock: M. Amanda Baran et al., ALock, and
// seen for real over Soft-RoCE). So each word of a [Spec] has a [Class] that says
// who touches it and how:
//
//	Near  only ranks of one node change it, with CPU atomics; ranks of other nodes may
//	      Get it and wait for it (Table 1 has a remote read atomic with everything)
//	Far   everybody touches it, its own host included, through the transport's
//	      atomics (in MPI a one-word Put is Accumulate(REPLACE), a one-word Get
//	      Fetch_and_op(NO_OP))
//	Flag  one writer at a time, by an aligned 8-byte store or Put; read by load or
//	      plain Get; never updated by an atomic. Bulk data guarded by a lock is Flag.
//	Plain several writers, otherwise as Flag: the last one wins
//
// By the same table the CPU may read a Far word of its own node where [Caps] says so.
//
// In a job on one node the transport's atomics are the CPU's, and all classes
// cost the same. The class is declared once, where the words are, and not at
// each operation; a violation is [ErrClass] at Flush where ranks span nodes, and on
// one node under hook.Check (the short ways there do not look at it).
//
// A [Pointer] is a word that is looked up once. An operation on it is an instruction where the CPU
// may do it, and the window's everywhere else.
//
// # Waiting
//
// [Window.Await], with its forms for a limit and for two words, is the only way to wait
// for a word to change and [Window.Backoff]
// the only way to pause between two tries of an operation that failed. Each
// backend waits in the best way it has; the simulator parks the rank, so that a
// state in which nobody can run is seen as the deadlock it is. A protocol must
// flush what it issued before it waits for an answer to it.
//
// # Errors
//
// Operations return no errors: the first one since the last Flush (a rank or
// displacement out of range, a class violation, too many pending operations) is
// returned by the next Flush, FlushAll or blocking form, wraps a sentinel of this
// package and names window, rank, displacement and size. An operation in error
// was not issued.
//
// # Costs
//
// Words of one's own and of node-mates are reached by load, store and CPU atomics
// without leaving Go; a Flush towards a node-mate costs a few instructions. A Flush
// towards a far rank is one crossing into the transport for all operations issued
// to that target. Nothing on these ways allocates.
package rma
