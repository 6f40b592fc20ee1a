package dht

import (
	"errors"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// TestCircleIsAnError: a chain that leads back to itself, as a lock that does not exclude
// can leave it, is an error and not a rank that never returns.
func TestCircleIsAnError(t *testing.T) {
	err := inproc.Run(1, func(c rma.Comm) error {
		table, err := New(c, Config{Slots: 1, Heap: 4})
		if err != nil {
			return err
		}
		for k := int64(1); k <= 3; k++ {
			if _, err := table.Insert(k, k); err != nil {
				return err
			}
		}
		v, slot := table.locate(1)
		if err := table.readSlot(v, slot); err != nil {
			return err
		}
		last := table.rec[slotLast]
		if err := table.readElement(v, last); err != nil {
			return err
		}
		first := table.rec[elemPrev]
		if err := table.w.PutFlush(last, v, table.elementDisp(first)+elemPrev); err != nil {
			return err
		}
		if _, _, err := table.Lookup(99); !errors.Is(err, ErrCorrupt) {
			t.Errorf("Lookup in a circle: %v", err)
		}
		if err := table.Range(func(int64, int64) error { return nil }); !errors.Is(err, ErrCorrupt) {
			t.Errorf("Range in a circle: %v", err)
		}
		return table.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
}
