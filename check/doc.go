// Package check checks locks: it runs a lock's own code under rma/sim, on one
// schedule after the other, and looks for
//
//   - mutual exclusion: writers with nobody, readers with readers only (ErrExclusion);
//   - deadlock and lost wake-ups: nobody can go on and not all are through
//     (sim.ErrDeadlock), or an execution does not end (sim.ErrEndless);
//   - starvation: more entries of others between a rank's doorway, the first atomic
//     operation of its Lock that took effect, and its own entry than the lock's Promise
//     says (ErrStarved);
//   - cost: more operations on other ranks' memory in a Lock or an Unlock than the
//     lock's Promise says (ErrCost);
//   - at rest, the lock's own Idle predicate (ErrIdle);
//   - what the lock guards in another window: holders see what earlier holders
//     flushed (ErrGuarded);
//   - two ranks that write a flag word at once (sim.ErrFlag).
//
// A [Plan] says what ranks do; a sim.Scheduler which schedules are tried. A failure
// comes with the schedule that shows it; Replay runs that again and tells it step by
// step, and Shrink looks for a shorter one first.
package check
