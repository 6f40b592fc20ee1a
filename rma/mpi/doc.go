// Package mpi is the backend for jobs that mpirun or Slurm starts: MPI-3 one-sided
// communication between nodes, shared memory within one. It needs cgo and an MPI
// library of version 3.0 or later: Open MPI by default, MPICH with the build tag
// mpich.
//
//	func main() {
//		err := mpi.Run(func(c rma.Comm) error { ... })
//		...
//	}
//
// # Start
//
// [Run] and [Open] start MPI with MPI_THREAD_SERIALIZED, or attach where other code
// (gompi, C) has started it. They then allow what MPI_Query_thread says: below
// SERIALIZED only the thread that initialised MPI may use the package. Such a program
// locks its main goroutine to that thread in init, and calls [Prepare] before MPI
// starts. [OpenComm] attaches to any intra-communicator by its Fortran handle. MPI calls
// of the program's own must not run at the same time as this package's, unless MPI
// grants MPI_THREAD_MULTIPLE: wrap them in [Do].
//
// Before it starts Open MPI the package sets OMPI_MCA_osc=sm,pt2pt, as osc/rdma of
// Open MPI 4.1 ends the process in MPI_Compare_and_swap. Where ranks exceed cores it
// sets OMPI_MCA_mpi_yield_when_idle=1. A user's setting wins. Where nodes turn out to
// share a machine, it turns the yield on later. On several nodes a GOMAXPROCS of 1
// becomes 2, unless the user has set it: with one P each operation on a far rank may
// wake a thread of the Go runtime. The package identifies the library, its version and
// its one-sided component first, and refuses what is known to be broken. Each window
// with far ranks tests itself when it opens.
//
// # Memory
//
// Each node has one segment per window (an anonymous memory file, fully allocated,
// every rank's part on its own pages). Node-mates reach each other's words by CPU
// loads, stores and atomics in Go; a job on one node never calls MPI on a lock's
// path, and opens no MPI window. Far ranks reach a part through MPI_Win_create
// over it, in one MPI_Win_lock_all epoch for the window's lifetime; a Flush is one
// crossing into C for all operations towards its target.
//
// # Memory nodes
//
// With Config.MemoryNodes some ranks of the job only serve, inside [Open] or [Config.Run]:
// docs/cluster.md says which. All operations on windows of Spec.Hosts rma.MemoryNodes go
// through MPI, on one host too. The ranks that serve are in no communicator that the program
// sees. To open such a window takes a message to the memory nodes more than another one does.
//
// # Waiting
//
// A rank that awaits a word in node memory watches it for 3000 reads (about 1 us),
// then gives the processor away (sched_yield) between looks, and sleeps on a futex
// when 500 us have passed; a CPU write into the awaited part wakes it. In a window
// with far ranks, whose writes wake no sleeper, it lets MPI progress between looks and
// takes naps of at most a sixteenth of the time waited, 200 us at most. A far word
// is polled, one remote operation each, with a pause that doubles from 1 us to
// 100 us. A wait for two words sleeps where both are near: on one part as for one word, on two
// parts for 200 us at a time.
//
// In collective calls a rank yields for 2 ms and then naps. Under MPICH, whose calls spin,
// a rank naps at once where ranks exceed cores. It also waits for the results of its
// operations outside MPI_Win_flush there, with naps of 75 us in which others run: see
// docs/decisions/0002-mpi.md.
//
// # Progress
//
// A rank that computes serves no remote operations in most MPI libraries. A helper
// thread of each process does, while windows with far ranks are open: it looks
// every 50 us when there is traffic, every 500 us when there is none, and every
// millisecond while the rank itself is inside MPI. It is on
// when this package started MPI or MPI_THREAD_MULTIPLE is granted, and off when
// attached; Config.Progress says otherwise.
//
// # When a rank dies
//
// mpirun ends the job when a process dies, unless told not to. Up to four survivors of
// its node say on standard error which rank died, if mpirun leaves them the time. A rank
// that waits for a word in node memory looks every second whether all node-mates live,
// and returns rma.ErrPeer if not. An operation towards a dead rank hangs inside MPI. When
// a call has not returned for 60 s a watchdog ends the process with a message that names
// the rank (Config.FlushTimeout, or RMALOCK_FLUSH_TIMEOUT as a Go duration). See
// docs/death.md. The death of a memory node ends the job, with a message that names it.
package mpi
