// Package bench measures a lock with the workloads of rma-rw, section 5:
//
//	latency  LB: rank 0 acquires and releases alone, the others wait idle
//	ecsb     empty critical section, all ranks
//	sob      a single operation: one memory access at the lock's home, all ranks
//	wcsb     increments a shared counter and spins 1 to 4 us in the critical section
//	warb     empty critical section, then waits 1 to 4 us after the release
//
// [Run] is collective and returns a [Result] at rank 0.
//
// # What is measured
//
// The first tenth of the time, or of the acquires, is warm-up and dropped. Then
// all ranks meet in a barrier, run the workload, and meet again; the duration is
// the time between the two barriers as the rank saw it that began first, and the
// throughput is the sum of all ranks' acquires divided by it. (In mode latency the
// duration is that of rank 0's work alone.)
//
// With a duration, each rank stops by its own clock after a release, so that no
// rank is left waiting; the ranks' shares then show how fair the lock is. With a
// number of acquires per rank the shares are equal by construction.
//
// A latency is the time in Lock plus the time in Unlock, without the work in
// between. In mode latency it is measured over batches of up to 1000 acquires,
// because reading a clock costs more than an uncontended acquire, and the
// quantiles are those of the batch means. In the other modes single acquires are
// sampled: as many as keep the cost of the clock near 2 %, and at least one in
// 128. A sample contains one reading of the clock (two in sob and wcsb).
//
// Operations per acquire come from a short pass of the same workload on a second
// table of locks whose windows are counted (rma/hook), after the timed one, so
// that counting does not disturb the times. Operations on the workload's own data
// are not counted.
//
// Nothing in the timed loops allocates; the number of garbage collections during
// the measurement is reported.
//
// In wcsb the counter is read and written without atomics, under the lock alone,
// and its end value is checked: a lock that does not exclude fails with
// [ErrExclusion]. The spin, which the paper has after the increment, is between the
// read and the write, where it costs the same and makes a lost update likely.
package bench
