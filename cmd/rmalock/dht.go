package main

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/bench/degree"
	"github.com/rmalock/rmalock/bench/graph"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// dhtOptions are the flags of dht.
type dhtOptions struct {
	backend backend
	lock    string
	edges   string
	scale   int
	seed    uint64
	slots   int
	heap    int
	combine bool
	observe observing
	json    bool
}

func newDHT() *cobra.Command {
	var o dhtOptions
	cmd := &cobra.Command{
		Use:   "dht",
		Short: "Count the degrees of a graph in a distributed hashtable, and check them",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.backend.flags(cmd)
	cmd.Flags().StringVar(&o.lock, "lock", dhtLock, "lock, with parameters if it takes any, or "+degree.Atomic+"; \"rmalock locks\" lists them")
	complete(cmd, "lock", append([]string{degree.Atomic + "\tno lock: the hashtable's own atomics"}, lockNames()...)...)
	f := cmd.Flags()
	f.StringVar(&o.edges, "edges", "", "file of edges to read, instead of a random graph")
	f.IntVar(&o.scale, "scale", 14, "random graph: it has 2^scale vertices and 16 times as many edges")
	f.Uint64Var(&o.seed, "seed", 1, "random graph: another seed is another graph")
	f.IntVar(&o.slots, "slots", 0, "slots of each rank's volume; 0: enough for the graph")
	f.IntVar(&o.heap, "heap", 0, "overflow elements of each rank's volume; 0: enough for the graph")
	f.BoolVar(&o.combine, "combine", false, "ranks of a node that insert one vertex at once do so by one insert")
	o.observe.flags(cmd)
	f.BoolVar(&o.json, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("edges", "scale")
	cmd.MarkFlagsMutuallyExclusive("edges", "seed")
	return describe(cmd, "combine", "counters", "heap", memoryFlag, mnFlag, "slots", tokenFlag, "trace")
}

// run is the command.
func (o *dhtOptions) run(cmd *cobra.Command) error {
	if o.lock != degree.Atomic {
		if _, err := bench.ParseLock(o.lock); err != nil {
			return fmt.Errorf("%s; or %s for none", message(err), degree.Atomic)
		}
	}
	random, err := graph.NewRMAT(o.scale, o.seed)
	if err != nil {
		return err
	}
	if err := o.backend.check(cmd); err != nil {
		return err
	}
	if err := o.observe.check(o.backend.name, o.lock, 1); err != nil {
		return err
	}
	bar := newProgress(cmd.ErrOrStderr())
	var res *degree.Result // at rank 0
	var wrong atomic.Int64 // at all ranks
	err = o.backend.job(func(c rma.Comm) error {
		cfg := degree.Config{Source: random, Lock: o.lock, Slots: o.slots, Heap: o.heap, Combine: o.combine}
		if o.edges != "" {
			file, err := graph.OpenFile(o.edges)
			if err := rma.Agree(c, err); err != nil {
				return err
			}
			cfg.Source = file
		}
		if c.Rank() == 0 && bar != nil {
			cfg.Progress = bar.report
			defer bar.clear()
		}
		var r *degree.Result
		err := o.observe.around(c, o.lock, o.backend.several(), func(wrap func(rma.Comm, lock.Table) lock.Table) (err error) {
			cfg.Observe = wrap
			r, err = degree.Run(c, cfg)
			return err
		})
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			res = r
		}
		wrong.Store(r.Differences)
		return nil
	})
	if err != nil {
		return err
	}
	if res != nil {
		if err := o.show(cmd.OutOrStdout(), res); err != nil {
			return fail(err)
		}
	}
	if n := wrong.Load(); n > 0 {
		return &failure{err: fmt.Errorf("wrong counts in the table: %d", n), reports: res != nil}
	}
	return nil
}

func (o *dhtOptions) show(out io.Writer, res *degree.Result) error {
	if o.json {
		return writeJSON(out, res)
	}
	return res.WriteText(out)
}
