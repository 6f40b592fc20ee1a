//go:build cgo && verbs

package verbs_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/rma/verbs"
	"github.com/stretchr/testify/require"
)

// given is the memory nodes of the environment, which may be on another machine.
func given(t *testing.T) verbs.Config {
	t.Helper()
	cfg, err := verbs.FromEnvironment()
	require.NoError(t, err)
	if len(cfg.MemoryNodes) == 0 {
		t.Skip("RMALOCK_MN names no memory node: scripts/test-guest does")
	}
	return cfg
}

// TestGivenConformance: the suite with ranks here, and a memory node elsewhere.
func TestGivenConformance(t *testing.T) {
	cfg := given(t)
	require.NoError(t, cfg.Run(2, func(c rma.Comm) error {
		for _, k := range rmatest.Checks() {
			if err := k.Run(c); err != nil {
				return fmt.Errorf("%s: %w", k.Name, err)
			}
		}
		return nil
	}))
}

// TestGivenExactSum: 4 ranks, 10,000 fetch-and-adds each.
func TestGivenExactSum(t *testing.T) {
	sum(t, given(t), 10_000)
}

// TestNetworkIsCut: all packets are lost on RMALOCK_CUT, a network interface.
func TestNetworkIsCut(t *testing.T) {
	cfg := given(t)
	device := os.Getenv("RMALOCK_CUT")
	if device == "" {
		t.Skip("RMALOCK_CUT names no network interface: scripts/test-guest does")
	}
	// A machine that stands still for longer than the patience before the network is cut begins again.
	for tries, cut := 0, false; !cut; tries++ {
		require.Less(t, tries, 20)
		err := cfg.Run(1, func(c rma.Comm) error {
			w, err := c.Allocate(far("w", 1))
			if err != nil {
				return err
			}
			if err := w.AccumulateFlush(1, 0, 0, rma.Sum); err != nil {
				return err
			}
			require.NoError(t, exec.Command("tc", "qdisc", "add", "dev", device, "root", "netem", "loss", "100%").Run())
			cut = true
			began := time.Now()
			err = w.AccumulateFlush(1, 0, 0, rma.Sum)
			t.Logf("patience %v; after %v: %v", cfg.Patience, time.Since(began), err)
			require.ErrorIs(t, err, rma.ErrPeer)
			require.ErrorContains(t, err, "memory node 0 ")
			return nil
		})
		t.Log(err)
	}
}
