//go:build cgo

package mpi

// #include "shim.h"
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

// Prepare sets Open MPI's variables OMPI_MCA_osc and OMPI_MCA_mpi_yield_when_idle where the
// user has not; mpirun --mca sets them too. It must come before MPI_Init. Open calls it. A
// program in which other code starts MPI should call it first.
func Prepare() {
	if Library != "Open MPI" || C.shim_initialized() != 0 {
		return
	}
	setDefault := func(name, value string) {
		if _, set := os.LookupEnv(name); !set {
			os.Setenv(name, value)
		}
	}
	setDefault("OMPI_MCA_osc", "sm,pt2pt") // rdma crashes in Compare_and_swap; Debian's file excludes pt2pt
	// Where ranks exceed cores, a rank that waits inside MPI yields its core. Where each rank
	// has one, a yield beside a process that computes makes far operations slower.
	if n, err := strconv.Atoi(os.Getenv("OMPI_COMM_WORLD_LOCAL_SIZE")); err != nil || n > runtime.NumCPU() {
		setDefault(yieldVariable, "1")
	}
}

// yieldVariable tells Open MPI whether to yield while it waits.
const yieldVariable = "OMPI_MCA_mpi_yield_when_idle"

// enableYield turns on Open MPI's yield where ranks exceed the cores of a machine that several
// nodes share (containers): Prepare knows of one node only. A user's setting wins. It reports
// whether Open MPI yielded before.
func enableYield() bool {
	_, set := os.LookupEnv(yieldVariable)
	return !set && C.shim_openmpi_yields() != 0
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

// refuseDefects refuses a library whose selection of one-sided components admits a
// defect. selection is Open MPI's list: "sm,pt2pt", or "^ucx,pt2pt" for all but.
func refuseDefects(library, selection string) error {
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
