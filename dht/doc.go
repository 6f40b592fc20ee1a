// Package dht is the distributed hashtable. It follows
//
//	P. Schmid, M. Besta, T. Hoefler: High-Performance Distributed RMA Locks.
//	HPDC 2016 (rma-rw), section 5.3.
//
// It maps 64-bit keys to 64-bit values. Its parts are local volumes, each in the
// memory of one rank: a table of slots and an overflow heap for the elements that
// found their slot taken, both of fixed size. Every rank reads and writes every
// volume one-sidedly; no rank serves another.
//
// # Two ways of synchronising
//
// Without Config.Locks every operation is made of atomics alone, the paper's
// foMPI-A. All words are of class Far. The table is lock-free: retries of one rank
// mean progress of another, and a rank that is slow or dead between two steps blocks
// no other; at worst a heap element is lost with it.
//
// With Config.Locks, any lock.Table of this module with a lock per volume (lock v
// guards volume v), Insert and Add hold the lock exclusively, Lookup and Range in
// shared mode, and the words are of class Flag, reached by plain Put and Get.
// Fairness, and what happens when a rank dies, are then the lock's.
//
// Both are linearizable: every operation takes effect at one moment between its
// call and its return. What a rank had flushed before its Insert or Add is visible
// to every rank that finds the value.
//
// # Words
//
//	word       number   values
//	FREE       1        heap elements given out since the start
//	SPARE      1        stack of elements that lost their race: pushes<<32 | top
//	slot.KEY   Slots+1  0 while no key has claimed the slot, else that key, for ever
//	slot.BASE  Slots+1  0: the key is absent; 2b+1: it was created with the value b;
//	                    2e: its value is in heap element e
//	slot.ADDED Slots+1  sum of the Adds since: the value is b + ADDED
//	slot.LAST  Slots+1  heap element linked last, 0 for none
//	heap.KEY   Heap     the element's key
//	heap.VALUE Heap     its value
//	heap.PREV  Heap     the element linked before it, 0 for none
//
// All lie in the memory of the rank whose volume it is, and are of class Far, or
// Flag with locks. Heap elements are named from 1. A volume is 2 + 4*(Slots+1) +
// 3*Heap words of 8 bytes ([Config.Bytes]); windows are symmetric, so a rank
// without a volume contributes as much.
//
// No key and no value is reserved. Key 0, which in slot.KEY would say that the slot
// is unclaimed, has a slot of its own behind the others, where KEY is not looked at.
//
// # Protocol with atomics
//
// A key belongs to one slot. CAS of slot.KEY from 0 claims the slot for a key, for
// ever; that does not make the key exist. What does is a CAS of slot.BASE from 0,
// which carries the value with it: there is no moment at which a key is there and
// its value is not. Values beyond 63 bits do not fit beside the tag bit in BASE:
// these are written into a heap element and flushed before the CAS shows it. Adds
// go to a word of their own, ADDED, with one FAO.
//
// Where another key has claimed the slot, the element goes to the heap: FAO of FREE
// takes one, its words are written and flushed, and a CAS of slot.LAST links it
// (the paper's second CAS). PREV of the new element names the one before, so that
// the CAS that publishes also links, and no rank ever meets an element that is half
// in the chain. The CAS expects the LAST from which the rank has looked through
// the chain for the key; when it fails, only the elements linked since are looked
// through. So a key appears once: the rank that loses the race finds it there.
//
// An element that is not needed because its key appeared meanwhile was never
// visible; it goes to a stack of spares in the volume, from which elements are
// taken when FREE has come to the end. SPARE counts the pushes, so that a pop that
// slept through pops and pushes fails (unless through 2^32 pushes).
//
// # Cost in remote operations
//
// With c elements of the chain looked at; operations on one line need one round
// trip to the volume (one Flush):
//
//	Lookup   GetBulk of the slot
//	         c times: GetBulk of an element
//	Add      as Lookup, then
//	         FAO of the value, or as Insert from its second line when absent
//	Insert   CAS of slot.KEY with GetBulk of the slot
//	         CAS of slot.BASE, if the slot is the key's; otherwise
//	         c times: GetBulk of an element; then, when absent,
//	         FAO of FREE
//	         PutBulk of the element
//	         CAS of slot.LAST
//
// An Add that creates a key in an unclaimed slot spends one more CAS. Insert or Add
// of a value beyond 63 bits first reads the slot, and creates in it with FAO, PutBulk
// and CAS; reading it takes one more Get. A full heap costs FAO, Accumulate and Get.
//
// With locks, beside those of the lock: GetBulk of the slot, c times GetBulk of an
// element; then one Put for an Add, one PutBulk to create in the slot, or Get of
// FREE and then PutBulk and two Puts with one Flush to create in the heap.
//
// # Combined Adds
//
// With Config.Combine, ranks of a node that add to one key at once queue up in node memory.
// The first of them takes the lock and makes one Add of the sum, at the cost above, and gives
// each other one the value that it would have found; the others make no operation on the
// table and none on the lock. An Add that meets no other one has four stores and two atomics of
// node memory more. The idea is that of cider, section 4.2; combine.go says what is different for
// sums, and why it ends at the node and goes with locks only.
//
// # Differences from the paper
//
// The paper's elements are integers, inserted without asking whether they are
// there; here they are keys with values, and a key appears once. Its chains are
// followed from the first element and LAST serves to append; here they are followed
// from the last one, which makes the append a single CAS. Nothing is deleted.
package dht
