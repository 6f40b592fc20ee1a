// Package alock is ALock, a lock of ranks that reach it by the CPU and ranks that reach it through
// the network. It follows
//
//	A. Baran, J. Nelson-Slivon, L. Tseng, R. Palmieri: ALock: Asymmetric Lock Primitive for RDMA
//	Systems. SPAA 2024 (alock), sections 4 and 5, Algorithms 1 to 4.
//
// The atomics of a CPU and of a network card on one word are not atomic with each other (Table 1).
// So the ranks of the lock's home node are the local cohort, and all others the remote cohort. Each
// cohort has an MCS queue, whose TAIL one kind of atomics changes alone. The leaders of the two
// queues compete by Peterson's lock, which needs loads and stores only: the TAILs are its flags. A
// lock is passed within a cohort as often as the cohort's budget says, then the next rank competes
// again. No local rank makes an operation of the transport, ever.
//
// # Words
//
//	word      class  whose memory     values
//	R_TAIL    far    the lock's home  0, or the last descriptor of the remote queue
//	L_TAIL    near   the lock's home  0, or the last descriptor of the local queue
//	VICTIM    plain  the lock's home  1 or 2: the local or the remote cohort yields
//	L_BUDGET  near   each rank's      -1 while the owner waits; else what is left of the budget
//	L_NEXT    near   each rank's      0, or the descriptor behind this one
//	R_BUDGET  flag   each rank's      the same in the remote queue
//	R_NEXT    flag   each rank's      the same in the remote queue
//
//	L_READERS near   the lock's home  readers of the local cohort; with Config.Shared
//	R_READERS far    the lock's home  readers of the remote cohort; the same
//
// A lock and a slot have a line of 64 bytes each. A rank has MaxHeld slots, each with a descriptor
// of both kinds, for all locks of a table. A descriptor is named 1 + rank*MaxHeld + slot.
//
// # Cost in remote operations
//
// For local ranks none. For a remote rank Lock without competition is a FetchAndOp and a Get, and
// Unlock a CompareAndSwap. With a predecessor Lock is the FetchAndOp and a Put, and at a used-up
// budget a Get more. With a successor Unlock is a Put, or a CompareAndSwap and a Put if the
// successor has not linked itself yet. A leader that finds the other cohort there makes a Put, and
// polls two words; other waits are on a rank's own memory.
//
// With Config.Shared a reader's Lock is an Accumulate and two Gets in one doorbell and its
// Unlock an Accumulate; a writer has two Gets more. A reader that finds a writer has the
// operations of a Lock and an Unlock more, and two Accumulates.
//
// # Readers
//
// The shared mode is not in the paper. A reader counts itself in its cohort's word, and is in if
// both TAILs are null then. Otherwise it takes the lock as a writer does, counts itself, and passes
// the lock on. A writer waits, with the lock taken, until it has seen each count at 0.
//
// # Fairness
//
// In its cohort a rank is first come, first served from the swap of TAIL on. Let q be the ranks of
// its cohort, B its cohort's budget and B' that of the other one. At most (q/B rounded up + 1) * B'
// - 1 entries of the other cohort come before it.
//
// # Where it differs from the paper
//
// NEXT is null whenever its descriptor is not in use, and BUDGET is set to -1 only where there is a
// predecessor, before that one knows the descriptor. A release that knows its successor makes no
// CompareAndSwap. The budget of a rank that need not wait is kept in the rank. VICTIM is written by
// a Put, only by a leader that finds the other cohort there. The public code has a loop of
// CompareAndSwap (docs/errata.md says what a search finds in it). TryLock and deadlines are not in
// the paper.
//
// # Deadlines and death
//
// A queued waiter never leaves the queue; with a context that can end, Lock polls TryLock instead of
// queueing. When a rank dies while it holds or waits, the lock is lost.
package alock
