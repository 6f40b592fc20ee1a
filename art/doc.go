// Package art is an adaptive radix tree on memory nodes, or on ranks where the job has no memory
// node. It follows
//
//	X. Luo, P. Zuo, J. Shen, J. Gu, X. Wang, M. R. Lyu, Y. Zhou: SMART: A High-Performance Adaptive
//	Radix Tree for Disaggregated Memory. OSDI 2023,
//
// as section 5.3.2 of CIDER (package cider) uses it. Keys have 0 to [MaxKey] bytes and values up to
// [MaxValue]. Inner nodes are changed in place by CompareAndSwap, without locks. A key has a leaf,
// with the pointer to its value. A scheme of package cider says how clients that change one key
// meet.
//
// # Words
//
//	word     class  number        fields
//	HEAD     far    each node     depth 12 | bytes 3 | prefix 48
//	EXTENT   far    3 a node      the block with more slots of the node, or 0
//	SLOT     far    4 a node,     symbol 9 | kind 2 | block 48
//	                12, 32 and
//	                209 an extent
//	LOCK     far    each leaf     as in package cider; EPOCH follows
//	POINTER  far    each leaf     words 12 | block 48 | version 4
//	ID       far    each leaf     bytes of the key 12 | client 14 | number 38
//	key      far    each leaf     its bytes
//	value    plain  each key      ID of the leaf, checksum, bytes of the value, value
//
// The root is at host 0, other blocks are of package remote. A symbol is a byte of a key, or its
// end, so that a key may begin with another one. All keys of a node are equal before depth, and the
// symbol there chooses the slot. Where keys share more than six bytes below their parent, a row of
// nodes leads to their node, six bytes and a symbol each.
//
// # Nodes
//
// A node has 4, 16, 48 or 257 slots: it grows by a block with more, to which EXTENT leads, and
// whose first slot is used already. So a slot never moves, and nothing is frozen. SMART gives each
// node the room for all slots at once. A slot is used for the first time only by a client that has
// seen all slots before it used by other symbols. It keeps its symbol for good. So two clients that
// add one symbol choose the same slot, and one of them finds what the other has written.
//
// A slot with a leaf becomes one with a node when a second key comes there, and one with a node
// gets a node between when a key differs in the bytes of its head. Both are one CompareAndSwap to a new
// node that leads to what was there. Nodes are never taken out, so all that is below a node stays
// below it, and HEAD never changes.
//
// # Leaves
//
// A leaf is where the clients of a key meet: LOCK, EPOCH and POINTER are a slot of package cider.
// The leaf does not move while its key is there, whatever becomes of the slot that leads to it. So
// clients that queue at a key do not notice that a node grows or splits. A leaf has one key: an
// update that stands for another is of the same key.
//
// A deletion empties POINTER, for good. Then the client takes the leaf's ID away, takes the leaf
// out of its slot, and frees it. An insert that finds a dead leaf puts a new one into its
// place.
//
// # Copies
//
// A client keeps copies of nodes in a [Cache] of a number of bytes. They may be old, and need no
// reverse pointers as SMART's, since nodes do not move. What leads down in a copy still does. What
// is not there is read again before a key is taken for absent. A leaf is read where a copy says; it
// counts if it has the ID that it had when a slot led to it, and the key, and is not dead. Then it
// is in the tree. A section of package remote that began after a leaf was freed cannot see
// its ID there, so the words that are read together are of one leaf.
//
// # Cost in remote operations
//
// Where the copies are right, no other client is there, and all blocks are at one host:
//
//	Search                    GetBulk; GetBulk
//	Insert                    GetBulk; 2 PutBulk and CompareAndSwap
//	an insert that splits     GetBulk; Get and GetBulk; 3 PutBulk and CompareAndSwap
//	Update, optimistic        GetBulk; PutBulk and CompareAndSwap
//	Delete, optimistic        GetBulk; CompareAndSwap; CompareAndSwap; CompareAndSwap
//	Scan                      a GetBulk for each node, and for 16 leaves two round trips
//
// Operations between semicolons are one round trip. Each node that has no copy costs one, two where
// it has extents that are not known. A leaf that a copy leads to for the first time costs one Get
// more. A key of more than 32 bytes costs a GetBulk more. A section costs what package remote says.
//
// # What is promised
//
// Operations on a key are linearizable, whatever dies: an insert takes effect with the
// CompareAndSwap of a slot, an update and a deletion with that of POINTER. Of a Scan each key is a
// Search of its own. An operation is lock-free: it fails only where another one succeeds.
//
// A client stops for less than ten seconds in the middle of an operation: that is the lease of its
// sections.
//
// # Death
//
// A client that dies leaves a tree in which the others go on. It loses what package remote says, of
// which two blocks and the row of nodes of one insert, and the leaf and the value of one deletion
// are part. A leaf whose deleter died stays in its slot until a key comes there. Nodes are not given
// back: a tree keeps as many as its keys ever needed.
package art
