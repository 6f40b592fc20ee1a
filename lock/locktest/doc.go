// Package locktest is the conformance suite that every lock passes on every
// backend. A lock's test file is one line,
//
//	func TestLock(t *testing.T) { locktest.RunInproc(t, "dmcs") }
//
// for many shapes of jobs on rma/inproc, and one line more per job of another
// backend:
//
//	func TestLockInJob(t *testing.T) {
//		locktest.Run(t, "dmcs", func(body func(rma.Comm) error) error { return body(world) })
//	}
//
// The suite opens locks by name, through the registry, and sees nothing but
// lock.Table. A lock, or a backend, that says errors.ErrUnsupported is not checked
// for what it does not have: a lock that cannot open is skipped, one that cannot
// try is not asked to. Checks are built as those of package rmatest are: every rank
// makes the same collective calls, and what fails on one rank fails on all.
package locktest
