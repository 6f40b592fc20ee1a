package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/rma/mpi"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version, the compiler and the MPI library of this build",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !isReporter() {
				return nil
			}
			version := "(devel)"
			if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
				version = info.Main.Version
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "rmalock %s, %s %s/%s, MPI library: %s\n",
				version, runtime.Version(), runtime.GOOS, runtime.GOARCH, mpi.Library)
			return fail(err)
		},
	}
}
