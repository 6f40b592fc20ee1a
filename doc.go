// Package rmalock has no code: it is the door to the module's packages, which are distributed
// locks on one-sided communication.
//
// Ranks of a job share 64-bit words through windows (package rma). Locks guard these words, and the
// whole state of a lock lies in such words too: there is no lock server. A program opens a lock and
// a window at every rank, takes the lock, works on the words, flushes, and releases:
//
//	err := inproc.Run(4, func(c rma.Comm) error { // with MPI: mpi.Run(func(c rma.Comm) error {
//		locks, err := dmcs.New(c, dmcs.Config{})
//		if err != nil {
//			return err
//		}
//		count, err := c.Allocate(rma.DataSpec("count", 1))
//		if err != nil {
//			return err
//		}
//		m := locks.Mutex(0)
//		if err := m.Lock(context.Background()); err != nil {
//			return err
//		}
//		n, err := count.GetFlush(0, 0)
//		if err == nil {
//			err = count.PutFlush(n+1, 0, 0)
//		}
//		return errors.Join(err, m.Unlock())
//	})
//
// # Where to go
//
//	rma                          windows: operations, memory model, errors
//	rma/inproc, rma/mpi          ranks as goroutines; as processes of an MPI job
//	rma/verbs                    ranks and memory nodes on an RDMA network
//	lock                         Mutex, RWMutex, Table, and the registry of locks by name
//	dmcs, rmamcs, rmarw          locks for ranks of many nodes
//	alock                        a lock for tables divided over the nodes
//	dslr, shiftlock, declock     locks on memory nodes, which go on when a rank dies
//	dht, store, btree, cider     structures that they guard
//	remote                       memory on memory nodes, given out and taken back
//	lock/observe                 timelines and counters of locks at work
//
// The command cmd/rmalock measures, checks and compares the locks, and "rmalock advise" chooses
// one. README.md and docs have the rest.
package rmalock
