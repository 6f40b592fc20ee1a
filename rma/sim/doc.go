// Package sim runs the ranks of a job as coroutines of one goroutine, so that what
// happens when is decided and not chance: by a [Scheduler] that searches interleavings
// ([Search]), or by virtual time and a model of a network.
//
// A lock's code is the same here as under MPI. It sees a window; what the memory
// model of package rma leaves open is open here too:
//
//   - an operation takes effect at any step between its issue and the return of its
//     Flush; one that is never flushed perhaps never;
//   - operations of one rank take effect in any order, those on one word in the order
//     of issue;
//   - bulk operations take effect word by word, in any order (of more than four words:
//     in four parts, in any order, and in order within a part);
//   - a rank that waits for a word sees it at some step at which it holds what it waits
//     for, and may miss it;
//   - two ranks that write a flag word at once are an error ([ErrFlag]);
//   - with Search.CPUFar, a NIC's operations and a CPU's on one word are not atomic with
//     each other (Table 1 of papers/alock).
//
// # Searching
//
// A step is the effect of one operation, or the waking of one rank. What a rank does
// between two steps nobody sees, so it is done at once. A state in which nothing must
// happen and not all ranks are through is a deadlock: an effect that nobody flushes may
// stay away for ever, and a try again ([rma.Window.Backoff]) that would find what it
// found before does not help.
//
// An exhaustive search runs a rank's code only where the rank is told what it was never
// told before ([Comm.Recall], recall.go), and goes back to moments of an execution instead
// of running its beginning again (moment.go).
//
// [Exhaustive] goes through all schedules, up to those that cannot differ; [Random] and
// [PCT] draw them. A failure has a schedule as a short text, which [Search.Replay] runs
// again with a trace and [Search.Shrink] shortens.
package sim
