//go:build cgo && mpich

package mpi

// #cgo pkg-config: mpich
import "C"

// Library is the MPI that the package was built for.
const Library = "MPICH"
