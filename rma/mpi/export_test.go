//go:build cgo

package mpi

var (
	Denied      = denied
	LibraryName = libraryName
	Hung        = hung
	Share       = share
	Spare       = spare
)
