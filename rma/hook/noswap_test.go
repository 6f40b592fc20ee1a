package hook_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
)

// TestNoSwap: no FetchAndOp with Replace reaches the window below; a swap costs a try more
// if the word is not 0, and keeps its place among the operations on its word.
func TestNoSwap(t *testing.T) {
	var below hook.Tally
	alone(t, func(c rma.Comm) rma.Comm {
		if c.Rank() > 0 {
			return hook.NoSwap(c)
		}
		return hook.NoSwap(hook.Count(c, &below))
	}, func(w *rma.Window) error {
		if w.Caps().NativeSwap {
			t.Error("the window says that its swap is native")
		}
		const host = 2
		for try, want := range []int64{1, 2, 2} { // the word is 0, 1, 2
			below.Reset()
			old, err := w.FetchAndOpFlush(int64(try)+1, host, far, rma.Replace)
			if err != nil || old != int64(try) {
				t.Errorf("swap %d found %d, %v", try, old, err)
			}
			if cas, fao := below.Ops(rma.KindCompareAndSwap, hook.Far), below.Ops(rma.KindFetchAndOp, hook.Far); cas != want || fao != 0 {
				t.Errorf("swap %d took %d CompareAndSwaps and %d FetchAndOps, want %d and 0", try, cas, fao, want)
			}
		}
		w.Put(10, host, far)
		a := w.FetchAndOp(20, host, far, rma.Replace)
		b := w.FetchAndOp(5, host, far, rma.Sum)
		c := w.FetchAndOp(7, host, far+1, rma.Replace)
		d := w.FetchAndOp(30, host, far, rma.Replace)
		own := w.FetchAndOp(40, 0, far, rma.Replace)
		if err := w.Flush(host); err != nil {
			return err
		}
		if got, want := fmt.Sprint(w.Value(a), w.Value(b), w.Value(c), w.Value(d)), "10 20 0 25"; got != want {
			t.Errorf("swaps among others on their words found %s, want %s", got, want)
		}
		if err := w.FlushAll(); err != nil || w.Value(own) != 0 || w.Peek(far) != 40 {
			t.Errorf("the swap of a word of one's own: %d, then %d, %v", w.Value(own), w.Peek(far), err)
		}
		v, err := w.GetFlush(host, far)
		if v != 30 {
			t.Errorf("the word is %d, want 30", v)
		}
		return err
	})
}

// TestNoMaskedSwap: a masked swap is a loop too: one CompareAndSwap for a word whose other bits are
// 0, two for another, one where the comparison fails.
func TestNoMaskedSwap(t *testing.T) {
	var below hook.Tally
	alone(t, func(c rma.Comm) rma.Comm {
		if c.Rank() > 0 {
			return hook.NoSwap(c)
		}
		return hook.NoSwap(hook.Count(c, &below))
	}, func(w *rma.Window) error {
		if w.Caps().MaskedSwap {
			t.Error("the window says that its masked swap is native")
		}
		const host = 2
		for i, x := range []struct{ v, swap, cmp, cmpMask, found, cas int64 }{
			{0x12, 0xF0, 0, 0, 0, 1},
			{0x21, 0xFF, 0x10, 0xF0, 0x10, 1},
			{0x35, 0x0F, 0x20, 0xF0, 0x21, 2},
			{0x77, 0xFF, 0x30, 0xF0, 0x25, 1},
			{0, 0, 0, 0, 0x25, 2},
		} {
			below.Reset()
			found, err := w.MaskedSwapFlush(x.v, x.swap, x.cmp, x.cmpMask, host, far)
			if err != nil || found != x.found {
				t.Errorf("masked swap %d found %#x, %v, want %#x", i, found, err, x.found)
			}
			if cas, masked := below.Ops(rma.KindCompareAndSwap, hook.Far), below.Ops(rma.KindMaskedSwap, hook.Far); cas != x.cas || masked != 0 {
				t.Errorf("masked swap %d took %d CompareAndSwaps and %d MaskedSwaps, want %d and 0", i, cas, masked, x.cas)
			}
		}
		return nil
	})
}

// TestNoSwapLosesNothing: values that ranks swap into a word and find there are each found
// once.
func TestNoSwapLosesNothing(t *testing.T) {
	const ranks, each = 4, 2000
	found := make([][]int64, ranks)
	var last int64
	err := inproc.RunNodes(2, ranks/2, func(c rma.Comm) error {
		w, err := hook.NoSwap(c).Allocate(spec)
		if err != nil {
			return err
		}
		for i := range int64(each) {
			old, err := w.FetchAndOpFlush(1+int64(c.Rank())*each+i, 0, far, rma.Replace)
			if err != nil {
				return err
			}
			found[c.Rank()] = append(found[c.Rank()], old)
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			last = w.Peek(far)
		}
		return w.Free()
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]int{last: 1}
	for _, f := range found {
		for _, v := range f {
			seen[v]++
		}
	}
	for v := range int64(ranks*each + 1) {
		if seen[v] != 1 {
			t.Fatalf("%d was found %d times", v, seen[v])
		}
	}
}

// TestLikeVerbs: no Put of a Far word reaches the window below either, and operations keep
// their order on a word and across fences.
func TestLikeVerbs(t *testing.T) {
	var below hook.Tally
	alone(t, func(c rma.Comm) rma.Comm {
		if c.Rank() > 0 {
			return hook.LikeVerbs(c)
		}
		return hook.LikeVerbs(hook.Count(c, &below))
	}, func(w *rma.Window) error {
		if w.Caps().NativeSwap || w.Caps().AtomicPut {
			t.Errorf("the window has caps %+v", w.Caps())
		}
		const host = 2
		w.Put(10, host, far)
		a := w.FetchAndOp(1, host, far, rma.Sum)
		w.Accumulate(20, host, far, rma.Replace)
		w.Fence(host)
		b := w.Get(host, far)
		w.PutBulk([]int64{7, 8}, host, far+1)
		w.Fence(host)
		w.Put(30, host, flag)
		w.Accumulate(1, host, far+2, rma.Sum)
		if err := w.Flush(host); err != nil {
			return err
		}
		if got := fmt.Sprint(w.Value(a), w.Value(b)); got != "10 20" {
			t.Errorf("operations among Puts found %s, want 10 20", got)
		}
		if n := below.Ops(rma.KindPut, hook.Far); n != 1 {
			t.Errorf("%d Puts reached the window below, want the one of the flag", n)
		}
		if n := below.Ops(rma.KindPutBulk, hook.Far); n != 0 {
			t.Errorf("%d PutBulks of far words reached the window below", n)
		}
		if n := below.Ops(rma.KindCompareAndSwap, hook.Far); n != 1+2+1+1 {
			t.Errorf("%d CompareAndSwaps, want 5: one a word that is 0, two for the other", n)
		}
		for i, want := range []int64{20, 7, 9} {
			if v, err := w.GetFlush(host, far+i); v != want || err != nil {
				t.Errorf("word %d is %d, %v, want %d", i, v, err, want)
			}
		}
		return nil
	})
}
