//go:build cgo

package mpi_test

import (
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
	"github.com/rmalock/rmalock/rma/rmatest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

func TestConformance(t *testing.T) {
	mpitest.Each(t, mpitest.All(), func(t *testing.T, c rma.Comm) {
		rmatest.Run(t, func(body func(rma.Comm) error) error { return body(c) })
	})
}
