package sim_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// alikeProgram draws a program of which two or three ranks run the same code.
func alikeProgram(seed uint64) *program {
	rng := rand.New(rand.NewPCG(seed, 0xA11CE))
	p := randomProgram(seed)
	if rng.IntN(2) == 0 {
		p = hazardousProgram(seed)
		p.maxDelay = rng.IntN(2)
	}
	p.alike, p.faults, p.cpuFar = true, nil, false
	for r := range p.code {
		p.code[r] = slices.DeleteFunc(p.code[r], func(i instruction) bool { return i.what == "barrier" })
	}
	for r := 1; r < len(p.code); r++ {
		if r == 1 || rng.IntN(2) == 0 {
			p.code[r] = p.code[0]
		}
	}
	if rng.IntN(4) == 0 { // ranks that are alike need not be neighbours
		last := len(p.code) - 1
		p.code[1], p.code[last] = p.code[last], p.code[1]
	}
	return p
}

// TestAlikeLosesNothing: what programs can come to, but for which rank did what, is the same where
// ranks that are alike may change places.
func TestAlikeLosesNothing(t *testing.T) {
	compare(t, size(150, 500, 6000), alikeProgram, func(seed uint64) int {
		if seed%4 == 0 {
			return int(seed / 4 % 3)
		}
		return sim.Unbounded
	})
}

// visited notes the states that a Scheduler is asked about, but for those in which all ranks are at
// End: they differ by what took effect before all were there.
type visited struct {
	sim.Scheduler
	states map[uint64]bool
}

func (x *visited) Next(s *sim.State) int {
	if h := s.Hash(); !slices.ContainsFunc(s.Steps, func(k sim.Step) bool { return k.Ends }) {
		x.states[h] = true
	}
	return x.Scheduler.Next(s)
}

// TestAlikeSeesAllStates: the states of a search in which ranks change places are those of a plain
// enumeration, each once.
func TestAlikeSeesAllStates(t *testing.T) {
	const most = 4_000
	compared, all, some, apart := 0, 0, 0, 0
	for seed := uint64(0); compared < size(100, 300, 3000); seed++ {
		p := alikeProgram(seed)
		enumeration := &plain{bound: sim.Unbounded, left: most}
		every := &visited{enumeration, map[uint64]bool{}}
		p.outcomes(every)
		if enumeration.left < 0 {
			continue
		}
		compared++
		x := sim.Exhaustive(sim.Unbounded)
		reduced := &visited{x, map[uint64]bool{}}
		if ends := p.outcomes(reduced); ends[sim.ErrDeadlock.Error()] > 0 {
			continue // a search that fails does not go on from there
		}
		for h := range every.states {
			if !reduced.states[h] {
				t.Fatalf("seed %d: of %d states %d were seen\n%v", seed, len(every.states), len(reduced.states), p)
			}
		}
		for h := range reduced.states {
			if !every.states[h] {
				t.Fatalf("seed %d: a state that does not exist\n%v", seed, p)
			}
		}
		p.apart = true
		named := &visited{sim.Exhaustive(sim.Unbounded), map[uint64]bool{}}
		p.outcomes(named)
		apart += len(named.states)
		all, some = all+len(every.states), some+len(reduced.states)
	}
	if some*5 > apart*4 {
		t.Errorf("%d states, and %d of ranks that keep their places", some, apart)
	}
	t.Logf("%d programs: %d states of %d, and %d of ranks that keep their places", compared, some, all, apart)
}

// TestAlikeRefuses: ranks with windows of their own are not alike.
func TestAlikeRefuses(t *testing.T) {
	_, f := sim.Search{Node: []int{0, 0}, MemoryNodes: 1}.Run(sim.Exhaustive(sim.Unbounded), func(c rma.Comm) error {
		s, _ := sim.Of(c)
		if _, err := c.Allocate(rma.CounterSpec("w", 1)); err != nil {
			return err
		}
		s.Alike(1)
		if err := s.Begin(); err != nil {
			return err
		}
		return s.End()
	})
	if f == nil || !errors.Is(f.Err, sim.ErrAlike) {
		t.Errorf("%v, want ErrAlike", f)
	}
}
