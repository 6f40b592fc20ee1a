// Package rmamcs is RMA-MCS, the topology-aware distributed MCS lock. It follows
//
//	P. Schmid, M. Besta, T. Hoefler: High-Performance Distributed RMA Locks.
//	HPDC 2016 (rma-rw), section 3.5, Listings 4 and 5.
//
// In the code Ln:m is Listing n, line m, of rma-rw.
//
// It is the distributed tree of queues of that paper without readers. A rank queues in its
// innermost element (a node, say), and the head of that queue queues in the element around
// it, up to the machine. The lock passes within an element up to T_L,i times before it goes
// to another one. With a topology of one level it is D-MCS. The code is in package
// internal/queuetree, which also says where it differs from Listings 4 and 5.
//
// # Words
//
// Level i counts from 0, the root; level i is near if each of its elements lies in a node.
//
//	word    class      whose memory                     values
//	NEXTi   near/flag  each rank's, 16 nodes            0, or the queue node behind this one
//	STATUSi near/flag  each rank's, 16 nodes            0 idle, 1 wait, 2 acquire the next
//	                                                    level out, or a grant: bit 62, the
//	                                                    passings so far, and the node that
//	                                                    stands for the element one level out
//	TAILi   near/far   a rank of the element; the root  0, or the last queue node
//	                   at the lock's home
//	STATE   near       beside the leaf's TAIL, with a   0, held, closed, and as in a grant
//	                   barging leaf
//
// A rank takes 256 bytes a level, a lock 8 bytes a level at the host of its TAIL.
//
// # Cost in remote operations
//
// Uncontended, Lock is one FetchAndOp a level and Unlock one CompareAndSwap a level; those
// of near levels are CPU atomics. A handover within the innermost element is one Put. A
// rank that waits makes none. docs/locks/rmamcs.md has the steps and a picture.
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
// With Config.Leaf Barging, the default where several ranks share a leaf, the innermost
// elements are not first come, first served: a rank that runs may take the lock ahead of
// those that wait, and does not wait for the machine's scheduler to come round to them. A
// rank at the head of the leaf's queue is passed at most T_L times, T_L that of the leaf;
// one that has just entered it at most (F + 1) * (T_L + 1) - 1 times by ranks of its
// element.
//
// # Memory ordering
//
// As package lock says: Unlock synchronizes before the next Lock for all that the
// holder had flushed.
//
// # When a rank dies
//
// RMA-MCS does not recover: ranks behind one that died wait for ever, or until the backend
// notices (ErrPeer).
package rmamcs
