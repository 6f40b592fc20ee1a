package handle_test

import (
	"testing"

	"github.com/rmalock/rmalock/internal/handle"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

type table struct {
	w     *rma.Window
	held  []int
	next  *table
	ended func()
}

// TestRestore: what changes in a handle changes its fingerprint, and a restored one has the
// former state, its window's pending error included.
func TestRestore(t *testing.T) {
	_, err := sim.Search{Node: []int{0}}.Run(sim.Random(1, 0, 1), func(c rma.Comm) error {
		w, err := c.Allocate(rma.DataSpec("data", 1))
		if err != nil {
			return err
		}
		h := &table{w: w, held: []int{1, 2}, next: &table{}, ended: func() {}}
		h.next.next = h // a cycle
		first := handle.Fingerprint(h)
		s, ok := handle.TakeSnapshot(nil, h)
		if !ok {
			t.Fatal("no snapshot")
		}
		h.held[1], h.next.held = 3, []int{4}
		w.Put(1, 0, 9) // out of range
		if handle.Fingerprint(h) == first {
			t.Error("another state has the same fingerprint")
		}
		s.Restore()
		if handle.Fingerprint(h) != first || h.held[1] != 2 || h.next.held != nil {
			t.Errorf("restored: %v, %v", h.held, h.next.held)
		}
		return w.Flush(0)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPointers: nil, a pointer to what was met before, and one to another such thing are three states.
func TestPointers(t *testing.T) {
	a, b := &table{}, &table{}
	type both struct{ first, second, third *table }
	seen := map[uint64]int{}
	for i, of := range []both{{a, b, nil}, {a, b, a}, {a, b, b}, {a, b, &table{}}} {
		h := handle.Fingerprint(&of)
		if j, ok := seen[h]; ok {
			t.Errorf("states %d and %d have one fingerprint", i, j)
		}
		seen[h] = i
	}
}

// TestNoSnapshot: a map or a channel in a handle cannot be restored.
func TestNoSnapshot(t *testing.T) {
	for _, h := range []any{&struct{ m map[int]int }{map[int]int{}}, &struct{ c chan int }{make(chan int)}} {
		if _, ok := handle.TakeSnapshot(nil, h); ok {
			t.Errorf("%T: a snapshot", h)
		}
	}
}
