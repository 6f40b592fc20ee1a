// Package rmamcs is RMA-MCS, the topology-aware distributed MCS lock of
//
//	P. Schmid, M. Besta, T. Hoefler: High-Performance Distributed RMA Locks.
//	HPDC 2016 (rma-rw), section 3.5, Listings 4 and 5.
//
// In the code Ln:m is Listing n, line m, of rma-rw.
//
// It is the distributed tree of queues of that paper without readers: package
// internal/queuetree, which says what the words are and where it differs from Listings 4 and
// 5. With a topology of one level it is D-MCS.
//
// # Fairness
//
// At each level first come, first served. An element at level i keeps the lock for at
// most T_L,i passings between the elements inside it while others wait; with
//
//	C_i = (T_L,i + 1) * C_i+1, and 1 beyond the leaf
//	F_i = elements inside an element of level i, ranks at the leaf
//
// a rank that has entered the queue of its element at level i is passed by at most
// (F_i - 1) * C_i+1 entries of ranks of that element before it has the lock: at the leaf
// by each of the others once, at the root by (F_1 - 1) * C_2 entries in all. It enters
// these queues one after the other, from the leaf out, each with one atomic operation.
// Promise has these bounds, and package check asserts them.
//
// With Config.Leaf Barging, the default from four ranks to a core on, the innermost elements are not first come, first served: a rank
// that runs may take the lock ahead of those that wait, and does not wait for the
// machine's scheduler to come round to them. A rank at the head of the leaf's queue is
// passed at most T_L times, T_L that of the leaf; one that has just entered it at most
// (F + 1) * (T_L + 1) - 1 times by ranks of its element.
//
// # Memory ordering
//
// As package lock says: Unlock synchronizes before the next Lock for all that the
// holder had flushed.
//
// # When a rank dies
//
// RMA-MCS does not recover: who waits behind a rank that died waits for ever, or until
// the backend notices (ErrPeer).
package rmamcs
