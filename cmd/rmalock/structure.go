package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/btree"
	"github.com/rmalock/rmalock/cider"
)

// structures are the workloads of modes store and index: each of one flag with each of the
// others.
type structures struct {
	objects []int
	sizes   []int
	counted bool
	indexes []string // mode kv
	ycsb    string
}

// Modes of clients that work on a structure: an object store, a B+tree.
const (
	storeMode = "store"
	indexMode = "index"
	kvMode    = "kv"
)

// structureFlags are the flags of modes store and index beside --keys.
var structureFlags = []string{"objects", "size", "counted", "index", "ycsb"}

// flags adds the flags of a command of one mode, or of bench, which has them all, for "".
func (x *structures) flags(cmd *cobra.Command, mode string) {
	f := cmd.Flags()
	of := func(modes ...string) bool { return mode == "" || slices.Contains(modes, mode) }
	about := func(prefix, text string) string { // bench says of which modes a flag is
		if mode != "" {
			return text
		}
		return prefix + text
	}
	objects := map[string]string{
		storeMode: "numbers of objects (default 100000)", indexMode: "numbers of keys in the tree (default 1000000)", kvMode: "numbers of keys (default 100000)",
		"": "modes store, index and kv: numbers of objects or keys (default 100000, of index 1000000)",
	}
	sizes := map[string]string{
		storeMode: "sizes of objects in bytes (default that of --trace)", kvMode: "sizes of values in bytes (default 8)",
		"": "modes store and kv: sizes of objects (default 414), or of values (default 8), in bytes",
	}
	f.IntSliceVar(&x.objects, "objects", nil, objects[mode])
	if of(storeMode, kvMode) {
		f.IntSliceVar(&x.sizes, "size", nil, sizes[mode])
	}
	if of(kvMode) {
		f.StringSliceVar(&x.indexes, "index", nil, about("mode kv: ", "`indexes`: "+strings.Join(bench.KVIndexes(), ", ")+" (default array)"))
		f.StringVar(&x.ycsb, "ycsb", "", about("mode kv: ", "a `workload` of YCSB, a to f, or write-intensive, read-intensive, write-only (default write-intensive)"))
	}
	if of(storeMode) {
		f.BoolVar(&x.counted, "counted", false, about("mode store: ", "a set reads the object's version first, and versions are verified"))
	}
}

// check puts the workloads of modes store and index, if one is wanted, into a sweep.
func (x *structures) check(cmd *cobra.Command, l *clients, s *bench.Sweep) error {
	mode := ""
	for _, m := range []string{storeMode, indexMode, kvMode} {
		if slices.Contains(s.Modes, bench.Mode(m)) {
			mode = m
		}
	}
	given := cmd.Flags().Changed
	if mode == "" {
		for _, name := range structureFlags {
			if given(name) {
				return fmt.Errorf("--%s goes with --mode %s or %s; see rmalock help %s", name, storeMode, indexMode, workloads)
			}
		}
		return nil
	}
	if len(s.Modes) > 1 {
		return fmt.Errorf("--mode has %s and others, want it alone", mode)
	}
	for _, name := range append(slices.Clone(clientFlags), "locks") {
		if given(name) && name != "keys" {
			return fmt.Errorf("--%s does not go with --mode %s, whose clients work on a structure; see rmalock help %s", name, mode, workloads)
		}
	}
	if n := slices.Min(append(slices.Clone(x.objects), 1)); n < 1 {
		return fmt.Errorf("--objects is %d, want at least 1", n)
	}
	if n := slices.Min(append(slices.Clone(x.sizes), 1)); n < 1 {
		return fmt.Errorf("--size is %d bytes, want at least 1", n)
	}
	s.Modes = []bench.Mode{bench.Clients}
	switch mode {
	case indexMode:
		return x.index(given, l, s)
	case kvMode:
		return x.kv(given, l, s)
	}
	return x.store(given, l, s)
}

func (x *structures) store(given func(string) bool, l *clients, s *bench.Sweep) error {
	if given("index") || given("ycsb") {
		return fmt.Errorf("--index and --ycsb go with --mode %s", kvMode)
	}
	if !given("writers") {
		s.Writers = []float64{1 - bench.Twitter14Gets}
	}
	first := bench.Twitter14
	first.Counted = x.counted
	out := bench.Each([]bench.Objects{first}, x.objects, func(o *bench.Objects, n int) { o.Count = n })
	out = bench.Each(out, x.sizes, func(o *bench.Objects, n int) { o.Size = n })
	if given("keys") {
		keys, err := l.distributions()
		if err != nil {
			return err
		}
		out = bench.Each(out, keys, func(o *bench.Objects, k bench.Keys) { o.Keys = k })
	}
	for _, o := range out {
		s.Workloads = append(s.Workloads, o)
	}
	return nil
}

func (x *structures) index(given func(string) bool, l *clients, s *bench.Sweep) error {
	if given("size") || given("counted") {
		return fmt.Errorf("--size and --counted go with --mode %s", storeMode)
	}
	if given("index") || given("ycsb") {
		return fmt.Errorf("--index and --ycsb go with --mode %s", kvMode)
	}
	if !given("writers") {
		s.Writers = []float64{0.5}
	}
	out := bench.Each([]bench.Index{{Keys: bench.Keys{Theta: 0.99}}}, x.objects, func(t *bench.Index, n int) { t.Count = n })
	if given("keys") {
		keys, err := l.distributions()
		if err != nil {
			return err
		}
		out = bench.Each(out, keys, func(t *bench.Index, k bench.Keys) { t.Keys = k })
	}
	for _, t := range out {
		s.Workloads = append(s.Workloads, t)
	}
	return nil
}

// ycsb are the workloads of rmalock kv --ycsb: the share of writes, and how they differ from
// searches and updates by a Zipf distribution.
var ycsb = map[string]struct {
	writers float64
	kind    string
}{
	"a": {0.5, ""}, "b": {0.05, ""}, "c": {0, ""}, "d": {0.05, "d"}, "e": {0.05, "e"}, "f": {0.5, "f"},
	"write-intensive": {0.5, ""}, "read-intensive": {0.05, ""}, "write-only": {1, ""},
}

func (x *structures) kv(given func(string) bool, l *clients, s *bench.Sweep) error {
	if given("counted") {
		return fmt.Errorf("--counted goes with --mode %s", storeMode)
	}
	load, ok := ycsb[cmp.Or(strings.ToLower(x.ycsb), "write-intensive")]
	if !ok {
		return fmt.Errorf("--ycsb is %q, want %s", x.ycsb, strings.Join(slices.Sorted(maps.Keys(ycsb)), ", "))
	}
	for _, text := range s.Locks {
		if _, err := cider.ParsePolicy(text); err != nil {
			return fmt.Errorf("--lock: %w", err)
		}
	}
	if !given("writers") {
		s.Writers = []float64{load.writers}
	}
	out := bench.Each([]bench.KV{{Keys: bench.Keys{Theta: 0.99}, YCSB: load.kind}}, x.objects, func(t *bench.KV, n int) { t.Count = n })
	out = bench.Each(out, x.sizes, func(t *bench.KV, n int) { t.Size = n })
	out = bench.Each(out, x.indexes, func(t *bench.KV, name string) { t.Index = name })
	if given("keys") {
		keys, err := l.distributions()
		if err != nil {
			return err
		}
		out = bench.Each(out, keys, func(t *bench.KV, k bench.Keys) { t.Keys = k })
	}
	for _, t := range out {
		s.Workloads = append(s.Workloads, t)
	}
	return nil
}

// distributions reads --keys.
func (l *clients) distributions() (out []bench.Keys, err error) {
	for _, text := range l.keys {
		k, err := bench.ParseKeys(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--keys: %w", err)
		}
		out = append(out, k)
	}
	return out, nil
}

// traces are the settings of rmalock store --trace.
var traces = map[string]struct {
	objects bench.Objects
	gets    float64
}{
	"twitter14": {bench.Twitter14, bench.Twitter14Gets},
	"twitter53": {bench.Twitter53, bench.Twitter53Gets},
}

// newStore is the command store.
func newStore() *cobra.Command {
	var o benchOptions
	var trace string
	cmd := newStructure(&o, storeMode, "Load an object store, run it under a lock, and verify every object", func(cmd *cobra.Command) error {
		t, ok := traces[trace]
		if !ok {
			return fmt.Errorf("no trace is called %q; there are: twitter14, twitter53", trace)
		}
		given := cmd.Flags().Changed
		for name, value := range map[string]string{"size": fmt.Sprint(t.objects.Size), "keys": t.objects.Keys.String(), "writers": fmt.Sprintf("%.2f", 1-t.gets), "counted": "true"} {
			if !given(name) {
				if err := cmd.Flags().Set(name, value); err != nil {
					return err
				}
			}
		}
		return nil
	})
	cmd.Flags().StringVar(&trace, "trace", "twitter14", "sizes, keys and share of sets: twitter14 (414 bytes, 35 % sets) or twitter53 (9213 bytes, 11 % sets)")
	complete(cmd, "trace", "twitter14", "twitter53")
	return describe(cmd, structureDetails...)
}

// newIndex is the command index.
func newIndex() *cobra.Command {
	var o benchOptions
	cmd := newStructure(&o, indexMode, "Load a B+tree, run it under a lock, and verify every key", func(*cobra.Command) error { return nil })
	complete(cmd, "lock", append([]string{btree.Vanilla + "\tSherman's own, with hierarchy", btree.NH + "\tSherman's own, without"}, lockNames()...)...)
	return describe(cmd, structureDetails...)
}

// newKV is the command kv.
func newKV() *cobra.Command {
	var o benchOptions
	cmd := newStructure(&o, kvMode, "Load a key-value store, run it under a scheme, and verify every key", func(*cobra.Command) error { return nil })
	complete(cmd, "lock", kvSchemes...)
	complete(cmd, "index", bench.KVIndexes()...)
	complete(cmd, "ycsb", slices.Sorted(maps.Keys(ycsb))...)
	return describe(cmd, structureDetails...)
}

// kvSchemes are the schemes of package cider.
var kvSchemes = []string{
	"cider	optimistic, and through a queue with write combining where a key is hot", "optimistic	CompareAndSwap until it succeeds",
	"spin	a spin lock with back-off", "queue	ShiftLock's queue of writers", "combining	the queue with write combining",
	"aware	optimistic, and through the queue where a key is hot",
}

// structureDetails are the flags of store and index that their details have.
var structureDetails = append(slices.Clone(simulatedFlags), memoryFlag, mnFlag, tokenFlag, "csv", "nodes", "per-node", "seed", "repeat")

// newStructure is a command that makes runs of one mode of bench. prepare fills in flags.
func newStructure(o *benchOptions, mode, short string, prepare func(*cobra.Command) error) *cobra.Command {
	cmd := &cobra.Command{Use: mode, Short: short, Args: noArguments}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := prepare(cmd); err != nil {
			return err
		}
		o.modes = []string{mode}
		return o.run(cmd)
	}
	f := cmd.Flags()
	o.backend.nameFlag(cmd, simulated)
	o.layout.flags(cmd)
	locks, text := []string{"dslr"}, "`locks`, with parameters if they take any; see rmalock locks"
	if mode == indexMode {
		locks, text = []string{btree.Vanilla}, "`locks`, with parameters if they take any, or Sherman's own: vanilla, nh; see rmalock locks"
	}
	if mode == kvMode {
		locks, text = []string{"cider"}, "`schemes`: cider, optimistic, spin, queue, combining, aware, with parameters if they differ, such as cider:local=4"
	}
	f.StringSliceVar(&o.sweep.Locks, "lock", locks, text)
	if mode == storeMode {
		complete(cmd, "lock", lockNames()...)
	}
	o.structures.flags(cmd, mode)
	keys, writers := "zipf:0.99", "0.5"
	switch mode {
	case storeMode:
		keys, writers = "that of --trace", "that of --trace"
	case kvMode:
		writers = "that of --ycsb"
	}
	f.StringSliceVar(&o.clients.keys, "keys", nil, "how often each is used: uniform, zipf:THETA, scrambled:THETA or hot:SET:SHARE (default "+keys+")")
	f.Float64SliceVar(&o.sweep.Writers, "writers", nil, "`shares` of sets, 0 to 1; the rest are gets (default "+writers+")")
	f.Lookup("writers").DefValue = "" // the text has it
	f.DurationVar(&o.sweep.Config.Duration, "duration", 0, "time to run, warm-up included (default 1s)")
	f.IntVar(&o.sweep.Config.Acquires, "acquires", 0, "operations per rank, instead of a duration")
	f.Uint64Var(&o.sweep.Config.Seed, "seed", 0, "of the ranks' random choices")
	f.IntVar(&o.sweep.Repeat, "repeat", 1, "runs of each, by turns, with seeds one after the other")
	f.BoolVar(&o.json, "json", false, "print JSON, a line for each run")
	f.BoolVar(&o.csv, "csv", false, "print CSV: a line of column names, and a line for each run")
	cmd.MarkFlagsMutuallyExclusive("json", "csv")
	cmd.MarkFlagsMutuallyExclusive("duration", "acquires")
	return cmd
}
