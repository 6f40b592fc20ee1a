package main

import (
	"fmt"
	"io"
	"strings"

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
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !isReporter() {
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
			_, err := io.WriteString(cmd.OutOrStdout(), list(lock.All()))
			return fail(err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return describe(cmd)
}

// list describes locks and their parameters, in lines of at most 100 columns.
func list(locks []lock.Info) string {
	var b strings.Builder
	fmt.Fprintln(&b, "name            modes              title, and fairness")
	for _, i := range locks {
		modes := "exclusive"
		if i.Shared {
			modes += ", shared"
		}
		hang(&b, fmt.Sprintf("%-14s  %-17s  ", i.Name, modes), i.Title)
		hang(&b, strings.Repeat(" ", 35), i.Fair)
	}
	for _, i := range locks {
		if len(i.Params) > 0 {
			fmt.Fprintf(&b, "\nparameters of %s\n", i.Name)
		}
		for _, p := range i.Params {
			hang(&b, fmt.Sprintf("  %-5s  ", p.Name), p.Help)
		}
	}
	return b.String()
}

// hang writes a text after a head, broken into lines that begin below each other.
func hang(b *strings.Builder, head, text string) {
	line := head
	for _, word := range strings.Fields(text) {
		if len(line)+len(word) > columns && strings.TrimSpace(line) != "" {
			fmt.Fprintln(b, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", len(head))
		}
		line += word + " "
	}
	fmt.Fprintln(b, strings.TrimRight(line, " "))
}

// lockNames are the names of locks and their titles, for completion.
func lockNames() []string {
	var out []string
	for _, i := range lock.All() {
		out = append(out, i.Name+"\t"+i.Title)
	}
	return out
}
