//go:build cgo && verbs

package verbs_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/verbs"
	"github.com/stretchr/testify/require"

	_ "github.com/rmalock/rmalock/dmcs"
	_ "github.com/rmalock/rmalock/rmamcs"
	_ "github.com/rmalock/rmalock/rmarw"
)

// TestLocks: D-MCS, RMA-MCS and RMA-RW between nodes that reach each other through the device.
func TestLocks(t *testing.T) {
	needDevice(t)
	for _, name := range []string{"dmcs", "rmamcs", "rmarw"} {
		t.Run(name, func(t *testing.T) {
			cfg := verbs.Config{Nodes: 2}
			locktest.Run(t, name, func(body func(rma.Comm) error) error { return cfg.Run(4, body) })
		})
	}
}

// TestExactSum: fetch-and-adds by ranks of several nodes lose nothing.
func TestExactSum(t *testing.T) {
	needDevice(t)
	per := 10_000
	if testing.Short() {
		per = 1_000
	}
	sum(t, verbs.Config{Nodes: 2, MemoryNodes: memoryNodes(t, 1, 1<<10)}, per)
}

// sum adds in a word of the first memory node, from 4 ranks.
func sum(t *testing.T, cfg verbs.Config, per int) {
	t.Helper()
	spec := rma.CounterSpec("count", 1)
	spec.Hosts = rma.MemoryNodes
	require.NoError(t, cfg.Run(4, func(c rma.Comm) error {
		w, err := c.Allocate(spec)
		if err != nil {
			return err
		}
		for range per {
			if err := w.AccumulateFlush(1, 0, 0, rma.Sum); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if v, err := w.GetFlush(0, 0); err != nil || v != int64(4*per) {
			return fmt.Errorf("the count is %d, want %d; %w", v, 4*per, err)
		}
		return w.Free()
	}))
}
