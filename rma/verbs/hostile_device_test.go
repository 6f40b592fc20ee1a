//go:build cgo && verbs

package verbs

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/stretchr/testify/require"
)

// TestOperationsBesideHostile: strangers in thousands at a memory node, some of which stay and say
// nothing, beside ranks that add: no addition fails or is lost, and no stranger comes in.
func TestOperationsBesideHostile(t *testing.T) {
	strangers, silent := 10_000, 400
	if testing.Short() {
		strangers, silent = 1_000, 100
	}
	token := []byte("secret")
	s, err := Listen(NodeConfig{Listen: "127.0.0.1:0", Words: 1 << 12, Token: token, Patience: 20 * time.Second})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("no RDMA device here: %v", err)
	}
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()

	const ranks = 2
	over := make(chan struct{})
	added := [ranks]int64{}
	sum := int64(0)
	job := make(chan error, 1)
	go func() {
		spec := rma.CounterSpec("count", 1)
		spec.Hosts = rma.MemoryNodes
		cfg := Config{MemoryNodes: []string{s.Addr()}, Token: token, Patience: 20 * time.Second}
		job <- cfg.Run(ranks, func(c rma.Comm) error {
			w, err := c.Allocate(spec)
			if err != nil {
				return err
			}
			for working := true; working; {
				select {
				case <-over:
					working = false
				default:
				}
				if _, err := w.FetchAndOpFlush(1, 0, 0, rma.Sum); err != nil {
					return err
				}
				added[c.Rank()]++
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			v, err := w.GetFlush(0, 0)
			if c.Rank() == 0 {
				sum = v
			}
			return errors.Join(err, w.Free())
		})
	}()
	require.Eventually(t, func() bool { return s.Status().Windows == 1 }, time.Minute, time.Millisecond)

	var open []net.Conn
	for range silent {
		if c, err := net.DialTimeout("tcp", s.Addr(), 20*time.Second); err == nil {
			open = append(open, c)
		}
	}
	began := time.Now()
	come(s.Addr(), strangers)
	for _, token := range []string{"", "Secret", "secret "} {
		_, err := dial(s.Addr(), []byte(token), 0, nil, nil)
		require.ErrorIs(t, err, rma.ErrRefused)
	}
	took := time.Since(began)
	require.Equal(t, 1, s.Status().Peers, "the job's own connection")
	require.Equal(t, 1, s.Status().Windows)
	close(over)
	require.NoError(t, <-job)
	require.Equal(t, added[0]+added[1], sum)
	require.Positive(t, added[0])
	require.Positive(t, added[1])
	for _, c := range open {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		_, err := io.Copy(io.Discard, c) // ended by the memory node
		var late net.Error
		require.False(t, errors.As(err, &late) && late.Timeout(), "a silent stranger is still connected")
		_ = c.Close()
	}
	require.Eventually(t, func() bool { return s.Status().Refused >= strangers*9/10 }, time.Minute, time.Millisecond)
	t.Logf("%d strangers in %v, %d of them counted; %d additions beside them", strangers+len(open), took, s.Status().Refused, sum)
	stop()
	require.NoError(t, <-ended)
}

// TestChildLeak forgets queue pairs: scripts/test-guest looks whether the leak sanitizer tells.
// What Go's heap had of them is written over.
func TestChildLeak(t *testing.T) {
	if os.Getenv("RMALOCK_CHILD") != "leak" {
		t.Skip("a part of scripts/test-guest")
	}
	n, err := openNIC("")
	require.NoError(t, err)
	for range 50 {
		_, err = n.newPair()
		require.NoError(t, err)
	}
	runtime.GC()
	kept := make([]*pair, 1<<18)
	for i := range kept {
		kept[i] = new(pair)
	}
	runtime.KeepAlive(kept)
}
