package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/rma/mpi"
)

// release is the version that a build names: -ldflags "-X main.release=v0.2.0".
var release string

// version is that of the build, else the module's, which "go install" knows.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version, the compiler and the MPI library of this build",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !isReporter() {
				return nil
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "rmalock %s, %s %s/%s, MPI library: %s\n",
				version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, mpi.Library)
			return fail(err)
		},
	}
}
