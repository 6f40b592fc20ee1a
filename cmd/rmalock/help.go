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

// topicFlag annotates flags that --help leaves to a topic, with its name.
const topicFlag = "rmalock_topic"

// describe gives a command its manual, and leaves rare flags to the details.
func describe(cmd *cobra.Command, rare ...string) *cobra.Command {
	cmd.Long = text(cmd.Name())
	leave(cmd, details(cmd), rare...)
	return cmd
}

// leave leaves flags of a command to a topic.
func leave(cmd *cobra.Command, topic string, flags ...string) {
	for _, name := range flags {
		if err := cmd.Flags().SetAnnotation(name, topicFlag, []string{topic}); err != nil {
			panic("rmalock: " + err.Error())
		}
	}
}

// details is the name of the topic with the details of a command.
func details(cmd *cobra.Command) string { return cmd.Name() + "-details" }

// topic is the help topic with the details of a command, nil if it has none.
func topic(cmd *cobra.Command) *cobra.Command {
	if _, err := texts.Open("help/" + details(cmd) + ".txt"); err != nil {
		return nil
	}
	return topicOf(cmd, details(cmd), "More on rmalock "+cmd.Name())
}

// topicOf is a help topic with flags of a command.
func topicOf(cmd *cobra.Command, name, short string) *cobra.Command {
	long := text(name)
	if flags := flagUsages(cmd, name); flags != "" {
		long += "\n\nFurther flags of " + cmd.Name() + ":\n" + flags
	}
	return &cobra.Command{Use: name, Short: short, Long: long}
}

// flagUsages describes the flags of a command that were left to a topic, or with "" the others.
func flagUsages(cmd *cobra.Command, topic string) string {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SortFlags = false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if strings.Join(f.Annotations[topicFlag], "") == topic {
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
	if flags := flagUsages(cmd, ""); flags != "" {
		fmt.Fprintf(&b, "\nFlags:\n%s\n", flags)
	}
	if topic(cmd) != nil {
		fmt.Fprintf(&b, "\nMore, and further flags: rmalock help %s-details\n", cmd.Name())
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), b.String())
	return err
}
