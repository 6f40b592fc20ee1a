package rmamcs_test

import (
	"errors"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// promising is a table that promises what another one does.
type promising struct {
	lock.Checked
	as lock.Checked
}

func (p promising) Promise(m lock.Mode) lock.Promise { return p.as.Promise(m) }

// like is a lock that promises what another one does.
func like(real, promised lock.Info) lock.Info {
	out := real
	out.Open = func(c rma.Comm, n, home int) (lock.Table, error) {
		t, err := real.Open(c, n, home)
		if err != nil {
			return nil, err
		}
		as, err := promised.Open(c, n, home)
		if err != nil {
			return nil, err
		}
		return promising{t.(lock.Checked), as.(lock.Checked)}, nil
	}
	return out
}

// TestFairness: a lock that passes more often than T_L,i is caught at every level, and
// one that keeps T_L,i is not.
func TestFairness(t *testing.T) {
	for _, s := range []struct {
		text   string
		ranks  int
		levels []string
	}{
		{"node:2 core:2", 4, []string{"node"}},
		{"rack:2 node:2 core:2", 8, []string{"rack", "node"}},
	} {
		honest, top := on(t, s.text, 1, s.levels...)
		greedy, _ := on(t, s.text, 1000, s.levels...)
		p := check.Plan{Info: honest, Ranks: s.ranks, Acquires: 8, Topology: top}
		n := int64(300)
		r := run(t, p, sim.PCT(1, 3, 0, n))
		t.Logf("%s: %d entries passed a rank that waited", s.text, r.Most)
		p.Info = like(greedy, honest)
		r, err := check.Run(p, sim.PCT(1, 3, 0, n))
		if err != nil || r.Failure == nil || !errors.Is(r.Failure, check.ErrStarved) {
			t.Errorf("%s: a lock that ignores T_L: %v (%v)", s.text, r.Failure, err)
		} else {
			t.Logf("%s: execution %d: %v", s.text, r.Failure.Execution, r.Failure)
		}
	}
}

// TestBounds: the formula of the package comment, by level.
func TestBounds(t *testing.T) {
	info, top := on(t, "rack:2 node:3 core:4", 5, "rack", "node")
	got, err := check.Promises(check.Plan{Info: info, Ranks: top.Size(), Acquires: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ most, of int }{{3, 4}, {2 * 6, 12}, {1 * 6 * 6, 24}} {
		b := got[lock.Exclusive].Bounds[i]
		of := 0
		for r := range top.Size() {
			if b.Of(r, lock.Exclusive) {
				of++
			}
		}
		if b.After != i+1 || b.Most != want.most || of != want.of {
			t.Errorf("after atomic operation %d at most %d entries of %d ranks, want after %d at most %d of %d", b.After, b.Most, of, i+1, want.most, want.of)
		}
	}
}
