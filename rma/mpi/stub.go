//go:build !cgo

package mpi

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

// Library is the MPI that the package was built for.
const Library = "none"

func unsupported() error {
	return fmt.Errorf("mpi: this program was built without cgo; build it with CGO_ENABLED=1 and an MPI library: %w", errors.ErrUnsupported)
}

// World is the handle of a process on its job.
type World struct{ rma.Comm }

// Run needs cgo.
func Run(func(rma.Comm) error) error { return unsupported() }

// Run needs cgo.
func (Config) Run(func(rma.Comm) error) error { return unsupported() }

// Open needs cgo.
func Open(Config) (*World, error) { return nil, unsupported() }

// OpenComm needs cgo.
func OpenComm(int, Config) (*World, error) { return nil, unsupported() }

// Close needs cgo.
func (*World) Close() error { return unsupported() }

// Abort needs cgo.
func (*World) Abort(int) {}

// Prepare does nothing.
func Prepare() {}

// Do runs f.
func Do(f func()) { f() }
