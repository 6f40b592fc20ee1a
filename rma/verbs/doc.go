// Package verbs runs ranks on an RDMA network through libibverbs: InfiniBand, RoCE, and
// Soft-RoCE. Ranks are goroutines of one process, or of several ([Config.Run]); windows of memory
// nodes lie in processes that only have memory ([Listen], rmalock mn).
//
// It is built with the tag verbs, which needs cgo and infiniband/verbs.h (Debian:
// libibverbs-dev); without it all of it returns errors.ErrUnsupported.
//
// # Words
//
// A word of class Far is changed by the network card's atomics alone, its own node's ranks
// included: they reach it through the card too. Words of the other classes are READ and
// WRITTEN by the card and loaded and stored by the CPU. Where all ranks are of one process, the
// words of ranks are changed by the CPU alone, and the card does not reach them.
//
// Verbs have no swap, and a WRITE is not atomic with the atomics of other ranks:
// FetchAndOp(REPLACE) and the Put of a Far word are loops of CompareAndSwap (rma.Emulate), two
// round trips and more unless the word holds 0.
//
// # Steps
//
// All operations that a Flush completes at one target are one list of work requests, one
// doorbell, and one completion. The queue pair keeps their order but for what follows a READ or
// an atomic, which waits for it by IBV_SEND_FENCE where the memory model asks for an order. On
// Soft-RoCE, which stands still at fences, it is a list of its own behind a READ.
// A process has one pair of queues for each memory node and each other process, which its ranks
// share; another Flush never waits for it longer than for the post of a list.
//
// # Failures
//
// A memory node that ends is rma.ErrPeer at once, and a machine that does not answer within a
// second (Config.Patience); operations on other targets go on. A pair that an error has broken is
// made anew at the next operation, unless the peer's connection for control is gone.
//
// # Memory nodes
//
// A memory node listens on TCP for control: it refuses peers that do not know its token, tells
// where its windows are, makes one queue pair for each connection, and takes part in collective
// calls between processes. It does nothing when words are read or changed. What a connection
// had ends with the connection.
package verbs
