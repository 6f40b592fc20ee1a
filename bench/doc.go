// Package bench measures a lock with the workloads of rma-rw, section 5:
//
//	latency  rank 0 acquires and releases alone, the others wait idle
//	lb       LB: all ranks acquire and release; its figure is the mean
//	ecsb     empty critical section, all ranks
//	sob      a single operation: one memory access at the lock's home, all ranks
//	wcsb     increments a shared counter and spins 1 to 4 us in the critical section
//	warb     empty critical section, then waits 1 to 4 us after the release
//	dht      all ranks but rank 0 insert into a hashtable at rank 0 and read from it;
//	         its figure is the total time
//	clients  what a [Workload] says, such as a [Mix]: skewed or local choices of locks, several
//	         held at once, memory accesses and computing inside, time to think; in a closed
//	         loop, or in an open one with a rate of arrivals; [TPCC] is another
//
// [Run] is collective and returns a [Result] at rank 0. [Virtual] runs a whole job in
// virtual time, with thousands of ranks. A [Sweep] is a set of such runs, a [Store]
// keeps them in files; package bench/plot draws them.
//
// # What is measured
//
// The first tenth of the time, or of the acquires, is warm-up and dropped. Then all ranks meet in a
// barrier, run the workload, and meet again. The duration is the time between the two barriers by
// the clock of the rank that began first. The throughput is the sum of all ranks' acquires divided
// by the duration. (In mode latency the duration is that of rank 0's work alone. In mode clients
// with a duration the throughput is the sum of what each rank made in its own time, as the last
// visit of one may take far longer than the others'.)
//
// With a duration, each rank stops by its own clock after a release, so that no
// rank is left waiting; the ranks' shares then show how fair the lock is. With a
// number of acquires per rank the shares are equal by construction.
//
// A latency is the time in Lock plus the time in Unlock, without the work in between. In mode
// latency it is measured over batches of up to 1000 acquires, because reading a clock costs more
// than an uncontended acquire, and the quantiles are those of the batch means. In the other modes
// single acquires are sampled: as many as keep the cost of the clock near 2 % of a usual acquire,
// and at least one in 128. Each sample stands for the acquires up to the rank's next one. A sample
// contains one reading of the clock (two in sob and wcsb). The mean is that of the samples, but in
// modes latency and lb that of all acquires: the time that the ranks worked, divided by their
// acquires.
//
// Operations per acquire come from a short pass of the same workload after the timed one, so that
// counting does not disturb the times. It runs on a second table of locks whose windows are counted
// (rma/hook). Operations on the workload's own data are not counted, but in mode dht, where atomics
// alone are one of the ways.
//
// Nothing in the timed loops allocates; the number of garbage collections during
// the measurement is reported.
//
// In wcsb the counter is read and written without atomics, under the lock alone,
// and its end value is checked: a lock that does not exclude fails with
// [ErrExclusion]. The spin, which the paper has after the increment, is between the
// read and the write, where it costs the same and makes a lost update likely.
//
// In dht the table holds 1,024 elements at first. A read looks one of them up, at
// random, and an insert makes a new one, so that as in the paper every insert writes;
// the volume has room for all. What is found and left is checked, with the same error.
//
// # Mode clients
//
// A rank is a client: many clients of a core are many ranks there. A visit acquires its locks,
// works, and releases them; its latency is the time in Lock and Unlock of all. In an open loop
// visits begin at random times with a given rate. One that begins late, because that before it
// took long, counts from when it was to begin: otherwise the waits that matter most would be
// left out (coordinated omission). Then all visits are timed and not a sample, and so they are
// in virtual time.
//
// A Result has, of the timed visits, distribution functions of the latency and of the ranks'
// shares, the latency of each rank, and the times in Lock of the locks that were acquired most.
// Retries are the tries that failed, per acquire.
//
// After the measurement the clients make more visits, in which exclusive holders raise a
// counter of each lock without atomics, and shared ones look whether it changes. Counters lie
// where the table says that the locks are, ranks or memory nodes.
//
// # In virtual time
//
// The workloads are the same and read time from the communicator alone. A run on a model says so
// ([Result.Simulated]), and names the machine and those of its constants of which only a range is
// known. Its [Band] is what the ends of these ranges would come to. There are no cores to share, no
// collector, and counting is free, so that operations are counted in the measurement itself.
package bench
