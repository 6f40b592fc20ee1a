//go:build cgo

package locktest_test

import (
	"testing"

	_ "github.com/rmalock/rmalock/baseline"
	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestEveryLockUnderMPI is the conformance suite for every lock of the module, the
// plain counter in a second window among it, in real jobs.
func TestEveryLockUnderMPI(t *testing.T) {
	mpitest.Each(t, mpitest.All(), func(t *testing.T, c rma.Comm) {
		for _, info := range lock.All() {
			t.Run(info.Name, func(t *testing.T) {
				locktest.Run(t, info.Name, func(body func(rma.Comm) error) error { return body(c) })
			})
		}
	})
}
