// Package degree is a job for the distributed hashtable: it counts how many edges
// each vertex of a graph has, by all ranks at once, and checks every count.
//
// Each rank reads its share of the edges into memory (16 bytes per edge). Then, in
// the timed phase, it adds 1 to the count of both ends of each edge, in a table of
// package dht with a volume at every rank, guarded by atomics or by a lock per
// volume. That is the hashtable benchmark of rma-rw, section 5.3, with a workload
// whose hot keys are those of a real graph and whose outcome is known.
//
// After a barrier every rank passes over the whole source once more, sequentially,
// counts the vertices of its own volume in ordinary memory, and compares: a vertex
// that is missing in the table, one too many there, and a wrong count are each a
// difference. No differences anywhere make a Result verified.
//
// At last, up to 2,000 edges per rank are inserted into a second table whose
// windows are counted (rma/hook): once uncounted, so that the vertices are there, as
// they are for most inserts of the timed phase, and once counted.
//
// A rank that fails, be it a malformed line or a full heap, ends the phase for
// itself alone and tells the others at its end: then all return an error, its own
// or one that quotes it and wraps rma.ErrPeer. No rank is left waiting.
package degree
