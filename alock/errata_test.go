package alock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// A printing is ALock as alock prints it, Algorithms 1 to 4, with a mistake or another way of
// writing VICTIM.
type printing struct {
	casVictim     bool // remote ranks swap VICTIM by a loop of CompareAndSwap, local ones by the CPU's exchange, as in the public code
	oneTail       bool // both cohorts use one queue, the local one by CPU atomics
	victimInSwap  bool // VICTIM is written in one flush with the swap of TAIL, without an order
	victimLate    bool // VICTIM is not flushed before the look at the other TAIL
	resetLate     bool // the descriptor's reset is not flushed before TAIL shows it
	zeroIsEnough  bool // a rank that gets a budget of 0 enters at once
	clearsVictim  bool // a release clears VICTIM
	passesForever bool // the budget is not counted down
}

type printed struct {
	printing
	w      *rma.Window
	rank   int
	home   int
	own    int64 // 1 local, 2 remote
	q      [2]int
	left   int64
	budget [3]int64
	n      [3]int // ranks of each cohort
	cohort []int64
}

const (
	pRTail, pLTail, pVictim = 0, 1, 2
	pLocal, pRemote         = 3, 5 // BUDGET, and NEXT after it
)

func (k printing) info(home int, budgets [2]int) lock.Info {
	return lock.Info{Name: "algorithms 1 to 4", Open: func(c rma.Comm, _, _ int) (lock.Table, error) {
		nodes, err := c.Allgather([]int64{int64(c.Node().Index)})
		if err != nil {
			return nil, err
		}
		class := rma.Plain
		if k.casVictim {
			class = rma.Far
		}
		w, err := c.Allocate(rma.Spec{Name: "alock", Regions: []rma.Region{{Count: 1, Words: []rma.Word{
			{Name: "R_TAIL", Class: rma.Far}, {Name: "L_TAIL", Class: rma.Near}, {Name: "VICTIM", Class: class},
			{Name: "L_BUDGET", Class: rma.Near}, {Name: "L_NEXT", Class: rma.Near},
			{Name: "R_BUDGET", Class: rma.Flag}, {Name: "R_NEXT", Class: rma.Flag},
		}}}})
		t := &printed{printing: k, w: w, rank: c.Rank(), home: home, budget: [3]int64{0, int64(budgets[0]), int64(budgets[1])}}
		for _, n := range nodes {
			cohort := int64(2)
			if n == nodes[home] {
				cohort = 1
			}
			t.cohort = append(t.cohort, cohort)
			t.n[cohort]++
		}
		t.own = t.cohort[t.rank]
		t.q = [2]int{pRTail, pRemote}
		if t.own == 1 && !k.oneTail {
			t.q = [2]int{pLTail, pLocal}
		}
		return t, err
	}}
}

func (t *printed) Len() int             { return 1 }
func (t *printed) Home(int) int         { return t.home }
func (t *printed) Free() error          { return t.w.Free() }
func (t *printed) Mutex(int) lock.Mutex { return nil }
func (t *printed) Idle() error          { return nil }

func (t *printed) TryLock(int, lock.Mode) (bool, error) { return false, errors.ErrUnsupported }

// Promise is the fairness of appendix A with its bounds: CohortFairness and GlobalFairness.
func (t *printed) Promise(lock.Mode) lock.Promise {
	mates := func(rank int, _ lock.Mode) bool { return t.cohort[rank] == t.own }
	mine, theirs, n := t.budget[t.own], t.budget[3-t.own], t.n[t.own]
	return lock.Promise{
		Bypass: lock.Unbounded, Acquire: lock.Unbounded, Release: lock.Unbounded,
		Bounds: []lock.Bound{
			{After: 1, Of: mates, Most: n - 1},
			{After: 1, Of: func(r int, m lock.Mode) bool { return !mates(r, m) }, Most: ((n+int(mine)-1)/int(mine) + 1) * int(theirs)},
		},
	}
}

// Lock is Algorithm 2, Lock.
func (t *printed) Lock(context.Context, int, lock.Mode) error {
	w, desc := t.w, t.q[1]
	w.Put(-1, t.rank, desc)
	w.Put(0, t.rank, desc+1)
	if !t.resetLate {
		if err := w.Flush(t.rank); err != nil {
			return err
		}
	}
	// Algorithm 3, qLock.
	swap := w.FetchAndOp(int64(t.rank+1), t.home, t.q[0], rma.Replace)
	if t.victimInSwap {
		w.Put(t.own, t.home, pVictim)
	}
	if err := w.Flush(t.home); err != nil {
		return err
	}
	pred := w.Value(swap)
	if t.resetLate {
		if err := w.Flush(t.rank); err != nil {
			return err
		}
	}
	if pred != 0 {
		if err := w.PutFlush(int64(t.rank+1), int(pred-1), desc+1); err != nil {
			return err
		}
		v, err := w.Await(t.rank, desc, rma.AtLeast(0))
		if err != nil {
			return err
		}
		if t.left = v; v > 0 {
			return nil
		}
		if t.left = t.budget[t.own]; t.zeroIsEnough {
			return nil
		}
	}
	t.left = t.budget[t.own]
	if t.oneTail { // both cohorts are one
		return nil
	}
	return t.peterson()
}

// peterson is Algorithm 4.
func (t *printed) peterson() error {
	w, other := t.w, pRTail+pLTail-t.q[0]
	if t.victimLate {
		w.Put(t.own, t.home, pVictim)
	} else if !t.victimInSwap {
		if err := t.setVictim(); err != nil {
			return err
		}
	}
	look := w.Get(t.home, other)
	if err := w.Flush(t.home); err != nil || w.Value(look) == 0 {
		return err
	}
	_, _, err := w.AwaitEither(rma.Wait{Target: t.home, Disp: other, Cond: rma.Equal(0)},
		rma.Wait{Target: t.home, Disp: pVictim, Cond: rma.NotEqual(t.own)}, rma.Forever)
	return err
}

// setVictim writes VICTIM.
func (t *printed) setVictim() error {
	switch {
	case !t.casVictim:
		return t.w.PutFlush(t.own, t.home, pVictim)
	case t.own == 1:
		_, err := t.w.FetchAndOpFlush(t.own, t.home, pVictim, rma.Replace)
		return err
	}
	for seen := int64(0); ; {
		found, err := t.w.CompareAndSwapFlush(t.own, seen, t.home, pVictim)
		if err != nil || found == seen {
			return err
		}
		seen = found
	}
}

// Unlock is Algorithm 2, Unlock, and Algorithm 3, qUnlock.
func (t *printed) Unlock(int, lock.Mode) error {
	w, desc := t.w, t.q[1]
	if t.clearsVictim {
		if err := w.PutFlush(0, t.home, pVictim); err != nil {
			return err
		}
	}
	d := int64(t.rank + 1)
	last, err := w.CompareAndSwapFlush(0, d, t.home, t.q[0])
	if err != nil || last == d {
		return err
	}
	next, err := w.Await(t.rank, desc+1, rma.NotEqual(0))
	if err != nil {
		return err
	}
	left := t.left - 1
	if t.passesForever {
		left = t.left
	}
	return w.PutFlush(left, int(next-1), desc)
}

// TestErrata: what a search of all schedules says of Algorithms 1 to 4, of the public code's way to
// write VICTIM, and of mistakes that a port may make. CPU atomics and network atomics are not
// atomic with each other. docs/errata.md has the schedules.
func TestErrata(t *testing.T) {
	doc, err := os.ReadFile("../docs/errata.md")
	if err != nil {
		t.Fatal(err)
	}
	small := []mix{{1, 1, 0}, {2, 1, 0}, {1, 2, 2}}
	for _, k := range []struct {
		name string
		printing
		on   []mix
		want error // nil: no schedule breaks it
		told bool  // in docs/errata.md, with its schedule
	}{
		{"as printed", printing{}, small, nil, false},
		{"the public code: VICTIM is swapped", printing{casVictim: true}, small, nil, false},
		{"one queue for both cohorts", printing{oneTail: true}, small, sim.ErrDeadlock, true},
		{"VICTIM and TAIL in one flush", printing{victimInSwap: true}, small, check.ErrExclusion, false},
		{"VICTIM is not flushed before the look", printing{victimLate: true}, small, check.ErrExclusion, true},
		{"the reset is not flushed before the swap", printing{resetLate: true}, small, sim.ErrDeadlock, false},
		{"a release clears VICTIM", printing{clearsVictim: true}, small, check.ErrExclusion, false},
		{"a budget of 0 is enough", printing{zeroIsEnough: true}, small[1:2], check.ErrStarved, false},
		{"the budget is not counted down", printing{passesForever: true}, small[1:2], check.ErrStarved, false},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for _, m := range k.on {
				for _, b := range [][2]int{{1, 1}, {1, 2}, {2, 1}} {
					p := check.Plan{Info: k.info(m.home, b), Ranks: m.local + m.remote, Acquires: 2, CPUFar: true, Topology: nodes(m.local + m.remote)}
					switch {
					case k.want == check.ErrStarved:
						p.Acquires = 4 // the bound counts
					case k.told:
						p.Acquires = 1
					}
					r, err := check.Run(p, sim.Exhaustive(sim.Unbounded))
					switch {
					case err != nil:
						t.Fatal(err)
					case r.Failure == nil:
						continue
					case k.want == nil || !errors.Is(r.Failure.Err, k.want):
						t.Fatalf("%+v, budgets %v: it fails with %v, want %v", m, b, r.Failure, k.want)
					}
					if k.told {
						told(t, string(doc), p, r.Failure)
					}
					return
				}
			}
			if k.want != nil {
				t.Errorf("it passes, want %v", k.want)
			}
		})
	}
}

// told looks whether docs/errata.md has the failure and its schedule.
func told(t *testing.T, doc string, p check.Plan, f *sim.Failure) {
	t.Helper()
	var b strings.Builder
	short, err := check.Report(&b, p, f)
	if err != nil {
		t.Fatal(err)
	}
	events, f, err := check.Replay(p, short.Schedule)
	if err != nil || f == nil {
		t.Fatal(f, err)
	}
	b.Reset()
	if err := sim.WriteTrace(&b, events); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprintf("`%s`", short.Schedule), f.Error(), strings.TrimRight(b.String(), "\n")} {
		if !strings.Contains(doc, text) {
			t.Errorf("docs/errata.md does not tell:\n%s", text)
		}
	}
}
