//go:build cgo && verbs

package verbs_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/verbs"
	"github.com/stretchr/testify/require"
)

// TestProcessIsKilled: of two processes of a job one is killed while both add, at each other's
// words and on the memory node. The other one learns of it within a second, by an error that names
// the node. Memory nodes it reaches still, and what the dead one had flushed is there.
func TestProcessIsKilled(t *testing.T) {
	needDevice(t)
	names := memoryNodes(t, 1, 1<<12)
	var children [2]*exec.Cmd
	var out [2]lockedBuffer
	for i := range children {
		k := exec.Command(os.Args[0], "-test.run=^TestChildKilled$")
		k.Env = append(os.Environ(), "RMALOCK_CHILD=killed", "RMALOCK_MN="+names[0], fmt.Sprintf("RMALOCK_PROCESS=%d/2", i))
		k.Stdout, k.Stderr = &out[i], &out[i]
		require.NoError(t, k.Start())
		children[i] = k
	}
	last := func(i int, format string) (n int64) {
		for line := range strings.Lines(out[i].String()) {
			if strings.HasSuffix(line, ".\n") { // it is whole
				_, _ = fmt.Sscanf(line, format, &n)
			}
		}
		return n
	}
	require.Eventually(t, func() bool { return last(0, "added %d.") > 50 && last(1, "added %d.") > 50 }, time.Minute, time.Millisecond, "%s%s", &out[0], &out[1])
	require.NoError(t, children[1].Process.Kill())
	killed := time.Now()
	_ = children[1].Wait()
	require.Eventually(t, func() bool { return strings.Contains(out[0].String(), "failed: ") }, time.Minute, time.Millisecond)
	took := time.Since(killed)
	require.NoError(t, children[0].Wait())
	said := out[0].String()
	t.Logf("after %v: %s", took, said[strings.Index(said, "failed: "):])
	require.Regexp(t, "failed: verbs: node 1 of the job", said)
	require.Regexp(t, "again: verbs: node 1 of the job is lost", said)
	require.GreaterOrEqual(t, last(0, "found %d."), last(1, "added %d."))
	if os.Getenv("GUEST_CLOCK") == "instructions" {
		require.Less(t, took, time.Second)
	}
}

// TestChildKilled is a process of TestProcessIsKilled.
func TestChildKilled(t *testing.T) {
	if os.Getenv("RMALOCK_CHILD") != "killed" {
		t.Skip("a part of TestProcessIsKilled")
	}
	err := verbs.Run(1, func(c rma.Comm) error {
		mine, err := c.Allocate(rma.CounterSpec("mine", 1))
		if err != nil {
			return err
		}
		w, err := c.Allocate(far("w", 2))
		if err != nil {
			return err
		}
		other := 1 - c.Rank()
		for n := 1; ; n++ {
			if err = w.AccumulateFlush(1, 0, c.Rank(), rma.Sum); err != nil {
				return err
			}
			if err = mine.AccumulateFlush(1, other, 0, rma.Sum); err != nil {
				break
			}
			fmt.Printf("added %d.\n", n)
		}
		fmt.Printf("failed: %v\n", err)
		fmt.Printf("again: %v\n", mine.AccumulateFlush(1, other, 0, rma.Sum))
		n, found := w.GetFlush(0, other)
		fmt.Printf("found %d.\n", n)
		return errors.Join(found, err)
	})
	require.ErrorIs(t, err, rma.ErrPeer)
}
