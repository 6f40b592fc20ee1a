// Package observe looks at locks while they work: counters of a table that can be read
// at any time, and timelines of a job. Both wrap a [lock.Table], so that a table that
// is not wrapped pays nothing:
//
//	locks = observe.Count(c, locks, "index")  // expvar "rmalock", WritePrometheus
//	locks = trace.Table(locks, "index")       // trace.Write at the end
//
// A wrapper is used like the table it wraps, by one goroutine at a time, and nothing
// allocates on its way but when a rank holds more locks at once than ever before.
//
// # Counters
//
// [Count] counts acquires, tries that failed and errors, exactly, and sums the time of
// waiting and of holding: three readings of the clock and four atomic additions for
// each acquire. They are this process's: a job is the sum of its processes.
//
// # Timelines
//
// A [Trace] records when each rank wanted a lock, had it, let it go and was done, and
// writes the whole job in Chrome's trace format, for https://ui.perfetto.dev or
// chrome://tracing: a process per node, a thread per rank, with the slices
//
//	wait      from the call of Lock to its return
//	handover  the end of a wait, from the release by the rank that held the lock
//	          before, to which an arrow leads
//	hold      from the return of Lock to the call of Unlock
//	release   from the call of Unlock to its return
//
// It samples: all ranks record the acquires that begin in the same slices of time, so
// that within a slice what follows what can be seen, and a rank that acquires seldom
// records all. Beside a slice an acquire pays for a countdown and now and then for a
// look at the clock.
//
// Clocks of one process are one clock. Those of a node are compared by the wall clock,
// to some 0.1 us, and those of other nodes by messages to and fro, to half of the
// fastest one's time: a handover between nodes is off by that much.
package observe
