// Package store is an object store on memory nodes, or on ranks where the job has no memory
// node: the application of section 6.8 of
//
//	DecLock: A Case of Decoupled Locking for Disaggregated Memory (declock).
//
// Objects are byte strings, named by numbers from 0 on. A lock guards each: any lock.Table of
// this module. Get holds it in shared mode, Set and Delete exclusively. Every object
// has a version, which each Set and each Delete raises by one, and a checksum.
//
// # Two layouts
//
// With Config.Fixed an object has its place, with room for so many bytes: a Get is one read and
// a Set one write, as in the paper's runs. A Set that is to know the version reads it first;
// with Config.Blind it does not, and versions are the writer's own count.
//
// Otherwise an object is a block of package remote, which one word leads to. A Set writes a new
// block and then the word, so a client that dies in a Set leaves the old object or the new one.
//
// # Words
//
//	word      class  number               values
//	HEADER    plain  objects (fixed)      length in bytes 20 bits | version 44 bits; 0: never set
//	CHECK     plain  objects (fixed)      checksum of the object's number, its header, and its data
//	data      plain  Fixed/8 an object
//	ENTRY     plain  objects (not fixed)  words of the block 16 | its name 48; words 0: absent, with
//	                                      the version of the Delete in place of the name
//
// A block has HEADER, CHECK and data in the same order. Object i is at host i modulo the number of
// hosts. Plain, since a holder that lost its lease may still write.
//
// # Cost in remote operations
//
// Beside the lock's:
//
//	         Fixed                     not fixed
//	Get      GetBulk                   Get; GetBulk
//	Set      Get; PutBulk              Get; GetBulk of the header, with Enter's Put and Get; PutBulk; Put
//	         with Blind: PutBulk
//	Delete   Get; PutBulk              as Set, without PutBulk
//
// Operations between semicolons are one round trip. All are complete before the Unlock.
//
// # What a get returns
//
// Sets, gets and deletes of an object are linearizable while the lock excludes. Where a holder dies,
// or loses its lease, the lock's next holder may find a fixed object half written: Get
// returns [ErrTorn], and the next Set mends it. A get whose own lease ran out returns
// lock.ErrLeaseLost, and its data must not be used.
package store
