package dhttest_test

import (
	"errors"
	"testing"

	"github.com/rmalock/rmalock/dht/dhttest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// combining is small with Config.Combine.
func combining(t *testing.T, way string, ranks, calls int, seed uint64) dhttest.Plan {
	p := small(t, way, ranks, calls, seed)
	p.Combine, p.Ascending = true, true
	return p
}

// oneQueue are two keys that have one queue on a node of 3 ranks, and on one of 8.
var oneQueue = []int64{1, 147}

// TestSearchCombine: Adds that are combined, with Inserts and Lookups and alone, under
// three locks: all schedules of 2 ranks with 2 operations, those of 3 with up to
// 2 preemptions, random ones of 16 ranks on two nodes.
func TestSearchCombine(t *testing.T) {
	for _, way := range []string{"fompi-spin", "dmcs", "fompi-rw"} {
		t.Run("with"+way, func(t *testing.T) {
			t.Parallel()
			whole(t, combining(t, way, 2, 2, 3), sim.Unbounded)
			three := combining(t, way, 3, 1, 0)
			three.Adds, three.Keys = true, []int64{1}
			whole(t, three, 2)
			three.Calls, three.Keys = 2, oneQueue
			preemptions := 1
			if way == "fompi-spin" && !testing.Short() || deep() {
				preemptions = 2
			}
			whole(t, three, preemptions)
			executions := int64(20)
			if testing.Short() {
				executions = 4
			}
			for seed := range uint64(10) {
				p := combining(t, way, 16, 3, seed)
				p.Node = []int{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}
				if p.Volumes, p.Adds = 2, seed%2 == 0; p.Adds {
					p.Keys = oneQueue
				}
				linearizable(t, p, sim.Random(seed, 0, executions))
				linearizable(t, p, sim.PCT(seed, 3, 0, executions))
			}
		})
	}
}

// Words of a rank's mail, in the window of package dht's combining.
const (
	mailKey    = 0
	mailStatus = 3
	mailResult = 4
)

// TestSearchCombineMutants: a search finds each of these mistakes.
func TestSearchCombineMutants(t *testing.T) {
	for _, m := range []struct {
		name string
		do   func(m *mutant, o *rma.Operation)
	}{
		{"each is told the first one's answer", func(_ *mutant, o *rma.Operation) {
			if o.Disp == mailResult {
				o.Operand = 0
			}
		}},
		{"Adds to another key are taken on", func(_ *mutant, o *rma.Operation) {
			if o.Disp == mailKey && o.Kind == rma.KindPut {
				o.Operand = 1
			}
		}},
		{"STATUS is written with RESULT", func(m *mutant, o *rma.Operation) {
			m.late = m.late || o.Disp == mailResult && o.Kind == rma.KindPut
		}},
		{"STATUS of the last time is left", func(_ *mutant, o *rma.Operation) {
			if o.Disp == mailStatus && o.Kind == rma.KindPut && o.Operand == 0 {
				o.Kind, o.Op = rma.KindAccumulate, rma.NoOp
			}
		}},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			p := combining(t, "dmcs", 3, 2, 1)
			p.Adds, p.Keys = true, oneQueue
			p.Disturb = func(c rma.Comm) rma.Comm { return mutated{c, m.do} }
			r, err := dhttest.Run(p, sim.Random(1, 0, 3000))
			if err != nil {
				t.Fatal(err)
			}
			if r.Failure == nil {
				t.Fatalf("not found in %d executions", r.Stats.Executions)
			}
			if f := r.Failure; !errors.Is(f, dhttest.ErrHistory) && !errors.Is(f, sim.ErrDeadlock) && !errors.Is(f, sim.ErrEndless) {
				t.Errorf("found as %v", f)
			}
			t.Logf("after %d executions: %v", r.Stats.Executions, r.Failure)
		})
	}
}

// mutated is a Comm with a mistake in the window of the combining.
type mutated struct {
	rma.Comm
	do func(m *mutant, o *rma.Operation)
}

func (c mutated) Unwrap() rma.Comm { return c.Comm }

func (c mutated) Allocate(spec rma.Spec) (*rma.Window, error) {
	w, err := c.Comm.Allocate(spec)
	if err != nil || spec.Name != "dht combining" {
		return w, err
	}
	return rma.Decorate(w, func(t rma.Transport) rma.Transport { return &mutant{Transport: t, do: c.do} }), nil
}

type mutant struct {
	rma.Transport
	do   func(m *mutant, o *rma.Operation)
	late bool // the next FlushAll has no effect: what comes after it goes with what came before
}

func (m *mutant) Issue(o rma.Operation) {
	m.do(m, &o)
	m.Transport.Issue(o)
}

func (m *mutant) Flush(target int, r *rma.Results) (int, error) {
	if m.late && target < 0 {
		m.late = false
		return 1, nil // still pending
	}
	return m.Transport.Flush(target, r)
}
