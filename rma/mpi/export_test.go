//go:build cgo

package mpi

import "github.com/rmalock/rmalock/rma"

var (
	Denied      = refuseDefects
	LibraryName = libraryName
	Hung        = hung
	Timeout     = Config.timeout
	EnableYield = enableYield
	EnsureTwoPs = ensureTwoPs
	MemoryRanks = memoryRanks
)

// LeaveFinalize makes ranks leave MPI_Finalize behind as soon as they call it.
func LeaveFinalize() { finalizeTimeout = 0 }

// Flushes is the number of MPI's flushes for the operations of a window so far.
func Flushes(w *rma.Window) int { return int(w.Transport().(*transport).win.flushes) }
