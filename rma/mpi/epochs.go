//go:build cgo

package mpi

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
)

// epochs are MPI_Win_lock and MPI_Win_unlock on a window of their own, as a lock
// per rank.
type epochs struct {
	c      *comm
	win    *C.shim_win
	number int
	probe  bool
}

// OpenEpochs opens the window behind MPI_Win_lock. Collective. While a rank is inside Lock,
// MPI calls of its other goroutines wait.
func (c *comm) OpenEpochs() (rma.Epochs, error) {
	if err := c.Barrier(); err != nil {
		return nil, err
	}
	// Open MPI's selection is checked here on one node too: there MPI_Win_allocate
	// is what would choose a broken component.
	if err := refuseDefects(process.library, process.osc); err != nil {
		return nil, err
	}
	e := &epochs{c: c, win: (*C.shim_win)(C.calloc(1, C.sizeof_shim_win)), number: register("MPI_Win_lock", rankName)}
	e.win.number = C.int32_t(e.number)
	var err error
	if rc := C.shim_epochs_open(c.h, e.win); rc != C.MPI_SUCCESS {
		err = failed("MPI_Win_allocate", rc)
	}
	if err := rma.Agree(c, err); err != nil {
		return nil, err
	}
	// MPI_Win_lock may return before the lock is held. In Open MPI's osc/sm it does
	// not; elsewhere an operation inside the epoch and its flush make sure.
	e.probe = !(Library == "Open MPI" && c.node.Count == 1)
	C.shim_helper_need(1) // MPICH's target must take part
	return e, nil
}

func (e *epochs) Lock(target int, exclusive bool) error {
	rc := C.shim_epochs_lock(e.win, C.int(target), flag(exclusive), flag(e.probe))
	yieldToScheduler(e.win)
	if rc != C.MPI_SUCCESS {
		return failed(fmt.Sprintf("MPI_Win_lock of rank %d", target), rc)
	}
	return nil
}

func (e *epochs) Unlock(target int) error {
	if rc := C.shim_epochs_unlock(e.win, C.int(target)); rc != C.MPI_SUCCESS {
		return failed(fmt.Sprintf("MPI_Win_unlock of rank %d", target), rc)
	}
	return nil
}

func (e *epochs) Free() error {
	if err := e.c.Barrier(); err != nil {
		return err
	}
	C.shim_helper_need(-1)
	rc := C.shim_epochs_free(e.win)
	C.free(unsafe.Pointer(e.win))
	unregister(e.number)
	if rc != C.MPI_SUCCESS {
		return failed("MPI_Win_free", rc)
	}
	return nil
}
