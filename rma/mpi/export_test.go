//go:build cgo

package mpi

var (
	Denied      = denied
	LibraryName = libraryName
	Hung        = hung
	Share       = share
	Spare       = spare
)

// LeaveFinalize has MPI_Finalize left behind as soon as it is called.
func LeaveFinalize() { patience = 0 }
