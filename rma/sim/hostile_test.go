package sim_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// A part is what a rank does between Begin and End; it tells what it saw.
type part func(s *sim.Comm, w *rma.Window, saw func(...int64)) error

// litmus runs parts, one for each rank, under all schedules, and lists what they saw,
// rank by rank, in order; an error ends the list.
func litmus(t *testing.T, s sim.Search, spec rma.Spec, parts ...part) []string {
	t.Helper()
	return litmusIn(t, sim.Exhaustive(sim.Unbounded), s, spec, parts...)
}

// litmusIn is litmus for the schedules of a search.
func litmusIn(t *testing.T, x *sim.ExhaustiveSearch, s sim.Search, spec rma.Spec, parts ...part) []string {
	t.Helper()
	found := map[string]bool{}
	seen := make([][]int64, len(parts))
	for {
		_, f := s.Run(x, func(c rma.Comm) error {
			job, _ := sim.Of(c)
			w, err := c.Allocate(spec)
			if err != nil {
				return err
			}
			me := c.Rank()
			seen[me] = nil
			if err := job.Begin(); err != nil {
				return err
			}
			err = parts[me](job, w, func(v ...int64) { seen[me] = append(seen[me], v...) })
			if err != nil {
				return err
			}
			if err := job.End(); err != nil {
				return err
			}
			found[fmt.Sprint(seen)] = true // all have come to the end
			return nil
		})
		if f == nil {
			return slices.Sorted(maps.Keys(found))
		}
		kind := f.Err.Error()
		for _, e := range []error{sim.ErrDeadlock, sim.ErrFlag, sim.ErrEndless} {
			if errors.Is(f.Err, e) {
				kind = e.Error()
			}
		}
		found[kind] = true
	}
}

func idle(*sim.Comm, *rma.Window, func(...int64)) error { return nil }

// TestMemoryModel: what package rma permits happens, and nothing else.
func TestMemoryModel(t *testing.T) {
	far, flag := rma.CounterSpec("w", 4), rma.DataSpec("w", 4)
	three := sim.Search{Node: []int{0, 1, 2}}
	look := func(w *rma.Window, saw func(...int64), at ...int) error { // at: target, word, target, word, ...
		for i := 0; i < len(at); i += 2 {
			v, err := w.GetFlush(at[i], at[i+1])
			if err != nil {
				return err
			}
			saw(v)
		}
		return nil
	}
	for _, c := range []struct {
		name  string
		spec  rma.Spec
		parts []part
		want  []string
	}{
		{"an unflushed Put overtakes, or stays away", far, []part{
			func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
				w.Put(1, 1, 0)
				return w.PutFlush(1, 2, 0)
			},
			idle,
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
				if _, err := w.Await(2, 0, rma.Equal(1)); err != nil {
					return err
				}
				return look(w, saw, 1, 0)
			},
		}, []string{"[[] [] [0]]", "[[] [] [1]]"}},
		{"a flushed one does not", far, []part{
			func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
				if err := w.PutFlush(1, 1, 0); err != nil {
					return err
				}
				return w.PutFlush(1, 2, 0)
			},
			idle,
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
				if _, err := w.Await(2, 0, rma.Equal(1)); err != nil {
					return err
				}
				return look(w, saw, 1, 0)
			},
		}, []string{"[[] [] [1]]"}},
		{"two words change in any order", flag, []part{
			func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
				w.Put(1, 1, 0)
				w.Put(1, 1, 1)
				return w.Flush(1)
			},
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error { return look(w, saw, 1, 0, 1, 1) },
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error { return look(w, saw, 1, 1, 1, 0) },
		}, []string{
			"[[] [0 0] [0 0]]", "[[] [0 0] [0 1]]", "[[] [0 0] [1 0]]", "[[] [0 0] [1 1]]", "[[] [0 1] [0 0]]",
			"[[] [0 1] [0 1]]", "[[] [0 1] [1 0]]", "[[] [0 1] [1 1]]", "[[] [1 0] [0 0]]", "[[] [1 0] [0 1]]",
			"[[] [1 0] [1 1]]", "[[] [1 1] [0 0]]", "[[] [1 1] [0 1]]", "[[] [1 1] [1 0]]", "[[] [1 1] [1 1]]",
		}}, // all but each seeing the other's word not yet changed after its own
		{"one word in the order of issue", far, []part{
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
				w.Put(1, 1, 0)
				w.Accumulate(1, 1, 0, rma.Sum)
				got := w.Get(1, 0)
				err := w.Flush(1)
				saw(w.Value(got))
				return err
			},
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error { return look(w, saw, 1, 0, 1, 0) },
		}, []string{"[[2] [0 0]]", "[[2] [0 1]]", "[[2] [0 2]]", "[[2] [1 1]]", "[[2] [1 2]]", "[[2] [2 2]]"}},
		{"a bulk Put tears, in any order", flag, []part{
			func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
				w.PutBulk([]int64{1, 1}, 1, 0)
				return w.Flush(1)
			},
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
				got := make([]int64, 2)
				w.GetBulk(got, 1, 0)
				err := w.Flush(1)
				saw(got...)
				return err
			},
		}, []string{"[[] [0 0]]", "[[] [0 1]]", "[[] [1 0]]", "[[] [1 1]]"}},
		{"a waiting rank misses a value that comes and goes", far, []part{
			func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
				if err := w.PutFlush(1, 1, 0); err != nil {
					return err
				}
				return w.PutFlush(0, 1, 0)
			},
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
				v, err := w.Await(1, 0, rma.Equal(1))
				saw(v)
				return err
			},
		}, []string{"[[] [1]]", "deadlock"}},
		{"an unflushed handover is a deadlock", far, []part{
			func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
				w.Put(1, 1, 0)
				_, err := w.Await(0, 0, rma.Equal(1))
				return err
			},
			func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
				if _, err := w.Await(1, 0, rma.Equal(1)); err != nil {
					return err
				}
				return w.PutFlush(1, 0, 0)
			},
		}, []string{"deadlock"}},
		{"two writers of a flag word, one after the other only by chance", flag, []part{
			func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error { return w.PutFlush(1, 1, 0) },
			func(s *sim.Comm, w *rma.Window, _ func(...int64)) error {
				s.Sleep(1)
				return w.PutFlush(2, 1, 0)
			},
		}, []string{"[[] []]", "two ranks write a flag word at once"}},
		{"two writers of a flag word in turns", flag, []part{
			func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
				if err := w.PutFlush(1, 1, 0); err != nil {
					return err
				}
				return w.PutFlush(1, 1, 1)
			},
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
				if _, err := w.Await(1, 1, rma.Equal(1)); err != nil {
					return err
				}
				if err := w.PutFlush(2, 1, 0); err != nil {
					return err
				}
				return look(w, saw, 1, 0)
			},
		}, []string{"[[] [2]]"}},
		{"who raises a word and looks at the other's sees it, or is seen", far, []part{
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
				if err := w.PutFlush(1, 0, 0); err != nil {
					return err
				}
				return look(w, saw, 1, 0)
			},
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
				if err := w.PutFlush(1, 1, 0); err != nil {
					return err
				}
				return look(w, saw, 0, 0)
			},
		}, []string{"[[0] [1]]", "[[1] [0]]", "[[1] [1]]"}},
		{"unless it does not flush", far, []part{
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
				w.Put(1, 0, 0)
				return look(w, saw, 1, 0)
			},
			func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
				w.Put(1, 1, 0)
				return look(w, saw, 0, 0)
			},
		}, []string{"[[0] [0]]", "[[0] [1]]", "[[1] [0]]", "[[1] [1]]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := three
			s.Node = s.Node[:len(c.parts)]
			if got := litmus(t, s, c.spec, c.parts...); !slices.Equal(got, c.want) {
				t.Errorf("came to\n%q, want\n%q", got, c.want)
			}
		})
	}
}

// TestTableOfALock: which operations of a node's CPU and of the network are atomic with
// each other, by Table 1 of papers/alock. A pair is if whatever happens could have
// happened one after the other.
func TestTableOfALock(t *testing.T) {
	read := func(w *rma.Window, saw func(...int64)) error {
		v, err := w.GetFlush(0, 0)
		saw(v)
		return err
	}
	write := func(w *rma.Window, _ func(...int64)) error { return w.PutFlush(10, 0, 0) }
	cas := func(w *rma.Window, saw func(...int64)) error {
		v, err := w.CompareAndSwapFlush(1, 0, 0, 0)
		saw(v)
		return err
	}
	add := func(w *rma.Window, saw func(...int64)) error {
		v, err := w.FetchAndOpFlush(1, 0, 0, rma.Sum)
		saw(v)
		return err
	}
	swap := func(w *rma.Window, saw func(...int64)) error {
		v, err := w.FetchAndOpFlush(5, 0, 0, rma.Replace)
		saw(v)
		return err
	}
	type do = func(w *rma.Window, saw func(...int64)) error
	run := func(cpuFar bool, local, remote do) []string {
		// The third rank looks at the word at the end; the first two are the CPU of the
		// word's node, and the network.
		last := func(do do) part {
			return func(s *sim.Comm, w *rma.Window, saw func(...int64)) error {
				if err := do(w, saw); err != nil {
					return err
				}
				return w.PutFlush(1, 0, 1+s.Rank())
			}
		}
		return litmus(t, sim.Search{Node: []int{0, 1, 0}, CPUFar: cpuFar}, rma.CounterSpec("w", 3), last(local), last(remote),
			func(s *sim.Comm, w *rma.Window, saw func(...int64)) error {
				for disp := 1; disp <= 2; disp++ {
					if _, err := w.Await(0, disp, rma.Equal(1)); err != nil {
						return err
					}
				}
				v, err := w.GetFlush(0, 0)
				saw(v)
				return err
			})
	}
	for _, c := range []struct {
		name          string
		local, remote do
		atomic        bool
	}{
		{"Read, rRead", read, read, true},
		{"Read, rWrite", read, write, true},
		{"Read, rCAS", read, cas, true},
		{"Write, rRead", write, read, true},
		{"Write, rWrite", write, write, true},
		{"Write, rCAS", write, cas, false},
		{"RMW, rRead", cas, read, true},
		{"RMW, rWrite", cas, write, true},
		{"RMW, rCAS", cas, cas, false},
		{"Write, r fetch-and-add", write, add, false},
		{"fetch-and-add, r fetch-and-add", add, add, false},
		{"fetch-and-add, r swap", add, swap, false},
		{"swap, rRead", swap, read, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			serial := run(false, c.local, c.remote)
			got := run(true, c.local, c.remote)
			atomic := slices.Equal(got, serial)
			for _, k := range serial {
				if !slices.Contains(got, k) {
					t.Errorf("%s does not happen any more", k)
				}
			}
			if atomic != c.atomic {
				t.Errorf("atomic: %v, want %v: %q, one after the other %q", atomic, c.atomic, got, serial)
			}
		})
	}
}

// TestCounterLosesUpdates: a counter on which a CPU and a NIC count loses counts, and
// among NICs it does not.
func TestCounterLosesUpdates(t *testing.T) {
	count := func(node []int) []string {
		parts := make([]part, len(node))
		for r := range parts {
			parts[r] = func(s *sim.Comm, w *rma.Window, saw func(...int64)) error {
				if r == 0 {
					if _, err := w.Await(0, 1, rma.Equal(int64(len(node)-1))); err != nil {
						return err
					}
					v, err := w.GetFlush(0, 0)
					saw(v)
					return err
				}
				if err := w.AccumulateFlush(1, 0, 0, rma.Sum); err != nil {
					return err
				}
				return w.AccumulateFlush(1, 0, 1, rma.Sum)
			}
		}
		return litmus(t, sim.Search{Node: node, CPUFar: true}, rma.CounterSpec("w", 2), parts...)
	}
	if got := count([]int{0, 1, 2}); !slices.Equal(got, []string{"[[2] [] []]"}) {
		t.Errorf("two NICs: %q", got)
	}
	if got := count([]int{0, 0, 0}); !slices.Equal(got, []string{"[[2] [] []]"}) {
		t.Errorf("two CPUs: %q", got)
	}
	// The second word loses counts too: then rank 0 waits for ever.
	if got := count([]int{0, 0, 1}); !slices.Equal(got, []string{"[[1] [] []]", "[[2] [] []]", "deadlock"}) {
		t.Errorf("a CPU and a NIC: %q", got)
	}
}

// TestFaultStopsARank: a rank stops for ever, for a while, and messages to it are lost.
func TestFaultStopsARank(t *testing.T) {
	handOver := []part{
		func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
			if err := w.PutFlush(1, 1, 1); err != nil { // step 1
				return err
			}
			return w.PutFlush(1, 1, 0) // step 2
		},
		func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error {
			v, err := w.Await(1, 0, rma.Equal(1))
			saw(v)
			return err
		},
	}
	for _, c := range []struct {
		name  string
		fault sim.Fault
		want  []string
	}{
		{"stopped at once", sim.Fault{Rank: 0}, []string{"deadlock"}},
		{"stopped between its two flushes", sim.Fault{Rank: 0, Step: 1}, []string{"deadlock"}},
		{"stopped when all is done", sim.Fault{Rank: 0, Step: 9}, []string{"[[] [1]]"}},
		{"stopped for a while", sim.Fault{Rank: 0, Step: 1, For: 1}, []string{"[[] [1]]"}},
		{"stopped until no other rank can continue", sim.Fault{Rank: 0, Step: 1, For: 1000}, []string{"[[] [1]]"}},
		{"messages lost", sim.Fault{Rank: 1, Lost: true}, []string{"deadlock"}},
		{"messages lost for a while", sim.Fault{Rank: 1, Lost: true, For: 3}, []string{"[[] [1]]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sim.Search{Node: []int{0, 1}, Faults: []sim.Fault{c.fault}}
			if got := litmus(t, s, rma.CounterSpec("w", 2), handOver...); !slices.Equal(got, c.want) {
				t.Errorf("came to %q, want %q", got, c.want)
			}
		})
	}
	// What a rank has issued goes on without it, or does not, and rank 1 needs it for nothing.
	s := sim.Search{Node: []int{0, 1}, Faults: []sim.Fault{{Rank: 0, Step: 0}}}
	got := litmus(t, s, rma.CounterSpec("w", 2),
		func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error { return w.PutFlush(1, 1, 0) },
		func(_ *sim.Comm, w *rma.Window, saw func(...int64)) error { return look(w, saw) })
	if !slices.Equal(got, []string{"[[] [0]]", "[[] [1]]"}) {
		t.Errorf("came to %q", got)
	}
}

func look(w *rma.Window, saw func(...int64)) error {
	v, err := w.GetFlush(1, 0)
	saw(v)
	return err
}
