//go:build cgo

package mpi

var (
	Denied      = refuseDefects
	LibraryName = libraryName
	Hung        = hung
	Timeout     = Config.timeout
	EnableYield = enableYield
	EnsureTwoPs = ensureTwoPs
)

// LeaveFinalize makes ranks leave MPI_Finalize behind as soon as they call it.
func LeaveFinalize() { finalizeTimeout = 0 }
