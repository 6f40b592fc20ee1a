package hook_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// failing decorates rank 0.
func failing(f hook.Failure) func(rma.Comm) rma.Comm {
	return func(c rma.Comm) rma.Comm {
		if c.Rank() != 0 {
			return c
		}
		return hook.Fault(c, f)
	}
}

func TestFaultOfTheNthOperation(t *testing.T) {
	f := hook.Failure{Nth: 2, Match: func(e hook.Event) bool { return e.Op.Kind == rma.KindAccumulate }}
	alone(t, failing(f), func(w *rma.Window) error {
		for i := range 4 {
			w.Put(int64(i), 2, flag)
			w.Accumulate(1, 2, far, rma.Sum)
			w.Accumulate(1, 1, far, rma.Sum)
			if i == 0 { // the second Accumulate is the one at rank 1
				if err := w.Flush(2); err != nil {
					return fmt.Errorf("Flush of another target: %w", err)
				}
				err := w.Flush(1)
				if !errors.Is(err, rma.ErrTransport) {
					return fmt.Errorf("the Flush of the failed operation returned %v, want ErrTransport", err)
				}
				for _, part := range []string{`"w"`, "rank 0", "Accumulate", "rank 1", "F[0]"} {
					if !strings.Contains(err.Error(), part) {
						return fmt.Errorf("error %q does not name %s", err, part)
					}
				}
				continue
			}
			if err := w.FlushAll(); err != nil {
				return err
			}
		}
		if v, err := w.GetFlush(1, far); err != nil || v != 3 {
			return fmt.Errorf("word at rank 1 is %d, %v; want the 3 that did not fail", v, err)
		}
		if v, err := w.GetFlush(2, far); err != nil || v != 4 {
			return fmt.Errorf("word at rank 2 is %d, %v; want 4", v, err)
		}
		return nil
	})
}

func TestFaultOfAwaitAndBackoff(t *testing.T) {
	for _, step := range []hook.Step{hook.StepAwait, hook.StepBackoff} {
		f := hook.Failure{Nth: 1, Match: func(e hook.Event) bool { return e.Step == step }}
		alone(t, failing(f), func(w *rma.Window) error {
			_, aerr := w.Await(0, flag, rma.Equal(0))
			berr := w.Backoff(0, flag, 1, 0)
			if got := errors.Is(aerr, rma.ErrTransport); got != (step == hook.StepAwait) {
				return fmt.Errorf("fault of %v: Await returned %v", step, aerr)
			}
			if got := errors.Is(berr, rma.ErrTransport); got != (step == hook.StepBackoff) {
				return fmt.Errorf("fault of %v: Backoff returned %v", step, berr)
			}
			if _, err := w.Await(0, flag, rma.Equal(0)); err != nil {
				return fmt.Errorf("the step after the failed one: %w", err)
			}
			return nil
		})
	}
}

func TestFaultCutsOff(t *testing.T) {
	err := inproc.Run(2, func(c rma.Comm) error {
		if c.Rank() == 0 {
			c = hook.Fault(c, hook.Failure{Nth: 3, CutOff: true})
		}
		a, err := c.Allocate(spec)
		if err != nil {
			return err
		}
		b, err := c.Allocate(spec)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			for i, w := range []*rma.Window{a, b, a, b, a} {
				w.Put(1, 1, flag+i%4)
				if err := w.Flush(1); errors.Is(err, rma.ErrPeer) != (i >= 2) {
					return fmt.Errorf("step %d: %v", i+1, err)
				}
			}
			if _, err := b.Await(0, flag, rma.Equal(0)); !errors.Is(err, rma.ErrPeer) {
				return fmt.Errorf("Await: %v", err)
			}
			if err := b.Backoff(0, flag, 0, 0); !errors.Is(err, rma.ErrPeer) {
				return fmt.Errorf("Backoff: %v", err)
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 1 {
			for i, want := range []int64{1, 0, 0, 0} {
				if v, err := a.GetFlush(1, flag+i); err != nil || v != want {
					return fmt.Errorf("word %d of the first window is %d, %v; want %d", i, v, err, want)
				}
			}
		}
		return errors.Join(a.Free(), b.Free())
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCheckRefusesOnOneNode(t *testing.T) {
	err := inproc.Run(2, func(c rma.Comm) error {
		w, err := hook.Check(c).Allocate(spec)
		if err != nil {
			return err
		}
		if _, err := w.FetchAndOpFlush(1, 0, flag, rma.Sum); !errors.Is(err, rma.ErrClass) {
			return fmt.Errorf("FetchAndOp of a Flag word: %v, want ErrClass", err)
		}
		if _, err := w.CompareAndSwapFlush(1, 0, 1, flag); !errors.Is(err, rma.ErrClass) {
			return fmt.Errorf("CompareAndSwap of a Flag word: %v, want ErrClass", err)
		}
		w.Accumulate(5, c.Rank(), far, rma.Sum)
		r := w.Get(c.Rank(), far)
		if v := w.Value(r); v == 5 {
			return fmt.Errorf("a result can be read before its Flush")
		}
		if err := w.Flush(c.Rank()); err != nil {
			return err
		}
		if v := w.Value(r); v != 5 {
			return fmt.Errorf("result %d, want 5", v)
		}
		a, b := w.Get(0, flag+2), w.Get(1, flag+2) // zeros
		if err := w.Flush(0); err != nil {
			return err
		}
		if w.Value(a) != 0 || w.Value(b) == 0 {
			return fmt.Errorf("after the Flush of one target the results are %d and %d", w.Value(a), w.Value(b))
		}
		if err := w.Flush(1); err != nil || w.Value(b) != 0 {
			return fmt.Errorf("after the Flush of the other target the result is %d, %v", w.Value(b), err)
		}
		for range rma.MaxPending + 1 {
			w.Put(1, 1-c.Rank(), flag)
		}
		if err := w.FlushAll(); !errors.Is(err, rma.ErrPending) {
			return fmt.Errorf("%d operations without a Flush: %v, want ErrPending", rma.MaxPending+1, err)
		}
		return w.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCheckRefusesNearWordsOfOtherNodes(t *testing.T) {
	alone(t, hook.Check, func(w *rma.Window) error {
		if err := w.PutFlush(1, 1, near); err != nil {
			return err
		}
		if err := w.PutFlush(1, 2, near); !errors.Is(err, rma.ErrClass) {
			return fmt.Errorf("Put of a Near word of another node: %v, want ErrClass", err)
		}
		return nil
	})
}
