// Package cider is a key-value store on memory nodes whose updates of one key are combined across
// clients. It follows CIDER (cider), a framework of pessimistic synchronization for
// memory-disaggregated key-value stores.
//
// In the code An:m is Algorithm n, line m, of cider. Where text and public code
// (FSX21asf/cider, f570c31) differ, the text is built.
//
// A [Sync] synchronises changes of slots, which any index owns. The index here, [Store], is the
// pointer array of section 5. Key k has a pointer, which leads to a block of package remote. The
// block has the key, a checksum and the value. A search reads both. An update writes a new block
// and changes the pointer by CompareAndSwap. How clients that update one key meet is the [Scheme]:
// O-SYNC, a spin lock, ShiftLock's queue of writers, or that with the two parts of cider.
//
// # Global write combining (4.2)
//
// Clients that update a key queue at its lock. The client whose turn it is, and that sees another
// one behind, coordinates: it has the last of the queue execute. The executor writes its value, and
// the answer goes along the queue. Its update stands for all before it, which are inside their
// calls too: the last writer wins. Inserts stay out of the queue. A deletion is the last of its
// queue. It raises the lock's version, which rejects later updates, and then the pointer's.
//
// # Contention-aware synchronisation (4.3)
//
// A client updates a key optimistically until two updates in a row needed two retries of their
// CompareAndSwap or more. Then the key has a credit of 36 updates through the queue. An executor
// that stood for more than itself adds 2 to the credit, and one that was alone halves it. The
// clients of a node share these credits.
//
// # Local write combining and read delegation (3.1)
//
// With Policy.Local the clients of a node, in groups, meet before any remote operation. The first
// that updates a key works alone. Those that come meanwhile wait; then the last of them works for
// all, with its own value. Searches do the same, and the others copy the result. A client that has
// waited for six leases goes on alone: a node-mate that dies delays it by that time.
//
// # Words
//
//	word      class  whose memory      fields
//	POINTER   far    the key's host    words, block, version
//	LOCK      far    the key's host    resets, tail, version
//	EPOCH     far    the key's host    releases
//	NEXT      plain  a client          for, from
//	STATUS    plain  a client          for, info, result, batch or coordinator
//	HEAT      near   one of a group    key, credit, retries; Policy.Hot of them
//	ENTRY     near   one of a group    tag, tenure, top; Policy.LocalKeys, for updates and for searches
//	ANSWER    near   a client          for, kind, worker
//	LINK      near   a client          for, the client below in the stack
//	STAMP     near   a client          the search whose result is in VALUE
//	KEY       plain  a client          length and bytes
//	VALUE     plain  a client          length and bytes
//
// Key k is at host k modulo the number of hosts: 24 bytes, as in section 4.6, and its block. A
// message names the entry of its receiver by a number, so that a late one is for no other. A
// client has room for 8 bytes for each hot key, of which a node uses one client's. With Policy.Local
// it has 32 bytes for each of LocalKeys, and 1,112 for its own key and value.
//
// # Cost in remote operations, where no other client is there
//
//	Search                    Get; GetBulk
//	Insert, optimistic update Get; PutBulk and CompareAndSwap
//	Update through the queue  Get; MaskedSwap; PutBulk and CompareAndSwap; CompareAndSwap and
//	                          Accumulate
//	A combined update         Get; MaskedSwap, and 2 messages; the coordinator Get too
//	One that a node-mate made none
//
// Operations between semicolons are one round trip. Beside these a client enters a section of
// package remote once in Config.Section operations. Without rma.Caps.MaskedSwap, as on MPI and plain
// verbs, the MaskedSwap is a loop of CompareAndSwap: one where the lock is free and was never reset.
//
// # What is promised
//
// Operations on a key are linearizable, whatever dies: every change is a CompareAndSwap of the
// pointer, and an answer is only passed on after one that won. When a queue has stood still for
// three leases a client that waits empties it (4.6), and the lock gets the pointer's version. With
// Spin no client takes over a dead holder's lock.
//
// A client stops for less than ten seconds in the middle of an operation: that is the lease of
// its sections. A death loses what package remote says: at most 32 blocks for each operation of
// a section, 1,024 blocks as it comes.
//
// # Where it differs from the paper
//
// An update that the lock rejects waits until the pointer shows the deletion (4.2.2 answers at
// once, which is not linearizable: docs/errata.md). Resets have a number in LOCK, and EPOCH counts
// releases alone. Clients reset a lock themselves.
//
// Credits are a node's, as in the text. The public code has them for each client, which
// Policy.Share 1 is: then each learns by itself that a key is hot. A node has so many words for
// keys, and a key takes the place of another that has no credits left.
//
// SMART's table, from which local write combining comes, has a buffer of each key for its last
// value. Here a client's value stays its own, since one that comes late into a shared buffer is
// written twice (docs/errata.md).
//
// Deletions of a slot are counted to 16. A client may stop between its read of the pointer and its
// entry into the queue. If 16 deletions and inserts pass meanwhile, it takes the new key for the
// old one. In the array that is the same key, so it does no harm.
package cider
