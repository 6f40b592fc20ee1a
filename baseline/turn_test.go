package baseline

import (
	"context"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// turnless is N-CoSED whose turns all have one number, as in the programs of dslr's authors.
type turnless struct{ *NCoSED }

func (t turnless) Lock(ctx context.Context, id int, mode lock.Mode) error {
	t.turn, t.same = 0, true
	return t.NCoSED.Lock(ctx, id, mode)
}

// TestTurns: without a number of its turn in a writer's word, a request for an old turn of a
// writer is taken for one for its new turn.
func TestTurns(t *testing.T) {
	plan := check.Plan{Ranks: 5, Acquires: 3, Writers: 2, MemoryNodes: 1, Info: lock.Info{
		Name: "without turns", Shared: true, Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			t, err := NewNCoSED(c, NCoSEDConfig{Config: Config{Locks: n, Home: home}})
			return turnless{t}, err
		},
	}}
	r, err := check.Run(plan, sim.Random(1, 0, 3000))
	if err != nil {
		t.Fatal(err)
	}
	if r.Failure == nil {
		t.Error("it passes")
		return
	}
	t.Logf("execution %d: %v", r.Failure.Execution, r.Failure.Err)
}
