package mpi

import (
	"errors"
	"os"
	"strconv"
	"time"
)

// Progress says whether a helper thread serves remote operations while the
// program computes.
type Progress int

const (
	ProgressAuto Progress = iota // on when this package started MPI or MPI_THREAD_MULTIPLE is granted
	ProgressOn                   // on; the program wraps its own MPI calls in Do
	ProgressOff
)

// Config of Open. The zero value is right for most programs.
type Config struct {
	Progress     Progress
	FlushTimeout time.Duration // after which a call into MPI counts as hung; 0: RMALOCK_FLUSH_TIMEOUT as a Go duration, or 60 s

	// MemoryNodes is how many ranks of the job only serve: their memory is that of windows of
	// Spec.Hosts rma.MemoryNodes, and they are in no Comm. The same at all ranks. They are the
	// last rank of each host by turns, beginning with the host that has the job's last rank: so
	// also the last ranks of a job whose last hosts have one each. Needs an MPI that this
	// package starts.
	MemoryNodes int
}

// ErrServed is what Open returns at a rank that was a memory node, when the job has ended.
var ErrServed = errors.New("mpi: this rank was a memory node, and the job has ended")

// launchers are the variables in which launchers tell the size of the job.
var launchers = []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE"}

// Launched reports whether an MPI launcher has started this process.
func Launched() bool {
	if jobSize() > 0 {
		return true
	}
	for _, name := range []string{"PMIX_RANK", "PMI_RANK", "PMI_FD"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// jobSize is the number of ranks that the launcher announces, or 0.
func jobSize() int {
	for _, name := range launchers {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
			return n
		}
	}
	return 0
}
