// Package dmcs is D-MCS, the topology-oblivious distributed MCS queue lock. It follows
//
//	P. Schmid, M. Besta, T. Hoefler: High-Performance Distributed RMA Locks.
//	HPDC 2016 (rma-rw), section 2.4, Listings 2 and 3.
//
// In the code Ln:m is Listing n, line m, of rma-rw.
//
// Waiting ranks form a queue. A rank enters it with one swap of TAIL, links itself
// behind its predecessor, and waits on a word of its own; a release hands the lock
// to the successor with one Put. It is first come, first served in the order of
// the swaps: no rank bypasses one that has entered the queue.
//
// # Words
//
//	word   class  whose memory     values
//	NEXT   flag   each rank's      0, or the queue node behind this one
//	WAIT   flag   each rank's      1 while the owner must wait, 0 when it holds
//	TAIL   far    the lock's home  0 when free, else the last queue node
//
// A queue node is named 1 + rank*MaxHeld + k. The paper has one node per process;
// here a rank has MaxHeld nodes for all locks of a table, so that a lock costs 8
// bytes at its home and nothing elsewhere, and a rank 16*MaxHeld bytes for the
// table.
//
// # Cost in remote operations
//
// Uncontended, Lock is one FetchAndOp and Unlock one CompareAndSwap at the home.
// With a predecessor Lock adds one Put; with a successor Unlock is one Put, or a
// CompareAndSwap and one Put if the successor had not linked itself yet. All else
// touches the rank's own words. Waiting costs no remote operation.
//
// # Where it differs from the listings
//
// Listing 2 does not flush the Puts of lines 3 and 4 before the FAO of line 6, so
// that a Put of NEXT may take effect after the successor's Put and lose it. Here
// NEXT is null whenever its node is not in use: a release that handed over clears
// it, when the successor is on its way, and flushes. WAIT is set only when there is
// a predecessor, before the Put of line 10 shows it this node: no rank looks at it
// earlier. So an uncontended acquire is line 6 of Listing 2 alone, and a release
// lines 2 and 5 of Listing 3. TryLock is not in the paper: it is the swap as a CAS
// on an empty queue.
//
// # Deadlines and death
//
// A queued waiter never leaves the queue; with a context that can end, Lock polls
// TryLock instead of queueing. When a rank dies while it holds or waits, the lock
// is lost, and those behind it wait until the job ends: the backend ends it.
package dmcs
