// Command rmalock shows, exercises and measures the locks of this module, alone or
// in an MPI job. "rmalock --help" is its manual.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/bench/graph"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

// Exit statuses.
const (
	exitFailed = 1 // the job failed, or its result is not verified
	exitUsage  = 2
)

func main() {
	var out io.Writer = os.Stdout
	if stdoutClosed() {
		out = nowhere{}
	}
	os.Exit(run(os.Args[1:], out, os.Stderr))
}

// nowhere is the standard output of a process that was started without one. Go's own is
// /dev/null then.
type nowhere struct{}

func (nowhere) Write([]byte) (int, error) { return 0, errors.New("standard output is closed") }

// run runs the program and returns its exit status.
func run(args []string, stdout, stderr io.Writer) int {
	out := &output{Writer: stdout}
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	var failed *failure
	if out.err != nil && !errors.As(err, &failed) {
		err = fail(out.err)
	}
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed):
		if failed.mine {
			fmt.Fprintf(stderr, "rmalock: %s\n", message(err))
		}
		return exitFailed
	}
	if speaks() {
		fmt.Fprintf(stderr, "rmalock: %s\nRun '%s --help' for usage.\n", message(err), cmd.CommandPath())
	}
	return exitUsage
}

// output is a Writer that remembers its first error: the command that met it, or the
// help, may not have looked.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(b []byte) (n int, err error) {
	if n, err = o.Writer.Write(b); o.err == nil {
		o.err = err
	}
	return n, err
}

// A failure is an error of a job that was asked for in the right way. All other
// errors are the user's: exit status 2.
type failure struct {
	err  error
	mine bool // this process is the one to report it
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// fail makes a failure of an error of this process alone.
func fail(err error) error {
	if err == nil {
		return nil
	}
	return &failure{err: err, mine: true}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "rmalock",
		Short:         "Distributed locks on one-sided communication",
		Long:          text("rmalock"),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetUsageFunc(usage)
	for _, cmd := range []*cobra.Command{newTopo(), newDHT(), newBench(), newTune(), newCheck(), newLocks(), newVersion()} {
		root.AddCommand(cmd)
		if t := topic(cmd); t != nil {
			root.AddCommand(t)
		}
	}
	root.AddCommand(&cobra.Command{Use: "observing", Short: "Timelines and counters of locks at work", Long: text("observing")})
	return root
}

// complete makes the shell complete a flag with words.
func complete(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("rmalock: " + err.Error())
	}
}

// writeJSON writes a value as a line of JSON.
func writeJSON(out io.Writer, v any) error { return json.NewEncoder(out).Encode(v) }

// message is an error's text for people: without the class of the error at its
// end, which is for programs and says less than what stands before it.
func message(err error) string {
	text := err.Error()
	for again := true; again; {
		again = false
		for _, class := range []error{rma.ErrPeer, lock.ErrConfig, graph.ErrConfig, bench.ErrConfig, topo.ErrTopology} {
			if short, ok := strings.CutSuffix(text, ": "+class.Error()); ok && errors.Is(err, class) {
				text, again = short, true
			}
		}
	}
	return text
}
