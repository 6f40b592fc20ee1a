//go:build cgo

package mpi_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rma/mpi/mpitest"
)

// TestLeftFinalize: ranks that leave MPI_Finalize behind say so to MPICH's launcher,
// whether it started them by fork or over ssh. Without, most jobs end well too.
func TestLeftFinalize(t *testing.T) {
	if mpi.Library != "MPICH" {
		t.Skip("the launcher's protocol is MPICH's")
	}
	if testing.Short() {
		t.Skip("no jobs in short mode")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	agent := filepath.Join(t.TempDir(), "agent.sh") // drops options and the host
	require.NoError(t, os.WriteFile(agent, []byte("#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nshift\nexec /bin/sh -c \"$*\"\n"), 0o755))
	launchers := map[string][]string{"fork": {"fork"}, "ssh": {"ssh", "-launcher-exec", agent, "-localhost", "localhost"}}
	for name, options := range launchers {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			j := mpitest.Job{Ranks: 4, Hosts: 2}
			cmd, err := mpitest.Command(ctx, t.TempDir(), j, self, "-test.run=^TestPartLeavesFinalize$", "-test.v")
			if err != nil {
				t.Skip(err)
			}
			at := slices.Index(cmd.Args, "fork")
			require.Positive(t, at)
			cmd.Args = slices.Replace(cmd.Args, at, at+1, options...)
			cmd.Env = append(cmd.Env, "RMALOCK_TEST_JOB="+j.String(), "HYDRA_DEBUG=1") // the launcher tells what it is told
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			require.Equal(t, j.Ranks, strings.Count(string(out), "--- PASS: TestPartLeavesFinalize"), string(out))
			require.Equal(t, j.Ranks, strings.Count(string(out), "PMI response: cmd=finalize_ack"), string(out))
		})
	}
}

func TestPartLeavesFinalize(t *testing.T) {
	needJob(t)
	mpi.LeaveFinalize()
}
