//go:build cgo

package mpi_test

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

// TestMisattached: an inter-communicator is an error on all ranks. A world that one rank does
// not open, since it has ended MPI, is an error on the others within the flush time-out.
func TestMisattached(t *testing.T) {
	if testing.Short() {
		t.Skip("no jobs in short mode")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "misattach")
	out, err := exec.Command("go", append(goBuild(), "-o", program, "./internal/misattach")...).CombinedOutput()
	require.NoError(t, err, string(out))
	for mistake, want := range map[string]struct {
		ranks int // that say so
		text  string
	}{
		"inter":     {3, `the handle is that of an inter-communicator; pass an intra-communicator`},
		"finalized": {2, ` on .*: after 2s some of its ranks have not called Open or OpenComm`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd, err := mpitest.Command(ctx, dir, mpitest.Job{Ranks: 3}, program, mistake)
		if err != nil {
			t.Skip(err)
		}
		cmd.Env = append(cmd.Env, "RMALOCK_FLUSH_TIMEOUT=2s")
		cmd.WaitDelay = time.Second
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		start := time.Now()
		require.NoError(t, cmd.Start())
		said, text := 0, ""
		message := regexp.MustCompile(`^rank \d: mpi: opening the communicator.*` + want.text)
		for lines := bufio.NewScanner(stdout); said < want.ranks && lines.Scan(); {
			text += lines.Text() + "\n"
			if message.MatchString(lines.Text()) {
				said++
			}
		}
		took := time.Since(start)
		time.AfterFunc(3*time.Second, cancel) // Open MPI's mpirun may hang when its ranks have ended
		_ = cmd.Wait()
		if mpi.Library == "MPICH" && mistake == "finalized" {
			require.Positive(t, said, text) // the launcher kills one when the other exits
		} else {
			require.Equal(t, want.ranks, said, text)
		}
		require.Less(t, took, 15*time.Second, "a flush time-out of 2 s, and the launcher's own time")
	}
}

// TestFlushTimeoutForm: what is no positive duration is an error, not the default.
func TestFlushTimeoutForm(t *testing.T) {
	for _, text := range []string{"abc", "-1s", "0", "0s", "300", " 5s"} {
		t.Setenv("RMALOCK_FLUSH_TIMEOUT", text)
		_, err := mpi.Timeout(mpi.Config{})
		require.ErrorIs(t, err, rma.ErrRefused, text)
		require.ErrorContains(t, err, `RMALOCK_FLUSH_TIMEOUT is "`+text+`", want a positive number with its unit`)
		d, err := mpi.Timeout(mpi.Config{FlushTimeout: time.Second})
		require.NoError(t, err, "the program's own setting wins")
		require.Equal(t, time.Second, d)
	}
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "5m": 5 * time.Minute, "1.5s": 1500 * time.Millisecond, "": time.Minute} {
		t.Setenv("RMALOCK_FLUSH_TIMEOUT", text)
		d, err := mpi.Timeout(mpi.Config{})
		require.NoError(t, err)
		require.Equal(t, want, d)
	}
	_, err := mpi.Timeout(mpi.Config{FlushTimeout: -1})
	require.ErrorContains(t, err, "Config.FlushTimeout is -1ns")
}

// TestManyRanksStart: 64 ranks on few cores start, open a window, meet and end. When the ranks
// yielded while they waited for each other, two minutes were not enough on 2 cores.
func TestManyRanksStart(t *testing.T) {
	const limit = time.Minute // a quiet machine with 2 cores needs 7 to 12 s
	start := time.Now()
	mpitest.Each(t, mpitest.OneHost(64), func(t *testing.T, c rma.Comm) {
		w, err := c.Allocate(rma.CounterSpec("count", 1))
		require.NoError(t, err)
		for range 10 {
			require.NoError(t, w.AccumulateFlush(1, 0, 0, rma.Sum))
			require.NoError(t, c.Barrier())
		}
		n, err := w.GetFlush(0, 0)
		require.NoError(t, err)
		require.EqualValues(t, 10*c.Size(), n)
		require.NoError(t, w.Free())
	})
	if mpitest.World() == nil {
		require.Less(t, time.Since(start), limit)
	}
}
