package main

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// texts are the commands' manuals. NAME.txt is the first part of --help, NAME-details.txt
// the topic "rmalock help NAME-details".
//
//go:embed help/*.txt
var texts embed.FS

// columns is the width of texts and tables.
const columns = 100

// text is a manual by the name of its file.
func text(name string) string {
	b, err := texts.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic("rmalock: " + err.Error())
	}
	return strings.TrimRight(string(b), "\n")
}

// rareFlag annotates flags that --help leaves to the details.
const rareFlag = "rmalock_rare"

// describe gives a command its manual, and leaves rare flags to the details.
func describe(cmd *cobra.Command, rare ...string) *cobra.Command {
	cmd.Long = text(cmd.Name())
	for _, name := range rare {
		if err := cmd.Flags().SetAnnotation(name, rareFlag, nil); err != nil {
			panic("rmalock: " + err.Error())
		}
	}
	return cmd
}

// topic is the help topic with the details of a command, nil if it has none.
func topic(cmd *cobra.Command) *cobra.Command {
	name := cmd.Name() + "-details"
	if _, err := texts.Open("help/" + name + ".txt"); err != nil {
		return nil
	}
	long := text(name)
	if flags := flagUsages(cmd, true); flags != "" {
		long += "\n\nFurther flags of " + cmd.Name() + ":\n" + flags
	}
	return &cobra.Command{Use: name, Short: "More on rmalock " + cmd.Name(), Long: long}
}

// flagUsages describes the flags of a command, the rare ones or the others.
func flagUsages(cmd *cobra.Command, rare bool) string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, is := f.Annotations[rareFlag]; is == rare {
			set.AddFlag(f)
		}
	})
	return strings.TrimRight(set.FlagUsagesWrapped(columns), "\n")
}

// usage writes what --help has after the text of a command.
func usage(cmd *cobra.Command) error {
	var b strings.Builder
	if cmd.Runnable() {
		fmt.Fprintf(&b, "Usage:\n  %s\n", cmd.UseLine())
	}
	list := func(title string, wanted func(*cobra.Command) bool) {
		fmt.Fprintln(&b, title)
		for _, c := range cmd.Commands() {
			if wanted(c) {
				fmt.Fprintf(&b, "  %-14s %s\n", c.Name(), c.Short)
			}
		}
	}
	if cmd.HasAvailableSubCommands() {
		list("Commands, each with --help:", func(c *cobra.Command) bool { return c.IsAvailableCommand() })
	}
	if cmd.HasHelpSubCommands() {
		list("\nTopics of "+cmd.CommandPath()+" help TOPIC:", func(c *cobra.Command) bool { return c.IsAdditionalHelpTopicCommand() })
	}
	if flags := flagUsages(cmd, false); flags != "" {
		fmt.Fprintf(&b, "\nFlags:\n%s\n", flags)
	}
	if topic(cmd) != nil {
		fmt.Fprintf(&b, "\nMore, and further flags: rmalock help %s-details\n", cmd.Name())
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), b.String())
	return err
}
