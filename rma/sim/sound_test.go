package sim_test

import (
	"os"
	"testing"

	"github.com/rmalock/rmalock/rma/sim"
)

// compare runs random programs under a plain enumeration and under Exhaustive, and
// demands the same outcomes.
func compare(t *testing.T, programs int, draw func(seed uint64) *program, bound func(seed uint64) int) {
	const most = 4_000
	compared, executions, reduced, outcomes := 0, 0, 0, 0
	failed := 0
	for seed := uint64(0); compared < programs && failed < 3; seed++ {
		p := draw(seed)
		plain := &plain{bound: bound(seed), left: most}
		all := p.outcomes(plain)
		if plain.left < 0 {
			continue // too many to try
		}
		compared++
		x := sim.Exhaustive(bound(seed))
		some := p.outcomes(x)
		if d := differ(all, some); d != "" {
			failed++
			t.Errorf("seed %d, bound %d:\n%v%s", seed, bound(seed), p, d)
		}
		executions += most - plain.left - 1
		outcomes += len(all)
		for _, n := range some {
			reduced += n
		}
	}
	t.Logf("%d programs with %d outcomes: %d executions one by one, %d with reductions", compared, outcomes, executions, reduced)
}

// size is one of three, by how long the tests may take.
func size(short, standard, deep int) int {
	switch {
	case testing.Short():
		return short
	case os.Getenv("RMALOCK_DEEP") != "":
		return deep
	}
	return standard
}

// TestReductionsLoseNothing: what random programs can come to is the same with all
// reductions of Exhaustive as without any.
func TestReductionsLoseNothing(t *testing.T) {
	compare(t, size(100, 350, 1200), randomProgram, func(uint64) int { return sim.Unbounded })
}

// TestBoundedLosesNothing: the same for bounded searches.
func TestBoundedLosesNothing(t *testing.T) {
	compare(t, size(80, 200, 400), randomProgram, func(seed uint64) int { return int(seed % 4) })
}

// TestClockAndDeathLoseNothing: the same where ranks look at the clock, die, and have
// successors.
func TestClockAndDeathLoseNothing(t *testing.T) {
	compare(t, size(150, 500, 6000), hazardousProgram, func(seed uint64) int {
		if seed%4 == 0 {
			return int(seed / 4 % 3)
		}
		return sim.Unbounded
	})
}

// TestBoundedKnowsLast: after a tick a rank that waited may go on, so it makes a difference which
// rank was the last one.
func TestBoundedKnowsLast(t *testing.T) {
	compare(t, 1, func(uint64) *program { return hazardousProgram(3144) }, func(uint64) int { return 0 })
}
