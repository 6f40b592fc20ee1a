// Package rmatest is the conformance suite that every backend of package rma
// passes. A backend's test file is one line per shape of job:
//
//	func TestOneNode(t *testing.T) {
//		rmatest.Run(t, func(body func(rma.Comm) error) error { return inproc.Run(4, body) })
//	}
//
// and, where every rank is a process that runs the same test binary,
//
//	func TestJob(t *testing.T) {
//		rmatest.Run(t, func(body func(rma.Comm) error) error { return body(world) })
//	}
//
// Every check runs with any number of ranks, is the same sequence of collective
// calls on all of them, and ends with an agreement: a check that fails on one rank
// fails on all, and no rank waits for one that gave up. A rank that finds an error
// continues to the end of the check. Only if the transport itself fails does it leave
// at once, since it cannot tell the others then; the backend ends the job.
//
// Where ranks lie on several nodes the checks do fewer rounds, since an operation
// may cost 100 us there.
//
// [Probe] and [Probed] are what such checks are made of, for suites that build on
// this one.
package rmatest
