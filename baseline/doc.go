// Package baseline holds the locks that the ones of this module are measured
// against: those of foMPI, which
//
//	P. Schmid, M. Besta, T. Hoefler: High-Performance Distributed RMA Locks.
//	HPDC 2016 (rma-rw)
//
// compares with in section 5, the like of Open MPI, and MPI's own MPI_Win_lock.
// Then there are those that
//
//	D. Y. Yoon, M. Chowdhury, B. Mozafari: Distributed Lock Management with RDMA:
//	Decentralization without Starvation. SIGMOD 2018 (dslr)
//
// and DecLock (declock) compare with in their sections 6.1. Their words are on the job's memory
// nodes if it has some.
//
// They are correct locks, and kept as their authors made them: simple, unfair, and
// with every waiter polling the lock's home. docs/locks has a page for each.
//
//	name            type     X     S     a waiter costs         lock_all  file
//	fompi-spin      Spin     1+1   -     1 CAS per try          -         fompispin.go
//	rdma-spin       Spin     the same, with a Put to release    -         fompispin.go
//	fompi-rw        RW       2+2   1+1   X 2 or 3 per try,      1+1       fompirw.go
//	                                     S 1 Get per poll
//	fompi-rw-local  RW       1+1   1+1   X 1 CAS per try,       -         fompirw.go
//	                                     S 1 Get per poll
//	ompi-rw         RW       2+2   1+1   X 2 or 3 per try,      1+1       fompirw.go
//	                                     S 2 per try
//	caslock         CASLock  1+1   1+1   X 1 CAS per try,       -         caslock.go
//	retry-on-fail                        S 1 Get per poll                 retryonfail.go
//	dslr-plus       DSLRPlus 1+1   1+1   1 Get per look         -         dslrplus.go
//	drtm            DrTM     1+1   1+0   1 CAS per try          -         drtm.go
//	ncosed          NCoSED   1+1   1+    a message              -         ncosed.go
//	traditional     Traditional, messages to ranks that serve   -         traditional.go
//	mpi-win-lock    WinLock  the MPI library's own              -         winlock.go
//
// X is exclusive and S shared mode; a+b are the remote operations of an uncontended
// acquire and release. rma-rw (section 5, "Comparison Targets") names foMPI's locks
// and gives no code. The protocol of foMPI-RW is that of the foMPI sources and of
// R. Gerstenberger, M. Besta, T. Hoefler: Enabling Highly Scalable Remote Memory
// Access Programming with MPI-3 One Sided (CACM 61(10), 2018); foMPI-Spin is its
// lower half; ompi-rw is that of Open MPI's osc/rdma component.
//
// # Memory ordering
//
// Every Lock that enters has read, by an atomic of the transport or a Get, what the
// Unlock before it wrote by one; so Unlock orders what the holder had flushed, as
// package lock says.
//
// # Fairness, deadlines, death
//
// [DSLRPlus] and [Traditional] serve in order, and so does [NCoSED] writers. Except
// [WinLock], which is what the MPI library makes of it, the others are not fair: a rank
// may be bypassed without bound, and in locks for readers and writers readers starve
// writers. They are taken by trying, so that Lock looks at its context between tries. A
// failed Lock takes back what it added. A rank that dies while it holds a lock leaves it
// held for ever, but for a reader of [DrTM], whose lease ends.
//
// # Back-off
//
// foMPI's code retries at once; its authors say that exponential back-off may be
// used in all waits. [Backoff] offers both, and every table tells which one it
// runs, to be printed beside its figures.
//
// # Deadlocks
//
// dslr (section 6.1) gives each lock that it compares with a limit of retries, after which a
// transaction lets all its locks go. Config.Retries is that limit: a rank that holds other
// locks of the table gets lock.ErrGiveWay.
//
// # Held locks
//
// The words of these locks say how many ranks hold, not which. So a table keeps the
// ids that its rank holds, in a set of MaxHeld places: enough to tell misuse from
// use at no cost per lock of the table.
package baseline
