package rma_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// script is a Transport that notes what reaches it. It carries nothing out but
// Gets, which find 100 plus their displacement.
type script struct {
	rma.Transport // none: what is not scripted must not be called
	steps         []string
	pending       []rma.Operation
	err           error // of the next Flush
}

func (s *script) note(format string, args ...any) {
	s.steps = append(s.steps, fmt.Sprintf(format, args...))
}

func (s *script) Issue(o rma.Operation) {
	s.note("%v %d.%d", o.Kind, o.Target, o.Disp)
	s.pending = append(s.pending, o)
}

func (s *script) Flush(target int, r *rma.Results) (int, error) {
	s.note("flush %d", target)
	s.pending = slices.DeleteFunc(s.pending, func(o rma.Operation) bool {
		if target >= 0 && o.Target != target {
			return false
		}
		r[o.Slot] = int64(100 + o.Disp)
		return true
	})
	err := s.err
	s.err = nil
	return len(s.pending), err
}

func (s *script) Await(q rma.Waiting) (int, int64, error) {
	a := q.Words[0]
	s.note("await %d.%d %v", a.Target, a.Disp, a.Cond)
	return 0, a.Cond.Value, nil
}

func (s *script) Backoff(target, disp int, seen int64, try int) error {
	s.note("backoff %d.%d saw %d, try %d", target, disp, seen, try)
	return nil
}

func (s *script) HandedOver(int)  {}
func (s *script) Wake(target int) { s.note("wake %d", target) }
func (s *script) Free() error     { s.note("free"); return nil }

// seat is a Comm that knows its place and nothing else.
type seat struct {
	rma.Comm
	rank, size int
	node       rma.Node
}

func (s seat) Rank() int      { return s.rank }
func (s seat) Size() int      { return s.size }
func (s seat) Node() rma.Node { return s.node }

const (
	stride = 256
	words  = 6
)

var threeClasses = rma.Spec{Name: "w", Regions: []rma.Region{
	{Count: 2, Words: []rma.Word{{Name: "F", Class: rma.Far}}},
	{Count: 2, Words: []rma.Word{{Name: "N", Class: rma.Near}}},
	{Count: 2, Words: []rma.Word{{Name: "D", Class: rma.Flag}}},
}}

const far, near, flag = 0, 2, 4

// window is rank 1 of a window on a script, whose node has some of four ranks. The
// beds of the words are returned too, for those who want to sleep.
func window(t *testing.T, mates ...int) (w *rma.Window, s *script, bed func(mate, disp int) *uint32) {
	t.Helper()
	mem := make([]int64, stride/8*(len(mates)+1))
	base := unsafe.Add(unsafe.Pointer(&mem[0]), rma.HeaderBytes)
	s = &script{}
	w = rma.New(rma.Config{
		Comm: seat{rank: 1, size: 4, node: rma.Node{Index: 0, Count: 5 - len(mates), Ranks: mates}},
		Spec: threeClasses, T: s, Base: base, Stride: stride, Caps: rma.Caps{Transport: "script", FarRanks: len(mates) < 4},
	})
	t.Cleanup(func() { mem[0] = 0 }) // keeps the memory
	return w, s, func(mate, disp int) *uint32 { return rma.SleeperCount(unsafe.Add(base, mate*stride), disp) }
}

func (s *script) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	if !slices.Equal(s.steps, want) {
		t.Errorf("%s: the transport saw %q, want %q", what, s.steps, want)
	}
	s.steps = nil
}

// On one node nothing but waiting reaches the transport.
func TestOneNodeStaysInMemory(t *testing.T) {
	w, s, _ := window(t, 0, 1, 2, 3)
	for target := range 4 {
		for disp := range words {
			if err := w.PutFlush(int64(10*target+disp), target, disp); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := w.FetchAndOp(5, 3, far, rma.Sum)
	w.Accumulate(1, 3, far, rma.Sum)
	if err := w.Flush(3); err != nil || w.Value(r) != 30 {
		t.Errorf("FetchAndOp found %d, %v", w.Value(r), err)
	}
	if v, err := w.CompareAndSwapFlush(0, 36, 3, far); err != nil || v != 36 {
		t.Errorf("CompareAndSwap found %d, %v", v, err)
	}
	if v, err := w.Await(2, flag, rma.Equal(24)); err != nil || v != 24 {
		t.Errorf("Await found %d, %v", v, err)
	}
	if v := w.Peek(flag + 1); v != 15 {
		t.Errorf("Peek found %d, want 15", v)
	}
	s.expect(t, "near operations")
	w.Await(2, flag, rma.Equal(25))
	w.Backoff(2, flag, 1, 7)
	s.expect(t, "waiting", "await 2.4 == 25", "backoff 2.4 saw 1, try 7")
}

// On several nodes Far words, one's own included, go through the transport, Near and
// Flag words of the node do not.
func TestSeveralNodesGoThroughTheTransport(t *testing.T) {
	w, s, _ := window(t, 1, 3)
	w.Put(7, 1, flag)
	w.Put(8, 3, near)
	if v, err := w.GetFlush(3, near); err != nil || v != 8 {
		t.Errorf("Get of a node-mate's word found %d, %v", v, err)
	}
	if v := w.Peek(flag); v != 7 {
		t.Errorf("Peek found %d, want 7", v)
	}
	s.expect(t, "words of the node")
	w.Put(1, 1, far)
	r := w.Get(2, flag+1)
	q := w.Get(0, far+1)
	if w.Value(r) == 105 {
		t.Error("a result can be read before its Flush")
	}
	if err := w.Flush(2); err != nil || w.Value(r) != 105 {
		t.Errorf("Get found %d, %v, want 105", w.Value(r), err)
	}
	if err := w.FlushAll(); err != nil || w.Value(q) != 101 {
		t.Errorf("Get found %d, %v, want 101", w.Value(q), err)
	}
	if err := w.FlushAll(); err != nil { // nothing is pending
		t.Error(err)
	}
	if v := w.Peek(far + 1); v != 101 {
		t.Errorf("Peek of a Far word found %d, want 101", v)
	}
	s.expect(t, "far words", "Put 1.0", "Get 2.5", "Get 0.1", "flush 2", "flush -1", "Get 1.1", "flush 1")
	w.Put(1, 2, near)
	var e *rma.AccessError
	if err := w.Flush(2); !errors.As(err, &e) || e.Err != rma.ErrClass || e.Word != "N[0] (near)" {
		t.Errorf("Put of a Near word of another node: %v", err)
	}
	s.expect(t, "a refused operation")
}

// A Pointer stays in memory where the CPU may do its operation, wakes those that sleep on its word,
// and passes the transport everywhere else.
func TestPointer(t *testing.T) {
	for _, mates := range [][]int{{0, 1, 2, 3}, {1, 3}} {
		w, s, bed := window(t, mates...)
		p := w.Pointer(3, near)
		*bed(len(mates)-1, near) = 1
		if sum, err := p.Add(5); sum != 5 || err != nil {
			t.Errorf("Add made %d, %v", sum, err)
		}
		if was, err := p.Swap(6); was != 5 || err != nil {
			t.Errorf("Swap found %d, %v", was, err)
		}
		if was, err := p.CompareAndSwap(7, 5); was != 6 || err != nil {
			t.Errorf("CompareAndSwap found %d, %v", was, err)
		}
		s.expect(t, "sleepers", "wake 3", "wake 3")
		if was, err := p.CompareAndSwap(7, 6); was != 6 || err != nil {
			t.Errorf("CompareAndSwap found %d, %v", was, err)
		}
		s.expect(t, "a sleeper", "wake 3")
		if v, err := w.GetFlush(3, near); v != 7 || err != nil {
			t.Errorf("the word is %d, %v", v, err)
		}
		*bed(len(mates)-1, near) = 0
		f := w.Pointer(3, flag)
		_, _ = f.Get()
		_, _ = p.Add(1)
		s.expect(t, "near and flag words")
	}
	w, s, _ := window(t, 1, 3)
	p := w.Pointer(1, far)
	if v, err := p.Get(); v != 100 || err != nil {
		t.Errorf("Get found %d, %v", v, err)
	}
	if sum, err := p.Add(2); sum != 102 || err != nil {
		t.Errorf("Add made %d, %v", sum, err)
	}
	if was, err := p.Swap(2); was != 100 || err != nil {
		t.Errorf("Swap found %d, %v", was, err)
	}
	if was, err := p.CompareAndSwap(2, 0); was != 100 || err != nil {
		t.Errorf("CompareAndSwap found %d, %v", was, err)
	}
	s.expect(t, "a far word", "Get 1.0", "flush 1", "FetchAndOp 1.0", "flush 1", "FetchAndOp 1.0", "flush 1", "CompareAndSwap 1.0", "flush 1")
	top := &spy{}
	d := rma.Decorate(w, func(t rma.Transport) rma.Transport { top.Transport = t; return top })
	q := d.Pointer(1, near)
	if sum, err := q.Add(2); sum != 2 || err != nil || top.ops != 1 {
		t.Errorf("Add made %d, %v; the decorator saw %d operations", sum, err, top.ops)
	}
}

// An error of the transport is returned by the Flush that met it, once.
func TestTransportErrorsComeFromFlush(t *testing.T) {
	w, s, _ := window(t, 1)
	broken := fmt.Errorf("cable: %w", rma.ErrTransport)
	for name, flush := range map[string]func() error{
		"Flush":    func() error { w.Put(1, 2, far); return w.Flush(2) },
		"FlushAll": func() error { w.Put(1, 2, far); return w.FlushAll() },
		"GetFlush": func() error { _, err := w.GetFlush(2, far); return err },
		"FetchAndOpFlush": func() error {
			_, err := w.FetchAndOpFlush(1, 2, far, rma.Sum)
			return err
		},
		"Peek": func() error { w.Peek(far); return w.Flush(1) },
	} {
		s.err = broken
		if err := flush(); !errors.Is(err, rma.ErrTransport) {
			t.Errorf("%s: %v, want the transport's error", name, err)
		}
		if err := w.FlushAll(); err != nil {
			t.Errorf("the Flush after %s: %v", name, err)
		}
	}
	w.Put(1, 9, far)
	w.Put(1, 2, far)
	s.err = broken
	if err := w.FlushAll(); !errors.Is(err, rma.ErrRank) {
		t.Errorf("two errors: %v, want the first, ErrRank", err)
	}
}

// An error closes the short ways until it was returned.
func TestErrorIsReturnedByShortWays(t *testing.T) {
	w, _, _ := window(t, 0, 1, 2, 3)
	for name, f := range map[string]func() error{
		"GetFlush":            func() error { _, err := w.GetFlush(2, far); return err },
		"PutFlush":            func() error { return w.PutFlush(1, 2, far) },
		"FetchAndOpFlush":     func() error { _, err := w.FetchAndOpFlush(1, 2, far, rma.Sum); return err },
		"CompareAndSwapFlush": func() error { _, err := w.CompareAndSwapFlush(1, 0, 2, far); return err },
		"Await":               func() error { _, err := w.Await(2, flag, rma.Equal(0)); return err },
		"Flush":               func() error { return w.Flush(0) },
	} {
		w.Put(1, 0, words)
		if v := w.Peek(flag); v != 0 {
			t.Errorf("Peek found %d", v)
		}
		if err := f(); !errors.Is(err, rma.ErrDisp) {
			t.Errorf("%s after an error: %v, want ErrDisp", name, err)
		}
		if err := f(); err != nil {
			t.Errorf("%s again: %v", name, err)
		}
	}
}

// More operations than MaxPending, or more results than would stay readable, are
// refused; what was issued before is done.
func TestPendingIsBounded(t *testing.T) {
	w, s, _ := window(t, 1)
	for range rma.MaxPending {
		w.Put(1, 2, far)
	}
	w.Get(2, far)
	if err := w.Flush(2); !errors.Is(err, rma.ErrPending) {
		t.Errorf("%d operations: %v, want ErrPending", rma.MaxPending+1, err)
	}
	if n := len(s.steps); n != rma.MaxPending+1 {
		t.Errorf("the transport saw %d steps, want %d operations and a flush", n, rma.MaxPending)
	}
	// One result is pending at rank 2 while others come and go at rank 3.
	r := w.Get(2, flag)
	refused := 0
	for range rma.MaxPending {
		w.Get(3, far)
		if err := w.Flush(3); errors.Is(err, rma.ErrPending) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if refused != 1 {
		t.Errorf("%d operations were refused to keep a result, want the last one", refused)
	}
	if err := w.Flush(2); err != nil || w.Value(r) != 104 {
		t.Errorf("the result that waited is %d, %v, want 104", w.Value(r), err)
	}
}

// Whoever writes a word on which somebody sleeps wakes it, and need not for another word.
func TestWritersWakeSleepers(t *testing.T) {
	w, s, bed := window(t, 0, 1, 2, 3)
	write := func() {
		w.Put(1, 2, flag)
		w.Accumulate(1, 2, far, rma.Sum)
		w.FetchAndOp(1, 2, far, rma.Replace)
		w.PutBulk([]int64{1, 2}, 2, flag)
		w.CompareAndSwap(9, 1, 2, far)
		w.FetchAndOpFlush(1, 2, far, rma.Sum)
		w.CompareAndSwapFlush(8, 10, 2, far)
		w.CompareAndSwapFlush(8, 10, 2, far) // loses
		w.Get(2, far)
		w.GetBulk(make([]int64, 2), 2, flag)
		if err := w.PutFlush(1, 1, flag); err != nil { // another part
			t.Fatal(err)
		}
	}
	write()
	s.expect(t, "while nobody sleeps")
	for disp := range 100 { // elsewhere
		if b := bed(2, disp); b != bed(2, far) && b != bed(2, flag) && b != bed(2, flag+1) {
			*b = 1
		}
	}
	write()
	s.expect(t, "while somebody sleeps on other words", []string(nil)...)
	*bed(2, flag), *bed(2, flag+1), *bed(2, far) = 1, 1, 1
	write()
	for _, step := range s.steps {
		if step != "wake 2" {
			t.Errorf("the transport saw %q", step)
		}
	}
	if n := len(s.steps); n < 7 {
		t.Errorf("7 writes woke the sleeper %d times", n)
	}
}

// Decorate passes every operation on, near ones included, with their results.
func TestDecoratePassesEverything(t *testing.T) {
	w, s, _ := window(t, 0, 1, 2, 3)
	var top *spy
	d := rma.Decorate(w, func(t rma.Transport) rma.Transport {
		top = &spy{Transport: t}
		return top
	})
	d.Put(5, 2, flag)
	a := d.Get(2, flag)
	b := d.FetchAndOp(3, 0, far, rma.Replace)
	if err := d.Flush(2); err != nil || d.Value(a) != 5 {
		t.Errorf("Get found %d, %v, want 5", d.Value(a), err)
	}
	if err := d.FlushAll(); err != nil || d.Value(b) != 0 {
		t.Errorf("swap found %d, %v, want 0", d.Value(b), err)
	}
	if v, err := d.GetFlush(0, far); err != nil || v != 3 {
		t.Errorf("Get found %d, %v, want 3", v, err)
	}
	if v := d.Peek(flag); v != 0 {
		t.Errorf("Peek found %d, want 0", v)
	}
	d.Await(2, flag, rma.Equal(5))
	if top.ops != 5 || top.flushes < 3 || top.awaits != 1 {
		t.Errorf("the decorator saw %d operations, %d flushes, %d awaits", top.ops, top.flushes, top.awaits)
	}
	if d.Name() != "w" || d.Rank() != 1 || d.Size() != 4 || d.Words() != words || len(d.Node().Ranks) != 4 || d.Caps().Transport != "script" {
		t.Error("the decorated window forgot what it is")
	}
	if err := d.Free(); err != nil {
		t.Error(err)
	}
	s.expect(t, "under a decorator", "free")
	for name, err := range map[string]error{"the decorated window": d.PutFlush(1, 0, far), "the one below": w.PutFlush(1, 0, far)} {
		if !errors.Is(err, rma.ErrFreed) {
			t.Errorf("%s after Free: %v", name, err)
		}
	}
}

type spy struct {
	rma.Transport
	ops, flushes, awaits int
}

func (s *spy) Issue(o rma.Operation) { s.ops++; s.Transport.Issue(o) }
func (s *spy) Flush(target int, r *rma.Results) (int, error) {
	s.flushes++
	return s.Transport.Flush(target, r)
}
func (s *spy) Await(q rma.Waiting) (int, int64, error) {
	s.awaits++
	return s.Transport.Await(q)
}

// TestCopyFrom: a handle that was copied back does what it did from the copy on.
func TestCopyFrom(t *testing.T) {
	err := inproc.Run(1, func(c rma.Comm) error {
		w, err := c.Allocate(rma.CounterSpec("count", 2))
		if err != nil {
			return err
		}
		h := w.FetchAndOp(1, 0, 0, rma.Sum)
		var saved rma.Window
		saved.CopyFrom(w)
		if err := w.Flush(0); err != nil {
			return err
		}
		w.FetchAndOp(5, 0, 1, rma.Sum)
		w.Put(1, 0, 7) // an error to report
		w.CopyFrom(&saved)
		if err := w.Flush(0); err != nil {
			return fmt.Errorf("the copy had no error: %w", err)
		}
		if v := w.Value(h); v != 0 {
			return fmt.Errorf("the result is %d, want 0", v)
		}
		if w.Transport() == nil {
			return errors.New("no transport")
		}
		if err := w.Free(); err != nil {
			return err
		}
		if w.Transport() != nil {
			return errors.New("a transport after Free")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
