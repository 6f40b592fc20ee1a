package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

func newTopo() *cobra.Command {
	var b backend
	var synthetic string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "topo",
		Short: "Show the machine and the ranks' places in it",
		Long: `topo shows the levels of the machine that hierarchical locks use, from the
outermost in, and the place of each rank: what Slurm says of switches, which ranks
share memory, and where the processors that a rank may run on lie in NUMA nodes,
caches and cores.

A level inside a node counts only if ranks are bound to its parts: start ranks
with mpirun --bind-to core to see cores. Notes say what was left out and why.

The output has two parts:
  the tree    a line per element with its ranks; neighbours that are alike
              share a line ("core 0-3 ×4")
  the ranks   for each rank its element at each level, and its processors

With --synthetic the machine is described instead of discovered, in the manner of
hwloc: levels from the outside in, each with its number per element of the level
before. No job is started.`,
		Example: `  rmalock topo
  mpirun -n 8 --bind-to core rmalock topo
  srun -N 4 -n 32 rmalock topo --json
  rmalock topo --synthetic "rack:2 node:4 numa:2 core:4"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := synthesize(synthetic)
			if err != nil {
				return err
			}
			if t == nil {
				if t, err = discover(cmd, &b); err != nil {
					return err
				}
			} else if !speaks() {
				t = nil
			}
			switch {
			case t == nil: // another rank prints
				return nil
			case asJSON:
				return fail(writeJSON(cmd.OutOrStdout(), t))
			}
			return fail(writeTopology(cmd.OutOrStdout(), t))
		},
	}
	b.flags(cmd)
	cmd.Flags().StringVar(&synthetic, "synthetic", "", `description of a machine to show, such as "node:2 core:4"`)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("synthetic", "backend")
	cmd.MarkFlagsMutuallyExclusive("synthetic", "ranks")
	return cmd
}

// synthesize is the topology of a description, nil for none.
func synthesize(text string) (*topo.Topology, error) {
	if text == "" {
		return nil, nil
	}
	return topo.Parse(text)
}

// discover is the topology of the job at rank 0, and nil elsewhere.
func discover(cmd *cobra.Command, b *backend) (*topo.Topology, error) {
	if err := b.check(cmd); err != nil {
		return nil, err
	}
	var found *topo.Topology
	err := b.job(func(c rma.Comm) error {
		t, err := topo.Discover(c)
		if c.Rank() == 0 {
			found = t
		}
		return err
	})
	return found, err
}

func writeTopology(out io.Writer, t *topo.Topology) error {
	if err := t.WriteTree(out); err != nil {
		return err
	}
	if _, err := io.WriteString(out, "\n"); err != nil {
		return err
	}
	return t.WriteRanks(out)
}
