package bench_test

import (
	"errors"
	"strings"
	"testing"

	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/bench"
	_ "github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// runStructure makes a run on goroutines with memory nodes.
func runStructure(name string, w bench.Workload, readers float64) (res *bench.Result, err error) {
	err = inproc.Job{Nodes: 2, PerNode: 2, MemoryNodes: 2}.Run(func(c rma.Comm) error {
		r, err := bench.Run(c, bench.Config{Mode: bench.Clients, Lock: name, Workload: w, Readers: readers, Acquires: 200})
		if c.Rank() == 0 {
			res = r
		}
		return err
	})
	return res, err
}

// TestStructures: the object store and the tree run under locks with and without a shared mode,
// and under Sherman's own, and are verified.
func TestStructures(t *testing.T) {
	objects := bench.Objects{Count: 20, Size: 100, Keys: bench.Keys{Theta: 1.3}}
	counted := objects
	counted.Counted = true
	index := bench.Index{Count: 500, Keys: bench.Keys{Theta: 0.99}}
	for _, k := range []struct {
		lock    string
		w       bench.Workload
		readers float64
	}{
		{"fompi-spin", objects, 0.65}, {"dslr:LEASE=20s", counted, 0.65}, {"fompi-rw", counted, 0.9},
		{"vanilla", index, 0.5}, {"nh", index, 0}, {"fompi-rw", index, 0.95},
	} {
		t.Run(k.lock, func(t *testing.T) {
			t.Parallel()
			r, err := runStructure(k.lock, k.w, k.readers)
			if err != nil {
				t.Fatal(err)
			}
			if r.Workload != k.w.String() || r.Acquires < 4*150 || r.Median <= 0 || r.RemoteOps < 1 {
				t.Errorf("%q, %d acquires, median %v, %v remote operations", r.Workload, r.Acquires, r.Median, r.RemoteOps)
			}
		})
	}
}

// TestStructuresWithoutExclusion: a lock that does not exclude is found, by versions that are no
// count of sets, a torn object, or a lost update.
func TestStructuresWithoutExclusion(t *testing.T) {
	w := bench.Objects{Count: 2, Size: 4000, Counted: true}
	for range 50 { // a machine may run the ranks one after the other
		if _, err := runStructure("testopen", w, 0.5); err != nil {
			t.Log(err)
			return
		}
	}
	t.Error("a lock that does not exclude passes")
}

// TestStructuresInVirtualTime: equal seeds give equal runs, and another lock another one.
func TestStructuresInVirtualTime(t *testing.T) {
	m, err := bench.LoadMachine("cx4")
	if err != nil {
		t.Fatal(err)
	}
	v := bench.Virtual{Topology: nodes(16, 8), Machine: m, MemoryNodes: 1, Verbs: true}
	for _, w := range []bench.Workload{bench.Objects{Keys: bench.Keys{Theta: 1.2}}, bench.Index{Count: 5000, Keys: bench.Keys{Theta: 0.99}}} {
		var runs [3]*bench.Result
		for i, name := range []string{"dslr", "dslr", "caslock"} {
			if runs[i], err = v.Run(bench.Config{Mode: bench.Clients, Lock: name, Workload: w, Readers: 0.5, Acquires: 40}); err != nil {
				t.Fatal(err)
			}
		}
		if runs[0].PerSecond != runs[1].PerSecond || runs[0].PerSecond == runs[2].PerSecond {
			t.Errorf("%v: %v, %v and %v acquires a second", w, runs[0].PerSecond, runs[1].PerSecond, runs[2].PerSecond)
		}
	}
}

// TestStructuresConfig: what cannot be is refused.
func TestStructuresConfig(t *testing.T) {
	for want, cfg := range map[string]bench.Config{
		"objects of 4 bytes": {Lock: "dslr", Workload: bench.Objects{Size: 4}},
		"-1 objects":         {Lock: "dslr", Workload: bench.Objects{Count: -1}},
		"-1 keys":            {Lock: "dslr", Workload: bench.Index{Count: -1}},
		"has no rate":        {Lock: "dslr", Workload: bench.Index{}, Rate: 5},
		"no lock is called":  {Lock: "vanilla", Workload: bench.Objects{}},
	} {
		cfg.Mode = bench.Clients
		err := cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, bench.ErrConfig) && !errors.Is(err, lock.ErrConfig) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
