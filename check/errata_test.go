package check_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// A printing is D-MCS as papers/rma-rw prints it, Listings 2 and 3 line by line, or
// with repairs. Its words are all Far, so that what shows is what goes wrong and not
// that a class forbids it.
type printing struct {
	flushNext bool // line 3 of Listing 2 is flushed before line 6
	flushWait bool // line 4 is flushed before line 10
}

type printed struct {
	printing
	w       *rma.Window
	p, home int
}

const (
	wNext, wWait, wTail = 0, 1, 2
	null                = 0 // ∅; rank r is r+1
)

func (k printing) info() lock.Info {
	return lock.Info{Name: "listings 2 and 3", Open: func(c rma.Comm, _, home int) (lock.Table, error) {
		w, err := c.Allocate(rma.Spec{Name: "dmcs", Regions: []rma.Region{{Count: 1, Words: []rma.Word{
			{Name: "NEXT", Class: rma.Far}, {Name: "WAIT", Class: rma.Far}, {Name: "TAIL", Class: rma.Far},
		}}}})
		return &printed{k, w, c.Rank(), home}, err
	}}
}

func (t *printed) Len() int             { return 1 }
func (t *printed) Home(int) int         { return t.home }
func (t *printed) Free() error          { return t.w.Free() }
func (t *printed) Mutex(int) lock.Mutex { return nil }
func (t *printed) me() int64            { return int64(1 + t.p) }

func (t *printed) TryLock(int, lock.Mode) (bool, error) { return false, errors.ErrUnsupported }

// Lock is Listing 2.
func (t *printed) Lock(context.Context, int, lock.Mode) error {
	w, p := t.w, t.p
	w.Put(null, p, wNext) // line 3
	if t.flushNext {
		if err := w.Flush(p); err != nil {
			return err
		}
	}
	w.Put(1, p, wWait)                                      // line 4
	fao := w.FetchAndOp(t.me(), t.home, wTail, rma.Replace) // line 6
	if err := w.Flush(t.home); err != nil {                 // line 7
		return err
	}
	pred := w.Value(fao)
	if pred == null { // line 8
		return nil
	}
	if t.flushWait {
		if err := w.Flush(p); err != nil {
			return err
		}
	}
	w.Put(t.me(), int(pred-1), wNext) // line 10
	if err := w.Flush(int(pred - 1)); err != nil {
		return err
	}
	if err := w.Flush(p); err != nil { // line 13: the first Flush(p) of the loop
		return err
	}
	_, err := w.Await(p, wWait, rma.Equal(0)) // lines 11 to 14
	return err
}

// Unlock is Listing 3.
func (t *printed) Unlock(int, lock.Mode) error {
	w, p := t.w, t.p
	succ, err := w.GetFlush(p, wNext) // line 2
	if err != nil {
		return err
	}
	if succ == null { // line 3
		curr, err := w.CompareAndSwapFlush(null, t.me(), t.home, wTail) // lines 5, 6
		if err != nil || curr == t.me() {                               // line 7
			return err
		}
		if succ, err = w.Await(p, wNext, rma.NotEqual(null)); err != nil { // lines 9 to 11
			return err
		}
	}
	w.Put(0, int(succ-1), wWait) // line 14
	return w.Flush(int(succ - 1))
}

// found is the failure that a search of all schedules finds, shortened, and its report.
func found(t *testing.T, p check.Plan) (*sim.Failure, string) {
	t.Helper()
	r, err := check.Run(p, sim.Exhaustive(sim.Unbounded))
	if err != nil || r.Failure == nil {
		t.Fatalf("no failure is found (%v)", err)
	}
	var b strings.Builder
	f, err := check.Report(&b, p, r.Failure)
	if err != nil {
		t.Fatal(err)
	}
	return f, b.String()
}

// TestListingsAsPrinted: each hole of the listings has a schedule, which docs/errata.md
// tells; the repairs close them.
func TestListingsAsPrinted(t *testing.T) {
	doc, err := os.ReadFile("../docs/errata.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		printing
		schedule string // the one in docs/errata.md
	}{
		{"as printed", printing{}, ""},
		{"line 4 is not flushed", printing{flushNext: true}, "5aaaa3"},
		{"line 3 is not flushed", printing{flushWait: true}, "2baaa4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := check.Plan{Info: c.info(), Ranks: 2, Acquires: 1}
			f, report := found(t, p)
			if !errors.Is(f, sim.ErrDeadlock) {
				t.Errorf("fails with %v, want a deadlock", f)
			}
			t.Log("\n" + report)
			if c.schedule == "" {
				return
			}
			events, f, err := check.Replay(p, c.schedule)
			if err != nil || !is(f, sim.ErrDeadlock) {
				t.Fatalf("schedule %s: %v, %v, want a deadlock", c.schedule, f, err)
			}
			var b strings.Builder
			if err := sim.WriteTrace(&b, events); err != nil {
				t.Fatal(err)
			}
			for _, told := range []string{"`" + c.schedule + "`", f.Error(), strings.TrimRight(b.String(), "\n")} {
				if !strings.Contains(string(doc), told) {
					t.Errorf("docs/errata.md does not tell:\n%s", told)
				}
			}
		})
	}
	t.Run("repaired", func(t *testing.T) {
		for _, p := range []check.Plan{{Ranks: 2, Acquires: 3}, {Ranks: 3, Acquires: 1, Guard: true}} {
			p.Info = printing{true, true}.info()
			r, err := check.Run(p, sim.Exhaustive(sim.Unbounded))
			if err != nil || r.Failure != nil || !r.Whole {
				t.Errorf("%d ranks: whole %v, %v, %v", p.Ranks, r.Whole, r.Failure, err)
			}
		}
	})
}

// bounded says of a table's modes that they are overtaken at most so often.
type bounded struct {
	lock.Checked
	most int
}

func (b bounded) Promise(lock.Mode) lock.Promise {
	return lock.Promise{Bypass: b.most, Acquire: 99, Release: 99}
}

// TestWritersStarve: in foMPI-RW and its relatives every visit of the readers may come
// before that of one writer that has come before them.
func TestWritersStarve(t *testing.T) {
	for _, name := range []string{"fompi-rw", "ompi-rw"} {
		info := lookup(t, name)
		open := info.Open
		const readers, visits = 2, 4
		info.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
			table, err := open(c, n, home)
			if err != nil {
				return nil, err
			}
			return bounded{table.(lock.Checked), readers*visits - 1}, nil
		}
		p := check.Plan{Info: info, Ranks: 1 + readers, Acquires: visits, Writers: 1}
		x := sim.Exhaustive(sim.Unbounded)
		x.Limit = 100_000
		r, err := check.Run(p, x)
		if err != nil {
			t.Fatal(err)
		}
		if !is(r.Failure, check.ErrStarved) {
			t.Errorf("%s: %v, want a writer that waits for all %d visits of the readers", name, r.Failure, readers*visits)
		}
	}
}

func lookup(t *testing.T, name string) lock.Info {
	t.Helper()
	info, err := lock.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
