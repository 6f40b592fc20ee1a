// Package dslr is DSLR, the bakery of tickets in one word, for readers and writers. It follows
//
//	D. Y. Yoon, M. Chowdhury, B. Mozafari: Distributed Lock Management with RDMA:
//	Decentralization without Starvation. SIGMOD 2018 (dslr).
//
// In the code An:m is Algorithm n, line m, of dslr.
//
// A rank draws a ticket with one FetchAndOp, which also tells it all tickets before its own.
// It waits until those that exclude it are released, by reading the word, and releases its
// ticket with one FetchAndOp more. Ranks enter in the order of their tickets; readers between
// two writers enter together.
//
// # Words
//
//	word   class  whose memory                     fields
//	LOCK   far    the home: memory node or rank    died, gen, nX, nS, maxX, maxS
//
// max counts the tickets drawn, n those released, each for writers (X) and readers (S). The
// word of a free lock has n equal to max. With Config.Updates there are nU and maxU too.
// A lock takes 8 bytes, and a rank some 8 KB for a table of any size.
//
// # Cost in remote operations
//
// An uncontended Lock is one FetchAndOp, and so is an Unlock. A rank that waits reads the word
// once per look: at the pace of the backend, or every Config.Omega for each ticket ahead
// (section 4.6). CompareAndSwaps are for repairs: resets, dead ranks, leases that ran out.
//
// # Leases and death
//
// A holder has a lease. After two leases without a release the first rank to notice passes
// over all tickets before its own (section 4.7). Then a rank that was passed over draws
// again; if it holds other locks of the table it gets lock.ErrGiveWay first, as ranks may
// wait for each other in a circle. A holder that was passed over gets lock.ErrLeaseLost from
// its Unlock. A holder behind a writer that was passed over gets lock.ErrOwnerDied.
//
// A lock whose holder died is free again two leases after the last release at most, for each
// rank that dies.
//
// What a rank writes under a lock after its lease has run out is its own risk, as with any
// lease; [Table.Token] lets storage refuse it. Release by FetchAndOp rests on time too: it
// must take effect within one lease after the rank looked at its clock. ReleaseByCAS does
// not.
//
// # Resets
//
// The rank whose ticket brings a max to COUNT_MAX resets the word when all tickets are
// released (section 4.9). Ranks that draw meanwhile take their draws back, and pause for a
// random time (appendix A.3).
//
// # Where it differs from the algorithms
//
// The paper's fields have 16 bits. Here they are as wide as COUNT_MAX and the ranks need, 13 bits
// with the default COUNT_MAX of 2^12. The other bits count the resets, so that no operation on an
// old word succeeds on a new one, and one bit says that a writer was passed over. Seven places
// of the algorithms are unsafe; docs/errata.md has the schedule of each. In short: draws and
// releases are taken back by CompareAndSwap (A1:5 and A1:19 borrow from the counter beside); a
// reader does not look at shared counters (A2:3); a reader that passes over counts its own
// ticket alone (A2:13); a late release looks first (A3:1 drops it); the lease begins when the
// rank last knew that it did not hold; what a release finds is looked at (A3:3); and only the
// designated rank resets (A2:17).
package dslr
