package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noArguments refuses words behind a command that are not flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes flags alone, and got %q; a flag begins with --", cmd.CommandPath(), args[0])
	}
	return nil
}

// flagError says of a flag's value what is wanted, in place of the error of the function that
// parsed it.
func flagError(_ *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	want := map[string]string{
		"int": "a whole number", "uint": "a whole number from 0 on", "uint64": "a whole number from 0 on", "float64": "a number such as 0.02",
		"duration": "a time such as 10ms", "bool": "true or false", "intSlice": "whole numbers with commas between them, such as 4,16",
		"float64Slice": "numbers with commas between them, such as 0.02,1", "durationSlice": "times with commas between them, such as 1us,100us",
	}[bad.GetFlag().Value.Type()]
	if want == "" {
		return err
	}
	return fmt.Errorf("--%s is %q, want %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// newHelp is the command help, which refuses names that it does not know.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Show the manual of a command, or a topic",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return fmt.Errorf("no command or topic is called %q; %s --help lists them", strings.Join(args, " "), cmd.Root().Name())
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
