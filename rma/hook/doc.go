// Package hook decorates a Comm, so that a protocol can be counted, traced,
// disturbed and made to fail without knowing:
//
//	Count   operations, flushes and waits by kind and distance, into a Tally
//	Trace   every step as an Event, for a sink or as text
//	Delay   time passes before chosen steps, to widen races
//	Relax   operations take effect as late and as disordered as rma permits
//	Fault   a chosen operation fails, or a rank is cut off
//	Check   the classes of words are checked on every operation
//
// A decorator takes a Comm and returns one. The windows that the returned Comm and
// its Splits allocate are decorated; collective calls pass through. Decorators
// compose, and the outermost sees a step first. The Comm below is found by
// rma.Unwrapper.
//
// On a decorated window no operation is done inline: each passes through the
// decorators, is pending until its Flush, and counts towards rma.MaxPending,
// whatever its target. Steps through Count do not allocate.
package hook
