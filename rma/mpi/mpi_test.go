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
	jobs := append(mpitest.All(), mpitest.Job{Ranks: 3, MemoryNodes: 1}, mpitest.Job{Ranks: 4, Hosts: 2, MemoryNodes: 2})
	mpitest.Each(t, jobs, func(t *testing.T, c rma.Comm) {
		rmatest.Run(t, func(body func(rma.Comm) error) error { return body(c) })
	})
}
