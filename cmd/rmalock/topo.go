package main

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
	"github.com/rmalock/rmalock/topo/discover"
)

// description is a topology that the flags describe, and the lock's levels and counters.
type description struct {
	synthetic, file  string
	levels, counters string
}

func newTopo() *cobra.Command {
	var b backend
	var d description
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "topo",
		Short: "Show the machine, the ranks' places in it, and what locks make of it",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			want, err := d.thresholds()
			if err != nil {
				return err
			}
			t, err := d.topology()
			if err != nil {
				return err
			}
			if t == nil {
				if t, err = ofJob(cmd, &b); err != nil {
					return err
				}
			} else if !isReporter() {
				t = nil
			}
			if t == nil { // rank 0 prints
				return nil
			}
			locks, err := d.view(t)
			if err != nil {
				return err
			}
			if want, err = want.Fill(locks); err != nil {
				return err
			}
			if asJSON {
				return fail(writeTopologyJSON(cmd.OutOrStdout(), t, locks, want))
			}
			return fail(writeTopology(cmd.OutOrStdout(), t, locks, want))
		},
	}
	b.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&d.synthetic, "synthetic", "", `description of a machine to show, such as "node:2 core:4"`)
	f.StringVar(&d.file, "file", "", "file with a description of a machine to show")
	f.StringVar(&d.levels, "levels", "", `levels of a lock beside the machine, such as "rack,node", or "machine" for no more (default those that suit the machine)`)
	f.StringVar(&d.counters, "counters", "", `T_DC: such as "16", "2 per node" or "every 2nd node" (default one per node; on one node one per core)`)
	f.BoolVar(&asJSON, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("synthetic", "file", "backend")
	cmd.MarkFlagsMutuallyExclusive("synthetic", "file", "ranks")
	return describe(cmd, memoryFlag, mnFlag, tokenFlag)
}

// thresholds is what the flags say of thresholds.
func (d *description) thresholds() (th rmarw.Thresholds, err error) {
	if d.counters != "" {
		th.TDC, err = rmarw.ParseTDC(d.counters)
	}
	return th, err
}

// topology is the one that the flags describe, nil if they describe none.
func (d *description) topology() (*topo.Topology, error) {
	switch {
	case d.synthetic != "":
		return topo.Parse(d.synthetic)
	case d.file != "":
		return topo.ReadFile(d.file)
	}
	return nil, nil
}

// view is the levels that a lock uses.
func (d *description) view(t *topo.Topology) (*topo.Topology, error) {
	if d.levels == "" {
		return t.DefaultView(), nil
	}
	var names []string
	for name := range strings.SplitSeq(d.levels, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return t.Pick(names...)
}

// ofJob is the topology of the job at rank 0, and nil elsewhere.
func ofJob(cmd *cobra.Command, b *backend) (*topo.Topology, error) {
	if err := b.check(cmd); err != nil {
		return nil, err
	}
	var found *topo.Topology
	err := b.job(func(c rma.Comm) error {
		t, err := discover.Topology(c)
		if c.Rank() == 0 {
			found = t
		}
		return err
	})
	return found, err
}

func writeTopology(out io.Writer, t, locks *topo.Topology, th rmarw.Thresholds) error {
	if err := t.WriteTree(out); err != nil {
		return err
	}
	if _, err := io.WriteString(out, "\n"); err != nil {
		return err
	}
	if err := t.WriteRanks(out); err != nil {
		return err
	}
	if _, err := io.WriteString(out, "\n"); err != nil {
		return err
	}
	return writeThresholds(out, locks, th)
}

// A topologyReport is a topology in JSON, with what locks make of it. The first four
// fields are the topology's own; topo.Read reads them back and leaves the others.
type topologyReport struct {
	Ranks      json.RawMessage  `json:"ranks"`
	Levels     json.RawMessage  `json:"levels"`
	CPUs       json.RawMessage  `json:"cpus"`
	Notes      json.RawMessage  `json:"notes"`
	Thresholds thresholdsReport `json:"thresholds"`
	Counters   []counterReport  `json:"counters"`
}

type thresholdsReport struct {
	Levels []string `json:"levels"` // of a lock, from the outermost in
	TL     []int    `json:"t_l"`    // by level
	TW     int64    `json:"t_w"`
	TR     int64    `json:"t_r"`
	TDC    string   `json:"t_dc"`
}

type counterReport struct {
	Counter int      `json:"counter"`
	Host    int      `json:"host"`
	Ranks   topo.Set `json:"ranks"`
}

func writeTopologyJSON(out io.Writer, t, locks *topo.Topology, th rmarw.Thresholds) error {
	var r topologyReport
	b, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	r.Thresholds = thresholdsReport{TL: th.TL, TW: th.TW(), TR: th.TR, TDC: th.TDC.String()}
	for _, l := range locks.Levels() {
		r.Thresholds.Levels = append(r.Thresholds.Levels, l.Name)
	}
	c, err := rmarw.NewCounters(locks, th.TDC)
	if err != nil {
		return err
	}
	for k := range c.Len() {
		r.Counters = append(r.Counters, counterReport{k, c.Host(k), topo.MakeSet(c.Ranks(k)...)})
	}
	return writeJSON(out, r)
}
