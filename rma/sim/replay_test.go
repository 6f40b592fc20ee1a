package sim_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// errLost is what the bodies of these tests fail with.
var errLost = errors.New("an addition was lost")

// counting is a body whose ranks count by Get and Put, rounds times each, with Puts
// without a Flush, failing tries and an error when a count was lost.
func counting(rounds int) func(rma.Comm) error {
	return func(c rma.Comm) error {
		s, _ := sim.Of(c)
		w, err := c.Allocate(rma.CounterSpec("w", 3))
		if err != nil {
			return err
		}
		if err := s.Begin(); err != nil {
			return err
		}
		for i := range rounds {
			v, err := w.GetFlush(0, 0)
			if err != nil {
				return err
			}
			w.Put(int64(i), (c.Rank()+1)%c.Size(), 1)
			if err := w.PutFlush(v+1, 0, 0); err != nil {
				return err
			}
			for try := 0; ; try++ {
				got, err := w.CompareAndSwapFlush(1, 0, 0, 2)
				if err != nil {
					return err
				}
				if got == 0 {
					break
				}
				if err := w.Backoff(0, 2, got, try); err != nil {
					return err
				}
			}
			if err := w.PutFlush(0, 0, 2); err != nil {
				return err
			}
			s.Mark("round %d", i)
		}
		if err := s.End(); err != nil {
			return err
		}
		if v, err := w.GetFlush(0, 0); err != nil || v != int64(rounds*c.Size()) {
			return fmt.Errorf("rank %d: %w", c.Rank(), errors.Join(errLost, err))
		}
		return c.Barrier()
	}
}

func schedulers(seed uint64, n int64) map[string]sim.Scheduler {
	return map[string]sim.Scheduler{
		"random": sim.Random(seed, 0, n), "pct": sim.PCT(seed, 4, 0, n), "exhaustive": sim.Exhaustive(sim.Unbounded), "bounded": sim.Exhaustive(1),
	}
}

// TestDeterministic: the same search finds the same failure by the same schedule, and
// its replay is the same execution, to the step and the line.
func TestDeterministic(t *testing.T) {
	body := counting(2)
	for seed := range uint64(40) {
		s := sim.Search{Node: []int{0, 0, 1}}
		again := schedulers(seed, 1000)
		for name, sched := range schedulers(seed, 1000) {
			st1, f1 := s.Run(sched, body)
			st2, f2 := s.Run(again[name], body)
			if f1 == nil || f2 == nil {
				t.Fatalf("seed %d, %s: nothing is lost", seed, name)
			}
			if f1.Schedule != f2.Schedule || st1 != st2 || f1.Error() != f2.Error() {
				t.Fatalf("seed %d, %s: %q and %q, %+v and %+v", seed, name, f1.Schedule, f2.Schedule, st1, st2)
			}
			trace, r, err := s.Replay(f1.Schedule, body)
			if err != nil || r == nil || r.Schedule != f1.Schedule || r.Error() != f1.Error() || r.Steps != f1.Steps {
				t.Fatalf("seed %d, %s: replay of %q: %+v, %v", seed, name, f1.Schedule, r, err)
			}
			trace2, _, _ := s.Replay(f1.Schedule, body)
			if text(t, trace) != text(t, trace2) || len(trace) < r.Steps {
				t.Fatalf("seed %d, %s: traces differ", seed, name)
			}
		}
	}
}

func text(t *testing.T, trace []sim.Event) string {
	t.Helper()
	var b strings.Builder
	if err := sim.WriteTrace(&b, trace); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// recorder is a Scheduler that notes what another one picks.
type recorder struct {
	sim.Scheduler
	picks [][]int
}

func (r *recorder) Begin() bool {
	r.picks = append(r.picks, nil)
	return r.Scheduler.Begin()
}

func (r *recorder) Next(s *sim.State) int {
	i := r.Scheduler.Next(s)
	r.picks[len(r.picks)-1] = append(r.picks[len(r.picks)-1], i)
	return i
}

// TestExecutionsByNumber: executions of a random search from a number on are those
// that a longer search comes to.
func TestExecutionsByNumber(t *testing.T) {
	body := counting(1)
	s := sim.Search{Node: []int{0}}
	all := &recorder{Scheduler: sim.Random(3, 0, 20)}
	s.Run(all, body)
	some := &recorder{Scheduler: sim.Random(3, 12, 8)}
	s.Run(some, body)
	for i := range 8 {
		if !slices.Equal(all.picks[12+i], some.picks[i]) {
			t.Fatalf("execution %d: %v and %v", 12+i, all.picks[12+i], some.picks[i])
		}
	}
}

// TestShrinkKeepsTheError: a shorter schedule fails in the same way, and has fewer deviations.
func TestShrinkKeepsTheError(t *testing.T) {
	deviations := func(schedule string) (n int) {
		for _, c := range schedule {
			if c >= 'a' && c <= 'z' || c == '(' {
				n++
			}
		}
		return n
	}
	s := sim.Search{Node: []int{0, 1, 2}}
	for name, body := range map[string]func(rma.Comm) error{
		"sentinel": counting(3),
		"text": func(c rma.Comm) error {
			if err := counting(3)(c); err != nil {
				return fmt.Errorf("no sentinel here")
			}
			return nil
		},
		"panic": func(c rma.Comm) error {
			if err := counting(3)(c); err != nil {
				panic("lost")
			}
			return nil
		},
	} {
		before, after := 0, 0
		for seed := range uint64(10) {
			_, f := s.Run(sim.Random(seed, 0, 1000), body)
			if f == nil {
				t.Fatalf("%s: nothing found", name)
			}
			g, err := s.Shrink(f, 2000, body)
			if err != nil {
				t.Fatal(err)
			}
			if errors.Is(f.Err, errLost) != errors.Is(g.Err, errLost) {
				t.Fatalf("%s: %v became %v", name, f.Err, g.Err)
			}
			if _, r, _ := s.Replay(g.Schedule, body); r == nil || r.Schedule != g.Schedule || r.Error() != g.Error() {
				t.Fatalf("%s: %q does not replay: %v", name, g.Schedule, r)
			}
			before, after = before+deviations(f.Schedule), after+deviations(g.Schedule)
		}
		if after*3 > before {
			t.Errorf("%s: %d deviations became %d", name, before, after)
		}
	}
}

// toy has a bug of depth d: every step but the last of a chain must come at its place
// in an order of two ranks, with many steps around it.
func toy(depth, padding int) func(rma.Comm) error {
	return func(c rma.Comm) error {
		s, _ := sim.Of(c)
		w, err := c.Allocate(rma.CounterSpec("w", 1))
		if err != nil {
			return err
		}
		if err := s.Begin(); err != nil {
			return err
		}
		// Rank r takes the counter from r to r+1, from r+2 to r+3, and so on, each only if
		// it finds it so; the last one finds the bug.
		for v := int64(c.Rank()); v < int64(depth+1); v += 2 {
			for range padding {
				s.Sleep(1)
			}
			got, err := w.CompareAndSwapFlush(v+1, v, 0, 0)
			if err != nil {
				return err
			}
			if got == v && v == int64(depth) {
				s.Fail(errLost)
			}
		}
		return s.End()
	}
}

// TestPCTKeepsItsPromise: a bug of depth d is found at least as often as the paper
// says.
func TestPCTKeepsItsPromise(t *testing.T) {
	for depth := 1; depth <= 3; depth++ {
		const ranks, padding, runs = 2, 6, 5_000
		s := sim.Search{Node: make([]int, ranks)}
		steps, found := 0, 0
		for first := int64(0); first < runs; {
			st, f := s.Run(sim.PCT(5, depth, first, runs-first), toy(depth, padding))
			first += st.Executions
			steps = max(steps, st.Longest)
			if f != nil {
				found++
			}
		}
		atLeast := runs / (ranks * math.Pow(float64(steps), float64(depth-1)))
		t.Logf("depth %d: found %d times in %d executions of %d steps; promised %.0f", depth, found, runs, steps, atLeast)
		if float64(found) < atLeast*0.8 {
			t.Errorf("depth %d: found %d times, the promise is %.0f", depth, found, atLeast)
		}
	}
}

// TestPCTFindsWhatRandomMisses: within the same number of executions. Rank 0 shows a
// wrong value for a moment, which rank 1 sees only if it does all of its steps in it.
func TestPCTFindsWhatRandomMisses(t *testing.T) {
	const runs = 2000
	body := func(c rma.Comm) error {
		s, _ := sim.Of(c)
		w, err := c.Allocate(rma.CounterSpec("w", 1))
		if err != nil {
			return err
		}
		if err := s.Begin(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			for _, v := range []int64{1, 0} {
				if err := w.PutFlush(v, 0, 0); err != nil {
					return err
				}
			}
		} else {
			for range 60 {
				s.Sleep(1)
			}
			if v, err := w.GetFlush(0, 0); err != nil || v != 0 {
				return errors.Join(errLost, err)
			}
		}
		return s.End()
	}
	s := sim.Search{Node: make([]int, 2)}
	if _, f := s.Run(sim.PCT(1, 2, 0, runs), body); f == nil {
		t.Errorf("PCT found nothing in %d executions", runs)
	}
	if _, f := s.Run(sim.Random(1, 0, runs), body); f != nil {
		t.Errorf("random finds it, at execution %d: the toy proves nothing", f.Execution)
	}
}

// TestPCTDoesNotLiveOnASpin: a rank that polls without waiting for a change lets the one
// with the lower priority go on.
func TestPCTDoesNotLiveOnASpin(t *testing.T) {
	s := sim.Search{Node: []int{0, 1}, MaxSteps: 1000}
	st, f := s.Run(sim.PCT(1, 2, 0, 500), func(c rma.Comm) error {
		job, _ := sim.Of(c)
		w, err := c.Allocate(rma.CounterSpec("w", 2))
		if err != nil {
			return err
		}
		if err := job.Begin(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			for range 20 {
				job.Sleep(1)
			}
			if err := w.PutFlush(1, 1, 0); err != nil {
				return err
			}
		} else {
			for try := 0; ; try++ {
				v, err := w.GetFlush(1, 0)
				if err != nil {
					return err
				}
				if v != 0 {
					break
				}
				if err := w.Backoff(1, 0, -1, try); err != nil { // has changed already: it may go on at once
					return err
				}
			}
		}
		return job.End()
	})
	if f != nil {
		t.Fatalf("%v after %d steps", f, f.Steps)
	}
	if st.Longest > 200 {
		t.Errorf("an execution took %d steps", st.Longest)
	}
}

// TestEndless: a search of all schedules reports an execution that has no end, and replays it.
func TestEndless(t *testing.T) {
	body := func(c rma.Comm) error {
		job, _ := sim.Of(c)
		w, err := c.Allocate(rma.CounterSpec("w", 1))
		if err != nil {
			return err
		}
		if err := job.Begin(); err != nil {
			return err
		}
		for {
			if _, err := w.FetchAndOpFlush(1, 0, 0, rma.Sum); err != nil {
				return err
			}
		}
	}
	s := sim.Search{Node: []int{0, 0}}
	_, f := s.Run(sim.Exhaustive(sim.Unbounded), body)
	if f == nil || !errors.Is(f, sim.ErrEndless) {
		t.Fatalf("the search found %v, want %v", f, sim.ErrEndless)
	}
	if _, again, err := s.Replay(f.Schedule, body); err != nil || again == nil || !errors.Is(again, sim.ErrEndless) {
		t.Errorf("replayed: %v, %v", again, err)
	}
}
