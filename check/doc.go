// Package check is a test library for locks. It runs a lock's own code under rma/sim, on one
// schedule after the other, and looks for violations of
//
//   - mutual exclusion: a writer holds the lock alone, readers with readers (ErrExclusion);
//   - progress: no deadlock and no lost wake-up (sim.ErrDeadlock), and every execution ends
//     (sim.ErrEndless);
//   - fairness: between a rank's doorway, the first atomic operation of its Lock that took
//     effect, and its own entry there are no more entries of other ranks than the lock's
//     Promise says (ErrStarved);
//   - cost: a Lock or an Unlock makes no more operations on other ranks' memory than the
//     lock's Promise says (ErrCost);
//   - at rest, the lock's own Idle predicate (ErrIdle);
//   - what the lock guards in another window: holders see what earlier holders
//     flushed (ErrGuarded);
//   - the class flag: two ranks do not write a word at once (sim.ErrFlag);
//   - fields: no sum carries out of a field of its word (sim.ErrCarry);
//   - of a lock that recovers, with ticks and crashes in the Plan: a taker and a holder that
//     was taken for dead learn of it (ErrUntold), no lease is shorter than the Promise says
//     (ErrLease), and ranks do not wait for a dead one for longer than it says (ErrStalled).
//
// A [Plan] is what the ranks do, a sim.Scheduler chooses the schedules. A failure has the
// schedule that shows it: Replay runs it again with a trace, and Shrink looks for a shorter
// one. Programs do not import this package, but for the command rmalock check.
package check
