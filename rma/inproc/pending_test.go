package inproc_test

import (
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// TestPendingElsewhere: one operation left pending towards a rank does not limit
// how many are completed towards another, and a result that is pending is not
// overwritten.
func TestPendingElsewhere(t *testing.T) {
	err := inproc.RunNodes(3, 1, func(c rma.Comm) error {
		w, err := c.Allocate(rma.CounterSpec("count", 1))
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			w.Put(7, 2, 0)
			for range 3 * rma.MaxPending {
				if _, err := w.GetFlush(1, 0); err != nil {
					return err
				}
			}
			if err := w.FlushAll(); err != nil {
				return err
			}
			kept := w.Get(2, 0)
			for i := range rma.MaxPending {
				switch _, err := w.GetFlush(1, 0); {
				case i < rma.MaxPending-1 && err != nil:
					return err
				case i == rma.MaxPending-1 && err == nil:
					t.Error("a pending result's slot was given away")
				}
			}
			if err := w.FlushAll(); err != nil {
				return err
			}
			if v := w.Value(kept); v != 7 {
				t.Errorf("the pending Get read %d, want 7", v)
			}
		}
		return w.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}
