package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// newManual is the hidden command that packages are made with: "rmalock man DIR" writes
// rmalock.1 and a page for each command and each topic.
func newManual() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages into a folder",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fail(err)
			}
			root := cmd.Root()
			for _, c := range append([]*cobra.Command{root}, root.Commands()...) {
				if c.Hidden {
					continue
				}
				path := filepath.Join(args[0], pageName(c)+".1")
				if err := os.WriteFile(path, []byte(page(c)), 0o644); err != nil {
					return fail(err)
				}
			}
			return nil
		},
	}
}

// pageName is a command's path with hyphens, as git's pages have it.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page is the manual page of a command or a topic, in roff. Its text keeps its lines, as --help
// has them.
func page(c *cobra.Command) string {
	var b strings.Builder
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, ".SH %s\n.nf\n%s\n.fi\n", title, roff(text))
		}
	}
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"rmalock %s\" \"rmalock manual\"\n", strings.ToUpper(roff(pageName(c))), roff(version()))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(c)), roff(c.Short))
	if c.Runnable() {
		section("SYNOPSIS", c.UseLine())
	}
	section("DESCRIPTION", c.Long)
	section("OPTIONS", flagUsages(c, ""))
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others(c), ",\n"))
	return b.String()
}

// others are the pages that a page names at its end.
func others(c *cobra.Command) []string {
	var all []string
	for _, o := range append([]*cobra.Command{c.Root()}, c.Root().Commands()...) {
		if !o.Hidden && o != c {
			all = append(all, `\fB`+roff(pageName(o))+`\fR(1)`)
		}
	}
	return all
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`)

// roff is a text in which no line is a request.
func roff(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		line = roffEscapes.Replace(line)
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
