// Package rmarw is RMA-RW, the topology-aware distributed reader-writer lock. It follows
//
//	P. Schmid, M. Besta, T. Hoefler: High-Performance Distributed RMA Locks.
//	HPDC 2016 (rma-rw), sections 3.1 to 3.4, Listings 4 to 10.
//
// In the code Ln:m is Listing n, line m, of rma-rw. Listings 4, 5 and 8, and the queue of
// Listing 7, are in package internal/queuetree; the rest is here.
//
// Writers meet in the distributed tree of queues (package internal/queuetree). Readers meet
// in the distributed counter: each touches one of its physical counters, writers visit all
// of them. docs/locks/rmarw.md has the steps, their costs and a picture.
//
// # Words
//
// Besides the tree's, which package rmamcs lists, each lock has these for each physical
// counter, at the rank that hosts it. There are two kinds of physical counters. The
// symmetric one is the paper's:
//
//	ARRIVE         far   bit 62: WRITE, a writer has or wants the lock
//	                     bits 24 to 61: the phase
//	                     bits 0 to 23: readers that arrived in the phase
//	DEPART         far   bits 24 to 63: phases ended
//	                     bits 0 to 23: readers that departed in the phase, less those that
//	                     were let in at its beginning
//	OPENED         far   phases opened
//	OPENER_SIGNAL  far   goes up when the reader that waits to open a phase must look again
//
// The asymmetric one is for readers that never leave their node. It is the default where
// ranks are on several nodes and the readers of each counter on one, and with a barging root:
//
//	READERS        near  bits 0 to 12: readers inside, or about to look at ADMISSION
//	                     bits 13 to 25 and 26 to 38: readers that wait for the end of an
//	                     even phase and of an odd one
//	                     bits 39 to 63: arrivals
//	ADMISSION      flag  near with a barging root
//	                     bits 0 to 24: the limit, up to which arrivals are let in
//	                     bit 25: LIMITED, a writer waits; bit 26: SHUT, a writer is in
//	                     bits 27 to 63: the phase
//
// # The symmetric counter, and why it is not as printed
//
// Listings 6, 7 and 9 let readers in that a writer does not see, and let readers wait
// for ever (docs/errata.md has the schedules). The two words and what they count, WRITE
// and T_R are kept; the rest is rebuilt around phases.
//
// A phase is what happens at a physical counter between two writers. A reader arrives
// with one FAO. If it finds WRITE not set and fewer than T_R before it in the phase, it
// is in (Listing 9, lines 12 and 13). Otherwise it stays counted, does not try again,
// and waits for OPENED to say that the next phase has been opened. Then it is in, however
// many wait. So no reader backs off (line 24), and a reader that waits is overtaken by one
// phase at most.
//
// A writer sets WRITE at each counter (Listing 6, lines 2 to 7). The FAO tells it how
// many readers the phase has let in, min(arrived, T_R), and DEPART when all of them
// are gone: that is the second check of section 4.1. When writers give the lock to
// readers (Listing 8), a new phase is opened at each counter. ARRIVE is swapped for an
// empty one of the next phase, which tells how many waited; these and the old phase's
// are subtracted from DEPART, and then OPENED goes up. In this order DEPART says too
// little in between and never too much.
//
// Where a phase is full and no writer is there, the one reader that found exactly T_R
// before it opens the next phase itself (lines 15 to 21), once the full one has
// departed. It looks at the root's TAIL: a writer that is there will open the phase,
// since writers leave the queue first and give the lock to the readers then.
// OPENER_SIGNAL tells the reader to look again.
//
// Before a writer sets WRITE at a counter it waits until no reader is in, or the phase
// is full: T_R is what it grants the readers (section 3.2.3).
//
// # The asymmetric counter
//
// A reader counts itself in READERS and then looks at ADMISSION; a writer writes ADMISSION
// and then looks at READERS: one of the two sees the other. No word is changed by both
// sides, so readers use CPU atomics, and writers a Put and a Get (asym.go).
//
// # Fairness
//
// With F and C as in package rmamcs, and C_1 = (T_L,1 + 1) * C_2: a reader that has
// arrived is passed by at most C_1 entries of writers. Writers are passed by writers as
// in RMA-MCS. A writer in the root's queue is passed by at most
//
//	(3 + (F_1 - 1) / (T_L,1 + 1)) * (K * T_R + P - 1)
//
// entries of readers, where K is the number of counters: the phases are the present one,
// one that a reader opens that has not seen the writer or one that the writer before is
// opening, those of the writers before it in the queue, and one where a TryLock before it
// fails; in each phase a counter lets T_R in and those that waited. Promise has these
// bounds, and package check asserts them. With asymmetric counters the last one holds
// for each counter from the writer's announcement on, T_R and those that are about to
// enter, and not from the queue; and a reader is passed by at most C_1 entries of writers
// from when it has counted itself among those that wait, and by 2 * C_1 from its arrival
// on: between the two it looks at ADMISSION, and a slow one may see that of the next phase.
//
// With Config.Leaf Barging the leaf is the barging one of package rmamcs: a writer that has
// entered its element's queue is passed by at most (F + 1) * (T_L,N + 1) - 1 writers of the
// element, F its ranks. Readers pass a writer as above from when it, or the rank that
// stands for its element, is in the root's queue. Promise has no bound for that, as no
// number of the writer's own operations tells when that is.
//
// With one level, the default on one node, the barging leaf is the root, and counters are
// asymmetric. STATE then also says whether the lock that is passed on is closed to the
// readers: a writer keeps it closed when it has seen no reader in 8 tenures, and else opens
// the counters. A reader that is not let in takes its arrival back, waits for the next phase
// and tries again, 16 times, before it waits in line: a writer need not wait until a reader
// that only tries gets a core. So its bound holds from its 17th arrival on. A writer that has
// STATE closes the counters at once (barging.go): T_R is not used, and only those readers pass
// the writer that are inside or in line.
//
// # Memory ordering
//
// As package lock says.
//
// # When a rank dies
//
// RMA-RW does not recover: a rank that waits for one that died waits for ever, or until
// the backend notices (ErrPeer).
package rmarw
