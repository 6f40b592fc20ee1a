package sim_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// TestHomeKeeps: Home describes a rank's own state. What is on its way, what came back
// and was not flushed, and what others know from it, is not forgotten.
func TestHomeKeeps(t *testing.T) {
	raise := func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error { return w.PutFlush(1, 1, 0) }
	twice := func(_ *sim.Comm, w *rma.Window, _ func(...int64)) error {
		if err := w.PutFlush(1, 1, 0); err != nil {
			return err
		}
		return w.PutFlush(2, 1, 0)
	}
	read := func(w *rma.Window, saw func(...int64), disp int) error {
		v, err := w.GetFlush(1, disp)
		saw(v)
		return err
	}
	rest := func(s *sim.Comm, at ...uint64) {
		for _, h := range append(at, 9) {
			s.Home(func() uint64 { return h })
			s.Sleep(1)
		}
	}
	// write issues an operation that depends on what rank 1 has put, and flushes it when
	// the rank has said that it is at home.
	write := func(issue func(w *rma.Window, v int64)) part {
		return func(s *sim.Comm, w *rma.Window, saw func(...int64)) error {
			v, err := w.GetFlush(1, 0)
			if err != nil {
				return err
			}
			if _, err := w.Await(1, 0, rma.Equal(1)); err != nil {
				return err
			}
			issue(w, v)
			rest(s)
			if err := w.Flush(1); err != nil {
				return err
			}
			return read(w, saw, 1)
		}
	}
	for _, c := range []struct {
		name  string
		parts []part
		want  []string
	}{
		{"a result", []part{
			func(s *sim.Comm, w *rma.Window, saw func(...int64)) error {
				got := w.Get(1, 0)
				if _, err := w.Await(1, 0, rma.Equal(2)); err != nil {
					return err
				}
				rest(s, 7, 8)
				err := w.Flush(1)
				saw(w.Value(got))
				return err
			},
			twice,
		}, []string{"[[0] []]", "[[1] []]", "[[2] []]"}},
		{"a Put", []part{write(func(w *rma.Window, v int64) { w.Put(v+2, 1, 1) }), raise}, []string{"[[2] []]", "[[3] []]"}},
		{"a bulk Put", []part{write(func(w *rma.Window, v int64) { w.PutBulk([]int64{v + 2, 9}, 1, 1) }), raise}, []string{"[[2] []]", "[[3] []]"}},
		{"an addition", []part{write(func(w *rma.Window, v int64) { w.Accumulate(v+2, 1, 1, rma.Sum) }), raise}, []string{"[[2] []]", "[[3] []]"}},
		{"what a swap compares with", []part{write(func(w *rma.Window, v int64) { w.CompareAndSwap(5, v, 1, 1) }), raise}, []string{"[[0] []]", "[[5] []]"}},
		{"where an operation goes", []part{write(func(w *rma.Window, v int64) { w.Put(4, 1, 1+int(v)) }), raise}, []string{"[[0] []]", "[[4] []]"}},
		{"homes next to each other", []part{
			func(s *sim.Comm, w *rma.Window, saw func(...int64)) error {
				v, err := w.GetFlush(1, 0)
				s.Home(func() uint64 { return uint64(v) })
				s.Sleep(1)
				saw(v)
				return err
			},
			raise,
		}, []string{"[[0] []]", "[[1] []]"}},
		{"what others were told", []part{
			func(s *sim.Comm, w *rma.Window, _ func(...int64)) error {
				v, err := w.GetFlush(1, 0)
				if err != nil {
					return err
				}
				_, err = s.Allgather([]int64{v})
				rest(s)
				return err
			},
			func(s *sim.Comm, w *rma.Window, saw func(...int64)) error {
				all, err := s.Allgather([]int64{0})
				if err != nil {
					return err
				}
				s.Sleep(1)
				saw(all...)
				return nil
			},
			func(s *sim.Comm, w *rma.Window, _ func(...int64)) error {
				if err := w.PutFlush(1, 1, 0); err != nil {
					return err
				}
				_, err := s.Allgather([]int64{0})
				return err
			},
		}, []string{"[[] [0 0 0] []]", "[[] [1 0 0] []]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sim.Search{Node: []int{0, 1, 2}[:len(c.parts)]}
			if got := litmus(t, s, rma.CounterSpec("w", 3), c.parts...); !slices.Equal(got, c.want) {
				t.Errorf("came to %q, want %q", got, c.want)
			}
		})
	}

	// Between the two halves of a NIC's operation.
	got := litmus(t, sim.Search{Node: []int{0, 1}, CPUFar: true}, rma.CounterSpec("w", 3),
		func(s *sim.Comm, w *rma.Window, saw func(...int64)) error {
			old := w.FetchAndOp(10, 1, 0, rma.Sum)
			if _, err := w.Await(1, 0, rma.Equal(2)); err != nil {
				return err
			}
			rest(s, 7, 8)
			err := w.Flush(1)
			saw(w.Value(old))
			return errors.Join(err, read(w, saw, 0))
		},
		twice)
	// Old value, and the word at the end: the operation is done before one of the Puts,
	// or its first half is, or all of it comes last; or its second half hides the Put that
	// the rank waits for.
	if want := []string{"[[0 10] []]", "[[0 2] []]", "[[1 11] []]", "[[1 2] []]", "[[2 12] []]", "deadlock"}; !slices.Equal(got, want) {
		t.Errorf("halves: came to %q, want %q", got, want)
	}
}
