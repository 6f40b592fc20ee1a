// Package race is an extendible hash table on memory nodes, or on ranks where the job has no memory
// node. It follows
//
//	P. Zuo, J. Sun, L. Yang, S. Zhang, Y. Hua: One-sided RDMA-Conscious Extendible Hashing for
//	Disaggregated Memory. USENIX ATC 2021 (RACE),
//
// as section 5.3.1 of cider uses it, with local write combining ([cider.Policy]) as an option. Keys
// and values are byte strings. Clients work one-sidedly, also while the table grows. A
// [cider.Scheme] says how clients that change one key meet.
//
// # Where a key is
//
// Two hashes of a key choose two main buckets of its segment. Two main buckets share the overflow
// bucket between them, so a client reads each choice and its overflow bucket at once. A bucket has
// a HEADER and seven slots. A slot has eight bits of the hash, the length of the key's block, and
// its place. The last bits of the hash name the segment, as many as its depth says.
//
// A segment that is full is split. It keeps its number, and half of its keys go to the segment
// whose number has one bit more. So a segment's place follows from its number, and the directory is
// the depth of each segment. Clients keep a copy, and learn from the headers that they read where
// it is stale.
//
// # Words
//
//	word       class  whose memory        fields
//	HEADER     far    the segment's host  open, the segment (suffix), depth
//	SLOT       far    the segment's host  fingerprint, length, block, state, mark, wraps, version
//	DIRECTORY  far    the segment's host  splits, open, the segment, depth
//	LOCK       far    the segment's host  as package cider: one for each slot, in a region of their own
//	EPOCH      far    the segment's host  as package cider
//	blocks     plain  package remote      lengths and hash, checksum, key, value
//
// Segment s is at host s modulo the number of hosts. All words are 0 at first. That is an open
// bucket in the segments of the start, and a closed one in the others.
//
// # Insert
//
// An insert puts the key into an empty slot as tentative, reads its buckets again, and commits it
// if no other client has the key there. Of two clients that insert a key at least one sees the
// other. It undoes the other's tentative key, or its own and begins again. RACE reads again too,
// and keeps one of two keys that it finds. Then a key for which an insert has answered may be lost
// (docs/errata.md). The second read is in the doorbell of the first CompareAndSwap, so that an
// insert takes no round trip more.
//
// # Splits
//
// DIRECTORY says that a segment is being split. Then each bucket is split. Its HEADER gets the next
// depth. The keys that move are frozen, so that no client changes them there. Each is copied to the
// slot of the same number in the new segment; slots with nothing to copy get a mark there. Then the
// new bucket is opened. A client may repeat each step, or do it in place of another client: nothing
// is copied into a slot that is not 0, and no slot becomes 0 again. A client that needs to change a
// key of a bucket in between finishes that bucket first. A search does not: it reads the old
// bucket, then the new one. At last the frozen keys are taken from their old slots, as by a
// deletion, so that clients that wait in the queue of one find that the key has moved. When all
// buckets are split DIRECTORY says so.
//
// The words of a read may be of different times. A slot has a mark: the doublings of its bucket
// when the last split came by. Where a slot's mark is later than its HEADER, the client reads
// again. Without it a search could read a HEADER before a split and a slot after it, and miss a key
// that is there all the time.
//
// # Cost in remote operations, where no other client is there
//
//	Search            2 GetBulk; GetBulk of the block. A key that is absent: 2 GetBulk
//	Insert            PutBulk and 2 GetBulk; CompareAndSwap and 2 GetBulk; CompareAndSwap
//	Update, Delete    2 GetBulk; GetBulk of the block; then as cider.Sync.Change: optimistically
//	                  PutBulk and CompareAndSwap
//	a split           for each bucket some 20 operations, and a deletion for each key that moves
//
// Operations between semicolons are one round trip. A key in 12 reads one block more, of another
// key with its fingerprint, in the same round trip. A client that has an old depth takes one more
// for each split that it has missed. Beside these a client enters a section of package remote once
// in Config.Section operations.
//
// # What is promised
//
// Operations on a key are linearizable, whatever dies. Searches wait for no client; the others do
// where the scheme has a queue or a lock. Others finish a split that a dead client began; they wait
// for the leases of a slot's queue if a dead client is in it. A death loses what package remote
// says: at most 32 blocks for each operation of a section, 1,024 blocks by default. It also loses a
// block and a slot of an insert that was under way; the slot comes back when its bucket is split or
// full.
//
// A client stops for less than ten seconds in the middle of an operation: that is the lease of its
// sections. A slot counts its deletions modulo 64, and package cider modulo 16. So a client may
// miss a multiple of 16 deletions of the slot between two of its steps. If its key has moved, and
// the slot has the queue of another key, it may take that key's update for its own.
//
// # Where it differs from RACE
//
// Segments have fixed places, and so their memory is reserved at the start. The directory has no
// pointers, and a client that finishes another's split finds the new segment. Keys of a split keep
// the numbers of their slots. Inserts are tentative first. All keys that a read finds have one
// owner word; nothing is locked in a split. Lock entries are cider's. Clients read no copy of the
// whole directory: they follow the headers.
package race
