//go:build cgo && !mpich

package mpi

// #cgo pkg-config: ompi-c
import "C"

// Library is the MPI that the package was built for.
const Library = "Open MPI"
