//go:build cgo

// Command misattach starts MPI and attaches to it wrongly. With the argument "inter" it passes
// an inter-communicator. With "finalized" rank 1 ends MPI, and the others open the world.
package main

// #cgo mpich pkg-config: mpich
// #cgo !mpich pkg-config: ompi-c
// #include <mpi.h>
//
// static void start(int *rank) {
// 	int level;
// 	MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
// 	MPI_Comm_rank(MPI_COMM_WORLD, rank);
// }
//
// // Even ranks on one side, odd ones on the other.
// static int intercomm(int rank) {
// 	MPI_Comm side, inter;
// 	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &side);
// 	MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &inter);
// 	return MPI_Comm_c2f(inter);
// }
import "C"

import (
	"fmt"
	"os"

	"github.com/rmalock/rmalock/rma/mpi"
)

func main() {
	mpi.Prepare()
	var rank C.int
	C.start(&rank)
	var err error
	switch {
	case os.Args[1] == "inter":
		_, err = mpi.OpenComm(int(C.intercomm(rank)), mpi.Config{})
		fmt.Printf("rank %d: %v\n", rank, err)
		C.MPI_Finalize()
		return
	case rank == 1:
		C.MPI_Finalize()
		return
	}
	_, err = mpi.Open(mpi.Config{})
	fmt.Printf("rank %d: %v\n", rank, err)
	os.Exit(1)
}
