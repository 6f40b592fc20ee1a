package rma_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/rma"
)

// TestFenceCostsNothing: fences reach the transport as epochs of operations, and cost no Flush.
func TestFenceCostsNothing(t *testing.T) {
	w, s, _ := window(t, 1)
	w.Fence(2) // before the first operation it orders nothing
	w.Put(1, 2, far)
	w.Fence(2)
	w.Put(2, 2, far+1)
	w.Put(3, 3, far) // another target
	w.Fence(2)
	w.Fence(3)
	w.Get(2, far)
	w.Get(3, far)
	var epochs []uint8
	for i := range s.pending {
		epochs = append(epochs, s.pending[i].Epoch)
	}
	if got := fmt.Sprint(epochs); got != "[0 1 0 2 1]" {
		t.Errorf("epochs are %s, want [0 1 0 2 1]", got)
	}
	for i, want := range []bool{false, true, false, true, false} { // after the Put of 2.0
		if got := s.pending[i].Follows(&s.pending[0]); i > 0 && got != want {
			t.Errorf("operation %d follows the first: %v, want %v", i, got, want)
		}
	}
	if err := w.FlushAll(); err != nil {
		t.Fatal(err)
	}
	s.expect(t, "operations and fences", "Put 2.0", "Put 2.1", "Put 3.0", "Get 2.0", "Get 3.0", "flush -1")
	w.Put(1, 2, far)
	if e := s.pending[0].Epoch; e != 0 {
		t.Errorf("after a FlushAll the epoch is %d, want 0", e)
	}
}

// TestFenceBeforeNearWord: what the CPU does at once waits for what a Fence puts before it.
func TestFenceBeforeNearWord(t *testing.T) {
	w, s, _ := window(t, 0, 1)
	w.Put(1, 0, far)
	w.Put(1, 2, far)
	w.Put(5, 0, near) // no fence: at once
	s.expect(t, "a near word before the fence", "Put 0.0", "Put 2.0")
	w.Fence(0)
	w.Put(6, 0, near)
	s.expect(t, "a near word after the fence", "flush 0")
	if len(s.pending) != 1 {
		t.Errorf("%d operations are pending, want the one of another target", len(s.pending))
	}
	s.err = errors.New("broken")
	w.Put(1, 0, far)
	w.Fence(0)
	w.Put(7, 0, near)
	if err := w.FlushAll(); err == nil || err.Error() != "broken" {
		t.Errorf("the error before a near word: %v", err)
	}
	if v, err := w.GetFlush(0, near); v != 6 || err != nil {
		t.Errorf("the near word is %d, %v; want 6: what comes after a failure is not done", v, err)
	}
}

// TestManyFences: more targets, or more fences of one, than a handle counts cost a Flush.
func TestManyFences(t *testing.T) {
	w, s, _ := window(t, 1)
	w.Put(1, 2, far)
	for range 256 {
		w.Fence(2)
	}
	s.expect(t, "256 fences", "Put 2.0", "flush 2")
	w.Fence(2)
	w.Put(1, 2, far)
	if e := s.pending[0].Epoch; e != 0 {
		t.Errorf("with nothing pending a fence gives epoch %d, want 0", e)
	}
	w.Fence(-1)
	if err := w.Flush(2); !errors.Is(err, rma.ErrRank) {
		t.Errorf("Fence of rank -1: %v, want ErrRank", err)
	}
}
