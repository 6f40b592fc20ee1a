package hook_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// spec has a word of each class.
var spec = rma.Spec{Name: "w", Regions: []rma.Region{
	{Count: 4, Words: []rma.Word{{Name: "F", Class: rma.Far}}},
	{Count: 4, Words: []rma.Word{{Name: "N", Class: rma.Near}}},
	{Count: 4, Words: []rma.Word{{Name: "D", Class: rma.Flag}}},
}}

const far, near, flag = 0, 4, 8 // displacements of the first word of each class

// alone runs f on rank 0 of two nodes of two ranks with a window of spec; the
// other ranks only take part in the collective calls.
func alone(t *testing.T, wrap func(rma.Comm) rma.Comm, f func(w *rma.Window) error) {
	t.Helper()
	err := inproc.RunNodes(2, 2, func(c rma.Comm) error {
		w, err := wrap(c).Allocate(spec)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			err = f(w)
		}
		if err = rma.Agree(c, err); err != nil {
			return err
		}
		return w.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCountByKindAndDistance(t *testing.T) {
	var tally hook.Tally
	wrap := func(c rma.Comm) rma.Comm {
		if c.Rank() == 0 {
			return hook.Count(c, &tally)
		}
		return c
	}
	alone(t, wrap, func(w *rma.Window) error {
		buf := make([]int64, 3)
		for target := range 3 { // own, mate, far
			for range target + 1 {
				w.Put(1, target, far)
				w.Get(target, far)
				w.Accumulate(1, target, far, rma.Sum)
				w.FetchAndOp(1, target, far, rma.Replace)
				w.CompareAndSwap(1, 2, target, far)
				w.PutBulk(buf, target, flag)
				w.GetBulk(buf, target, flag)
				if _, err := w.MaskedSwapFlush(1, 1, 0, 0, target, far); err != nil {
					return err
				}
			}
			if err := w.Flush(target); err != nil { // nothing pending
				return err
			}
			if _, err := w.Await(target, flag, rma.Equal(0)); err != nil {
				return err
			}
			if err := w.Backoff(target, flag, 0, 0); err != nil {
				return err
			}
		}
		w.Put(1, 3, far)
		return w.FlushAll()
	})
	for d := range hook.Distances {
		for k := range rma.Kinds {
			want := int64(d) + 1
			if k == rma.KindPut && d == hook.Far {
				want++
			}
			if got := tally.Ops(k, d); got != want {
				t.Errorf("%v %v counted %d times, want %d", d, k, got, want)
			}
		}
		if tally.Flushes(d) != int64(d)+1 || tally.Awaits(d) != 1 || tally.Backoffs(d) != 1 {
			t.Errorf("%v: %d flushes, %d awaits, %d backoffs, want %d and 1 of each",
				d, tally.Flushes(d), tally.Awaits(d), tally.Backoffs(d), d+1)
		}
	}
	if got, want := tally.Remote(), int64(8*2+8*3+1); got != want {
		t.Errorf("Remote is %d, want %d", got, want)
	}
	if tally.FlushAlls() != 1 {
		t.Errorf("FlushAlls is %d, want 1", tally.FlushAlls())
	}
}

// TestCountFlushesByTarget: each Flush of a target with something pending counts,
// in one node too, where the first could have done for all.
func TestCountFlushesByTarget(t *testing.T) {
	var tally hook.Tally
	err := inproc.Run(3, func(c rma.Comm) error {
		d := c
		if c.Rank() == 0 {
			d = hook.Count(c, &tally)
		}
		w, err := d.Allocate(spec)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			for target := range 3 {
				w.Put(1, target, flag)
			}
			for target := range 3 {
				if err := w.Flush(2 - target); err != nil {
					return err
				}
			}
		}
		return w.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
	if tally.Flushes(hook.Own) != 1 || tally.Flushes(hook.Mate) != 2 {
		t.Errorf("three flushes counted as\n%v", &tally)
	}
}

func TestCountDifferencesAndTotal(t *testing.T) {
	err := inproc.Run(3, func(c rma.Comm) error {
		var tally hook.Tally
		w, err := hook.Count(c, &tally).Allocate(spec)
		if err != nil {
			return err
		}
		w.Put(1, c.Rank(), flag)
		if err := w.FlushAll(); err != nil {
			return err
		}
		before := tally.Snapshot()
		if err := w.AccumulateFlush(1, 0, far, rma.Sum); err != nil {
			return err
		}
		since := tally.Sub(before)
		if since.Ops(rma.KindPut, hook.Own) != 0 || since.FlushAlls() != 0 ||
			since.Ops(rma.KindAccumulate, hook.Own)+since.Ops(rma.KindAccumulate, hook.Mate) != 1 {
			return fmt.Errorf("since the snapshot:\n%v", &since)
		}
		sum, err := tally.Total(c)
		if err != nil {
			return err
		}
		if sum.Ops(rma.KindPut, hook.Own) != 3 || sum.FlushAlls() != 3 || sum.Remote() != 2 ||
			sum.Ops(rma.KindAccumulate, hook.Own) != 1 || sum.Flushes(hook.Mate) != 2 {
			return fmt.Errorf("total:\n%v", &sum)
		}
		tally.Reset()
		if tally != (hook.Tally{}) {
			return fmt.Errorf("after Reset:\n%v", &tally)
		}
		return w.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCountReachesSplits(t *testing.T) {
	err := inproc.Run(4, func(c rma.Comm) error {
		var tally hook.Tally
		d := hook.Count(c, &tally)
		half, err := d.Split(c.Rank()%2, 0)
		if err != nil {
			return err
		}
		w, err := half.Allocate(spec)
		if err != nil {
			return err
		}
		if err := w.PutFlush(1, 1-half.Rank(), flag); err != nil {
			return err
		}
		if tally.Ops(rma.KindPut, hook.Mate) != 1 {
			return fmt.Errorf("a Put on a window of a Split was not counted:\n%v", &tally)
		}
		color := -1
		if c.Rank() == 0 {
			color = 0
		}
		none, err := d.Split(color, 0)
		if err != nil || (none == nil) != (c.Rank() != 0) {
			return fmt.Errorf("Split with color %d gave %v, %v", color, none, err)
		}
		if u, ok := d.(rma.Unwrapper); !ok || u.Unwrap() != c {
			return fmt.Errorf("the Comm below is not found")
		}
		return w.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTallyString(t *testing.T) {
	var tally hook.Tally
	alone(t, func(c rma.Comm) rma.Comm { return hook.Count(c, &tally) }, func(w *rma.Window) error {
		w.Put(1, 0, far)
		w.FetchAndOp(1, 2, far, rma.Sum)
		return w.FlushAll()
	})
	got := strings.TrimRight(tally.String(), "\n")
	want := `                     own     mate      far
Put                    1        0        0
FetchAndOp             0        0        1
FlushAll                                 1`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCountDoesNotAllocate(t *testing.T) {
	var tally hook.Tally
	alone(t, func(c rma.Comm) rma.Comm {
		if c.Rank() == 0 {
			return hook.Count(c, &tally)
		}
		return c
	}, func(w *rma.Window) error {
		n := testing.AllocsPerRun(100, func() {
			for target := range 3 {
				w.Put(1, target, far)
				w.FetchAndOp(1, target, far, rma.Sum)
				if w.Flush(target) != nil {
					panic("flush")
				}
			}
		})
		if n != 0 {
			return fmt.Errorf("%v allocations per run, want 0", n)
		}
		return nil
	})
}
