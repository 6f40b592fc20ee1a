//go:build cgo

package mpi

var (
	Denied      = refuseDefects
	LibraryName = libraryName
	Hung        = hung
	Timeout     = Config.timeout
	Share       = enableYield
	Spare       = ensureTwoPs
)

// LeaveFinalize has MPI_Finalize left behind as soon as it is called.
func LeaveFinalize() { finalizeTimeout = 0 }
