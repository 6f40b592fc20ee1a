//go:build cgo

package mpi

// #include "rl.h"
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

// Prepare sets what Open MPI needs to be right and fast, unless the user has:
// mpirun --mca and the environment both arrive as OMPI_MCA_*. It must come before
// MPI_Init. Open calls it; a program in which somebody else starts MPI should call
// it first.
func Prepare() {
	if Library != "Open MPI" || C.rl_initialized() != 0 {
		return
	}
	unless := func(name, value string) {
		if _, set := os.LookupEnv(name); !set {
			os.Setenv(name, value)
		}
	}
	unless("OMPI_MCA_osc", "sm,pt2pt") // rdma crashes in Compare_and_swap; Debian's file excludes pt2pt
	// A rank that waits inside MPI shares its core, unless each has one: then a yield
	// makes an operation on a far rank slower where others compute, for it comes back late.
	if n, err := strconv.Atoi(os.Getenv("OMPI_COMM_WORLD_LOCAL_SIZE")); err != nil || n > runtime.NumCPU() {
		unless(yielding, "1")
	}
}

// yielding is what tells Open MPI whether to yield while it waits.
const yielding = "OMPI_MCA_mpi_yield_when_idle"

// share has Open MPI yield where Prepare could not know that ranks are more than cores, as
// nodes can be containers of one machine; unless the user has said otherwise. It reports
// whether Open MPI did before.
func share() bool {
	_, set := os.LookupEnv(yielding)
	return !set && C.rl_yield() != 0
}

// A defect is a one-sided component that ends the process or corrupts memory, so
// that it must not even be probed.
type defect struct {
	library   string // prefix of libraryName
	component string
	what      string
	cure      string
}

var defects = []defect{
	{"Open MPI v4.", "rdma", "osc/rdma segfaults in MPI_Compare_and_swap", "unset OMPI_MCA_osc (and --mca osc), or set it to sm,pt2pt"},
	{"Open MPI v5.", "ucx", "osc/ucx overflows its request pool", "set OMPI_MCA_osc=sm,rdma"},
}

// denied refuses a library whose selection of one-sided components admits a
// defect. selection is Open MPI's list: "sm,pt2pt", or "^ucx,pt2pt" for all but.
func denied(library, selection string) error {
	for _, d := range defects {
		if !strings.HasPrefix(library, d.library) || !admits(selection, d.component) {
			continue
		}
		return fmt.Errorf("mpi: %s with osc=%q may choose %s: %s; %s: %w",
			library, selection, d.component, d.what, d.cure, rma.ErrRefused)
	}
	return nil
}

// admits reports whether a component selection leaves a component in.
func admits(selection, component string) bool {
	list, exclude := strings.CutPrefix(selection, "^")
	for _, name := range strings.Split(list, ",") {
		if strings.TrimSpace(name) == component {
			return !exclude
		}
	}
	return exclude || selection == ""
}
