package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/rma/verbs"
)

func newMN() *cobra.Command {
	var cfg verbs.NodeConfig
	var token string
	var json bool
	cmd := &cobra.Command{
		Use:   "mn",
		Short: "Be a memory node: memory that others reach over an RDMA network",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if cfg.Token, err = verbs.ReadToken(token); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return fail(serveMemory(ctx, cmd, cfg, json))
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Listen, "listen", ":7471", "address for control, host:port; port 0 for any")
	f.IntVar(&cfg.Words, "words", 1<<20, "memory for windows, in words of 8 bytes")
	f.IntVar(&cfg.Slots, "clients", 64, "slots for clients that come and go")
	f.StringVar(&token, tokenFlag, "", "file with the secret that peers must know; without it any peer may come in")
	f.StringVar(&cfg.Device, "device", "", "RDMA device; default: the first that can be used")
	f.DurationVar(&cfg.Patience, "patience", 0, "how long the machine of a peer may be silent before the peer counts as gone; default: 500ms")
	f.BoolVar(&json, "json", false, "print the status as JSON, a line at the start and one at the end")
	cmd.Long = text("mn")
	return cmd
}

// serveMemory serves until a signal.
func serveMemory(ctx context.Context, cmd *cobra.Command, cfg verbs.NodeConfig, json bool) error {
	s, err := verbs.Listen(cfg)
	if err != nil {
		return err
	}
	tell := func(what string) error {
		status := s.Status()
		if json {
			return writeJSON(cmd.OutOrStdout(), status)
		}
		pages := "no huge pages"
		if status.Huge {
			pages = "huge pages"
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "memory node %s: %s on %s, %d of %d words free, %s, %d peers, %d refused\n",
			what, status.Listen, status.Device, status.Free, status.Words, pages, status.Peers, status.Refused)
		return err
	}
	if err := tell("listens"); err != nil {
		return err
	}
	if err := s.Run(ctx); err != nil {
		return err
	}
	return tell("ends")
}
