// Package btree is a B+tree on memory nodes, or on ranks where the job has no memory node. It follows
//
//	Q. Wang, Y. Lu, J. Shu: Sherman: A Write-Optimized Distributed B+Tree Index on Disaggregated
//	Memory. SIGMOD 2022,
//
// as section 6.8 of declock (DecLock) uses it. Keys and values have 64 bits; the largest number is no
// key. Reads take no lock: they find out whether what they read is whole. A write locks one node
// at a time.
//
// # Words
//
//	word      class         number    where        values
//	ROOT      far           1         host 0       the root's name; 0: no client has made it
//	NODELOCK  far           Config    each host    0 free; else who holds it (the tree's own locks)
//	TICKET    near          each      first rank   next ticket of a local lock (vanilla)
//	TURN      near          NODELOCK  of a node    ticket whose turn it is 60 | hand-overs in a row 4
//	nodes     plain                   package      header: version, fences LOW and HIGH, SIBLING,
//	                                  remote       LEFTMOST child, checksum; then slots of KEY, VALUE, CHECK
//
// A node has 1 KB: 40 slots, not in order. Slots of an inner node hold the children by their
// least keys.
//
// # Torn reads
//
// Words of a read may be of different times. Sherman's two versions at the ends of a node, and of
// an entry, rest on a network card that reads in the order of addresses. Here each slot has a
// checksum of its words, its place and the node's version, and the header has one of its own. A
// write of a slot changes its three words. A split writes the whole node, with the next version, so
// that no slot of the old one goes with the new header, nor the reverse. A reader takes the words
// if all checksums hold. Each slot is then as it was at some moment of the read, and all are of one
// version. A key is in one node of a version, so the answer was right at one moment. A reader that
// finds a node torn eight times takes its lock, and so ends whatever writers do.
//
// # Splits
//
// The upper half of a full node goes to a new node, complete before the old one leads to it as its
// SIBLING. Then the parent gets the new node's least key. Until that, and where a client has an old
// copy of an inner node, a search goes right until the fences cover its key (P. L. Lehman, S. B.
// Yao: Efficient locking for concurrent operations on B-trees, TODS 1981). Nodes never merge and
// are never freed: a Delete empties a slot, as Sherman's.
//
// # Locks
//
// Any lock.Table of this module, with a lock for each hash of a node's name; or the tree's own.
// "vanilla" is Sherman's hierarchy: tickets among the clients of a compute node, and a
// CompareAndSwap by one of them. The lock is handed over at most eight times in a row. "nh" is the
// CompareAndSwap alone. docs/locks/sherman.md has the steps and a picture. With the tree's own
// locks a write and the release are one doorbell, with a Fence between them. Those of a Table lie
// in another window, which no Fence orders: there the write is complete before the Unlock.
//
// # Cost in remote operations
//
// Where the inner nodes are in the Cache, beside what waiting costs:
//
//	          vanilla, nh                          a lock.Table
//	Get       GetBulk                              GetBulk
//	Set       CompareAndSwap; GetBulk; PutBulk     Lock; GetBulk; PutBulk; Unlock
//	Delete      and Accumulate                     the same
//	a split   beside it PutBulk of the new node, and a Set in the parent
//	Scan      one round trip for up to 16 leaves
//
// Operations between semicolons are one round trip. A hand-over saves CompareAndSwap and
// Accumulate.
//
// # Death
//
// The tree's own locks do not recover: a client that dies with one stops the writers of its
// nodes. With a lock that recovers the others go on. A client that dies in a write may leave a
// node half written: then all who need it get [ErrTorn]. One that dies in a split before that
// write or after it leaves the tree right, with a node that is never used, or a longer way to it.
//
// Nothing mends a node that is half written, nor does Sherman; DecLock's section 4.6 recovers the
// lock, and leaves the data to the application. What the words held before is lost with them: to
// keep it, each Set would have to write its slot twice, the first time to a log. The other nodes
// are as they were: a Scan up to the keys of that node finds them.
//
// # Where it differs from Sherman
//
// Nodes have checksums in place of versions, and so 40 entries of a leaf and not 54. Entries have
// one size. The release is a sum and not a write of 0. Global locks are in the memory of the memory
// node, 4,096 a host by default and not 32,768. (In virtual time bench.Virtual.Device puts them
// into the memory of its card.) A reader of torn nodes ends, as it takes the lock.
package btree
