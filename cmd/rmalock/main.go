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
	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

// Exit statuses.
const (
	exitFailed = 1 // the job failed, or its result is not verified or not written
	exitUsage  = 2
)

func main() {
	var out io.Writer = os.Stdout
	if stdoutClosed() {
		out = nowhere{}
	}
	os.Exit(run(os.Args[1:], out, os.Stderr))
}

// nowhere replaces os.Stdout where the process was started without a standard output. Go
// opens /dev/null instead, and writes to it succeed.
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
		if failed.reports {
			fmt.Fprintf(stderr, "rmalock: %s\n", message(err))
		}
		return exitFailed
	}
	if isReporter() {
		fmt.Fprintf(stderr, "rmalock: %s\nRun '%s --help' for usage.\n", message(err), cmd.CommandPath())
	}
	return exitUsage
}

// output is a Writer that remembers its first error, since not all commands look at it.
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

// A failure is an error of the job, with exit status 1: a lock refuses parameters once it knows the
// job. All other errors are wrong command lines, with exit status 2.
type failure struct {
	err     error
	reports bool // this process writes the message
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// fail makes a failure of an error, which this process reports.
func fail(err error) error {
	if err == nil {
		return nil
	}
	return &failure{err: err, reports: true}
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
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	for _, cmd := range []*cobra.Command{
		newTopo(), newDHT(), newStore(), newIndex(), newKV(), newBench(), newAdvise(), newPapers(), newTune(), newCheck(), newLocks(), newMN(), newDoctor(), newDemo(), newVersion(), newManual(),
	} {
		root.AddCommand(cmd)
		if t := topic(cmd); t != nil {
			root.AddCommand(t)
		}
		if cmd.Name() == "bench" {
			root.AddCommand(topicOf(cmd, workloads, "Workloads of rmalock bench --mode clients"))
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

// message is the text of an error without the sentinel at its end, which is for programs.
func message(err error) string {
	text := err.Error()
	for again := true; again; {
		again = false
		for _, class := range []error{rma.ErrPeer, lock.ErrConfig, graph.ErrConfig, bench.ErrConfig, cider.ErrConfig, topo.ErrTopology} {
			if short, ok := strings.CutSuffix(text, ": "+class.Error()); ok && errors.Is(err, class) {
				text, again = short, true
			}
		}
	}
	return text
}
