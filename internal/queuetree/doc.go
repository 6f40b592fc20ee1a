// Package queuetree is the distributed tree of queues. It follows
//
//	P. Schmid, M. Besta, T. Hoefler: High-Performance Distributed RMA Locks.
//	HPDC 2016 (rma-rw), sections 3.2.2, 3.2.3, 3.3.1 and 3.3.2.
//
// In the code Ln:m is Listing n, line m, of rma-rw.
//
// On its own the tree is RMA-MCS (section 3.5) and below a distributed counter the
// writers' side of RMA-RW. Every element of the machine at every level has a queue, a
// D-MCS lock; the rank at the head of an element's queue enters the queue of the element
// around it, up to the root. Levels count from 0, the root, to Leaf (the paper's 1 to
// N).
//
// # Words
//
//	word        class      whose memory            values
//	NEXTi[k]    near/flag  the rank with node k    0, or the successor's node in the queue of level i
//	STATUSi[k]  near/flag  the rank with node k    see below; the rank waits on it for level i
//	TAILi[x]    near/far   HostOf(i, element, id)  0, or the last node in the element's queue
//
// With Config.Barging there is STATE too, beside the leaf's TAIL: barging.go.
//
// A level is near if each of its elements lies in a node. Node k of rank r is named
// 1 + r*Slots + k in all queues.
//
//	STATUS      meaning
//	idle 0      the node is not lent
//	wait 1      its rank waits
//	parent 2    acquire the next level out (ACQUIRE_PARENT); at the root, from the readers (MODE_CHANGE)
//	granted     the lock, with the number of passings in the element so far and the node
//	            that stands for the element at the next level out
//
// # The owner of a queue node
//
// Listings 4 and 5 use the releaser's own node at every level. But where the lock was
// passed within an element, the releaser has no node at the levels outside it: the rank
// that climbed has. Taken literally, the releaser waits there for ever for a successor
// that never comes. In HMCS (Chabbi, Fagan, Mellor-Crummey, PPoPP 2015) nodes outside
// the leaf belong to the element. Here they belong to the rank that climbed, so that it
// waits on its own memory also where the element spans nodes, and are lent to the
// element with the lock: a grant names the node at the next level out, and that node's
// STATUS names the one further out. The rank that releases at a level reads NEXT and
// STATUS of the lent node there, and returns it by setting STATUS to idle. A rank that has
// lent Slots-MaxHeld nodes does not pass the lock within its element, but releases it to
// the next level out, as if T_L,i were reached.
//
// # Cost
//
// Memory: Slots * levels * 16 bytes a rank, and 8 bytes a level for each lock that has
// its TAIL at the rank. Operations: a swap and a CAS per level without competition.
package queuetree
