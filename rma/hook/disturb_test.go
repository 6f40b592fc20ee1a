package hook_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// clock is a Comm whose rank sleeps by noting it.
type clock struct {
	rma.Comm
	slept []int64
}

func (c *clock) Sleep(ns int64) { c.slept = append(c.slept, ns) }

func TestDelaySleepsBeforeSteps(t *testing.T) {
	var k *clock
	var steps []hook.Step
	alone(t, func(c rma.Comm) rma.Comm {
		if c.Rank() != 0 {
			return c
		}
		k = &clock{Comm: c}
		return hook.Delay(k, func(e hook.Event) int64 {
			steps = append(steps, e.Step)
			return int64(e.Step) * 10 // nothing before an issue
		})
	}, func(w *rma.Window) error {
		if err := w.PutFlush(1, 2, far); err != nil {
			return err
		}
		if _, err := w.Await(2, far, rma.Equal(1)); err != nil {
			return err
		}
		return w.Backoff(2, far, 0, 0)
	})
	if want := []hook.Step{hook.StepIssue, hook.StepFlush, hook.StepAwait, hook.StepBackoff}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	if want := []int64{10, 30, 50}; !slices.Equal(k.slept, want) {
		t.Errorf("slept %v, want %v", k.slept, want)
	}
}

func TestJitterIsSeeded(t *testing.T) {
	draw := func(seed uint64) (out [2][]int64) {
		err := inproc.Run(2, func(c rma.Comm) error {
			j := hook.Jitter(c, seed, 3, 50)
			for range 300 {
				out[c.Rank()] = append(out[c.Rank()], j(hook.Event{}))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	a, b, c := draw(1), draw(1), draw(2)
	if !slices.Equal(a[0], b[0]) || !slices.Equal(a[1], b[1]) {
		t.Error("the same seed gave different delays")
	}
	if slices.Equal(a[0], a[1]) || slices.Equal(a[0], c[0]) {
		t.Error("ranks or seeds share delays")
	}
	delayed := 0
	for _, ns := range a[0] {
		if ns < 0 || ns > 50 {
			t.Errorf("delay of %d ns, want 0 to 50", ns)
		}
		if ns > 0 {
			delayed++
		}
	}
	if delayed < 60 || delayed > 140 {
		t.Errorf("%d of 300 steps delayed, want about 100", delayed)
	}
}

// TestRelaxHoldsBack: before the Flush another rank sees old values and new ones in
// any order; after it the new ones; and operations on one word keep their order.
func TestRelaxHoldsBack(t *testing.T) {
	var seen [2][2]int // how often the words were (old, new) when both were issued
	for seed := range uint64(200) {
		err := inproc.Run(2, func(c rma.Comm) error {
			if c.Rank() == 0 {
				c = hook.Relax(c, seed)
			}
			w, err := c.Allocate(spec)
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				w.Put(1, 1, flag)
				w.Put(1, 1, flag+1)
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			if c.Rank() == 1 {
				var v [2]int64
				for i := range v {
					if v[i], err = w.GetFlush(1, flag+i); err != nil {
						return err
					}
				}
				seen[v[0]][v[1]]++
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			if c.Rank() == 0 {
				if err := w.Flush(1); err != nil {
					return err
				}
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			for i := range 2 {
				if v, err := w.GetFlush(1, flag+i); err != nil || v != 1 {
					return fmt.Errorf("after the Flush word %d holds %d, %v", i, v, err)
				}
			}
			return w.Free()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen[0][0] == 0 || seen[0][1] == 0 || seen[1][0] == 0 {
		t.Errorf("before the Flush the words were seen as %v; want each of 00, 01 and 10 at times", seen)
	}
}

func TestRelaxKeepsOrderOnAWord(t *testing.T) {
	for seed := range uint64(100) {
		alone(t, func(c rma.Comm) rma.Comm { return hook.Relax(c, seed) }, func(w *rma.Window) error {
			for target := range 4 {
				var before [10]rma.Result
				for i := range before {
					before[i] = w.FetchAndOp(int64(i+1), target, far, rma.Replace)
				}
				buf := make([]int64, 3)
				w.PutBulk([]int64{5, 6, 7}, target, flag)
				w.Put(8, target, flag+1)
				w.GetBulk(buf, target, flag)
				w.Put(9, target, flag+2)
				if err := w.Flush(target); err != nil {
					return err
				}
				for i, r := range before {
					if w.Value(r) != int64(i) {
						return fmt.Errorf("seed %d: swap %d found %d", seed, i, w.Value(r))
					}
				}
				if want := []int64{5, 8, 7}; !slices.Equal(buf, want) {
					return fmt.Errorf("seed %d: bulk %v, want %v", seed, buf, want)
				}
			}
			return w.FlushAll()
		})
	}
}

func TestRelaxFlushesTargetsApart(t *testing.T) {
	alone(t, func(c rma.Comm) rma.Comm { return hook.Relax(c, 1) }, func(w *rma.Window) error {
		a := w.FetchAndOp(1, 1, far, rma.Sum)
		b := w.FetchAndOp(1, 2, far, rma.Sum)
		if err := w.Flush(2); err != nil {
			return err
		}
		if w.Value(b) != 0 {
			return fmt.Errorf("result %d, want 0", w.Value(b))
		}
		if err := w.FlushAll(); err != nil {
			return err
		}
		if w.Value(a) != 0 {
			return fmt.Errorf("result %d, want 0", w.Value(a))
		}
		return nil
	})
}
