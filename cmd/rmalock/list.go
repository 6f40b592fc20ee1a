package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/lock"
)

// listed is a lock in JSON.
type listed struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Shared bool   `json:"shared_mode"`
	Fair   string `json:"fairness"`

	Parameters []parameter `json:"parameters"`
}

// parameter is a lock's in JSON.
type parameter struct {
	Name string `json:"name"`
	Help string `json:"help"`
}

func newLocks() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "locks",
		Short: "List the locks that --lock can name",
		Long: `locks lists the locks that this program knows, by the name that --lock takes:

  modes     exclusive, or exclusive and shared (readers and writers)
  fairness  how often a waiting rank can be overtaken
  title     what it is

and the parameters of those that have any. A parameter is set behind the name, as
in rmarw:TR=1000.`,
		Example: `  rmalock locks
  rmalock locks --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !speaks() {
				return nil
			}
			if asJSON {
				out := []listed{}
				for _, i := range lock.All() {
					l := listed{i.Name, i.Title, i.Shared, i.Fair, []parameter{}}
					for _, p := range i.Params {
						l.Parameters = append(l.Parameters, parameter{p.Name, p.Help})
					}
					out = append(out, l)
				}
				return fail(writeJSON(cmd.OutOrStdout(), out))
			}
			t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "name\tmodes\tfairness\ttitle")
			for _, i := range lock.All() {
				modes := "exclusive"
				if i.Shared {
					modes += ", shared"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", i.Name, modes, i.Fair, i.Title)
			}
			for _, i := range lock.All() {
				if len(i.Params) > 0 {
					fmt.Fprintf(t, "\nparameters of %s\n", i.Name)
				}
				for _, p := range i.Params {
					fmt.Fprintf(t, "  %s\t%s\n", p.Name, p.Help)
				}
			}
			return fail(t.Flush())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// lockNames are the names of locks and their titles, for completion.
func lockNames() []string {
	var out []string
	for _, i := range lock.All() {
		out = append(out, i.Name+"\t"+i.Title)
	}
	return out
}
