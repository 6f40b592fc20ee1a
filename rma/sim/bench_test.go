package sim_test

import (
	"fmt"
	"iter"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// BenchmarkSwitch is a bare switch to a coroutine and back, of n in turn: what every
// step of a search and every event in virtual time costs at least.
func BenchmarkSwitch(b *testing.B) {
	for _, n := range []int{1, 16, 4096, 65536} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			next, stop := make([]func() (struct{}, bool), n), make([]func(), n)
			for i := range next {
				next[i], stop[i] = iter.Pull(func(yield func(struct{}) bool) {
					for yield(struct{}{}) {
					}
				})
				next[i]()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				next[i%n]()
			}
			b.StopTimer()
			for _, s := range stop {
				s()
			}
		})
	}
}

// BenchmarkSearch is a step of a random schedule of ranks that swap and wait, 20 times
// each, and the allocations of a whole execution.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{2, 4, 8, 16} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := sim.Search{Node: make([]int, n)}
			executions := int64(b.N/(n*60) + 1)
			b.ReportAllocs()
			b.ResetTimer()
			st, f := s.Run(sim.Random(1, 0, executions), ringOfSwaps(20))
			b.StopTimer()
			if f != nil {
				b.Fatal(f)
			}
			b.ReportMetric(float64(st.Steps)/b.Elapsed().Seconds(), "steps/s")
			b.ReportMetric(float64(st.Steps)/float64(st.Executions), "steps/execution")
		})
	}
}

// ringOfSwaps is a body whose ranks swap a common word and pass a token round.
func ringOfSwaps(rounds int) func(rma.Comm) error {
	return func(c rma.Comm) error {
		s, _ := sim.Of(c)
		w, err := c.Allocate(rma.CounterSpec("w", 2))
		if err != nil {
			return err
		}
		if err := s.Begin(); err != nil {
			return err
		}
		for i := range int64(rounds) {
			if _, err := w.FetchAndOpFlush(i, 0, 0, rma.Replace); err != nil {
				return err
			}
			if c.Rank() > 0 || i > 0 {
				from := i
				if c.Rank() > 0 {
					from++
				}
				if _, err := w.Await(c.Rank(), 1, rma.AtLeast(from)); err != nil {
					return err
				}
			}
			if err := w.AccumulateFlush(1, (c.Rank()+1)%c.Size(), 1, rma.Sum); err != nil {
				return err
			}
		}
		return s.End()
	}
}

// TestExecutionsAreCheap: an execution allocates what its windows need, not by step.
func TestExecutionsAreCheap(t *testing.T) {
	allocations := func(rounds int) float64 {
		s := sim.Search{Node: make([]int, 4)}
		body := ringOfSwaps(rounds)
		few := testing.AllocsPerRun(3, func() { s.Run(sim.Random(1, 0, 100), body) })
		many := testing.AllocsPerRun(3, func() { s.Run(sim.Random(1, 0, 300), body) })
		return (many - few) / 200
	}
	short, long := allocations(2), allocations(60)
	t.Logf("%.1f allocations an execution of 2 rounds, %.1f of 60", short, long)
	if long > short+5 {
		t.Errorf("%.1f allocations an execution of 2 rounds and %.1f of 60: steps allocate", short, long)
	}
}
