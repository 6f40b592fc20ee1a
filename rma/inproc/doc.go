// Package inproc runs ranks as goroutines of one process. It is the embedded
// default: it needs nothing installed, and a program that runs here runs on
// rma/mpi unchanged.
//
// [Run] starts ranks that share memory. [RunNodes] starts ranks on several nodes
// of pretence: words of class Far, and the words of other nodes, are reached by
// operations that take effect at Flush and not before, so that a forgotten Flush
// shows; and a word of class Near is refused to other nodes.
//
// A rank that waits spins for a few reads, yields to other goroutines, and then
// sleeps until a word in the awaited part changes. If a rank returns an error or
// panics, all that wait return an error that wraps rma.ErrPeer. Atomics are the
// CPU's throughout: swap is native, and Caps.AtomicWithCPU is true.
package inproc
