//go:build cgo && verbs

package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/rmatest"
	"github.com/rmalock/rmalock/rma/verbs"
	"github.com/stretchr/testify/require"
)

// needDevice skips a test where there is no RDMA device. scripts/test-guest runs them where there
// is.
func needDevice(t *testing.T) {
	t.Helper()
	s, err := verbs.Listen(verbs.NodeConfig{Listen: "127.0.0.1:0", Words: 1})
	if errors.Is(err, errors.ErrUnsupported) && os.Getenv("GUEST_ADDRESS") == "" { // a guest has one
		t.Skipf("no RDMA device here: %v", err)
	}
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	require.NoError(t, s.Run(ctx))
}

// memoryNodes starts memory nodes in this process, which end with the test.
func memoryNodes(t *testing.T, n, words int) []string {
	t.Helper()
	var names []string
	for range n {
		s, err := verbs.Listen(verbs.NodeConfig{Listen: "127.0.0.1:0", Words: words})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			require.NoError(t, <-ended)
		})
		names = append(names, s.Addr())
	}
	return names
}

func TestConformance(t *testing.T) {
	needDevice(t)
	for _, shape := range []struct{ nodes, perNode, memoryNodes int }{{1, 2, 2}, {2, 1, 0}, {2, 2, 1}} {
		if testing.Short() && shape.memoryNodes == 0 {
			continue
		}
		t.Run(fmt.Sprintf("%dx%d+%d", shape.nodes, shape.perNode, shape.memoryNodes), func(t *testing.T) {
			cfg := verbs.Config{Nodes: shape.nodes, MemoryNodes: memoryNodes(t, shape.memoryNodes, 1<<20)}
			rmatest.Run(t, func(body func(rma.Comm) error) error { return cfg.Run(shape.nodes*shape.perNode, body) })
		})
	}
}

// TestWithoutDevice: ranks of one process need none.
func TestWithoutDevice(t *testing.T) {
	rmatest.Run(t, func(body func(rma.Comm) error) error { return verbs.Config{}.Run(3, body) })
}
