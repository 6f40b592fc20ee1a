// Package sim runs the ranks of a job as coroutines of one goroutine, so that the
// order of events is a choice and not chance: that of a [Scheduler] which searches
// interleavings ([Search]), or that of virtual time on a model of a network ([Timed]).
//
// A lock's code is the same here as under MPI. It sees a window; what the memory
// model of package rma leaves open is open here too:
//
//   - an operation takes effect at any step between its issue and the return of its
//     Flush, or, without a Flush, at any step or never;
//   - operations of one rank take effect in any order, those on one word in the order
//     of issue;
//   - bulk operations take effect word by word, in any order (of more than four words:
//     in four parts, in any order, and in order within a part);
//   - a rank that awaits a condition on a word wakes at some step at which the condition
//     holds; it may miss earlier ones;
//   - two ranks that write a flag word at once are an error ([ErrFlag]);
//   - with Search.CPUFar, a NIC's operations and a CPU's on one word are not atomic with
//     each other (Table 1 of alock).
//
// # Virtual time
//
// [Timed] runs ranks by a [Model] of a machine, of package netmodel. The same NIC serves MPI or,
// with Timed.Verbs, a program of InfiniBand verbs: what a Get, Put and swap of a far word cost
// differs. Memory nodes cost what is touched of them. [Comm.Elapsed] counts what the network
// carries, by kind and host, with polls and messages apart.
//
// # Searching
//
// A step is the effect of one operation, or the wake-up of one rank. What a rank does
// between two steps no other rank sees, so it happens at once. A state in which no step must
// happen and not all ranks have returned is a deadlock. An operation without a Flush need
// not take effect, and a retry ([rma.Window.Backoff]) whose word has not changed is no
// progress.
//
// Time passes by ticks ([Search.Ticks]): between Begin and End the clock stands still but for
// these. A rank may die wherever it waits ([Search.Crashes]); what it had issued takes effect
// later or never. A successor may take its place ([Search.Rejoins]). See
// docs/decisions/0015-time-and-death.md.
//
// An exhaustive search runs a rank's code only at answers that the rank has not had before
// ([Comm.Memoise], search_memo.go). It returns to checkpoints of an execution instead of running
// its beginning again (search_checkpoint.go).
//
// [Exhaustive] goes through all schedules, up to those that cannot differ; [Random] and
// [PCT] draw them. A failure's schedule is a short text, which [Search.Replay] runs
// again with a trace and [Search.Shrink] shortens.
package sim
