package rmarw_test

import (
	"errors"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
	"github.com/rmalock/rmalock/rmarw"
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

// TestFairness: a lock with larger thresholds than it says is caught, and one with
// those that it says is not.
func TestFairness(t *testing.T) {
	for _, s := range []struct {
		name    string
		dc      rmarw.DC
		text    string
		levels  []string
		ranks   int
		writers int
		tl, tr  int // that it has
	}{
		{"ignores T_L at the root", rmarw.Symmetric, "node:4", nil, 4, 3, 1000, 1},
		{"ignores T_L at the root", rmarw.Asymmetric, "node:1 core:4", []string{}, 4, 3, 1000, 1},
		{"ignores T_L inside", rmarw.Symmetric, "node:2 core:2", []string{"node"}, 4, 4, 1000, 1},
		{"ignores T_R", rmarw.Symmetric, "node:4", nil, 4, 1, 1, 1000},
	} {
		honest, top := on(t, s.dc, s.text, 1, 1, "4", s.levels...)
		greedy, _ := on(t, s.dc, s.text, s.tl, int64(s.tr), "4", s.levels...)
		p := check.Plan{Info: honest, Ranks: s.ranks, Acquires: 12, Writers: s.writers, Topology: top}
		n := int64(300)
		r := run(t, p, sim.PCT(1, 3, 0, n))
		t.Logf("%d entries passed a rank that waited", r.Most)
		p.Info = like(greedy, honest)
		r, err := check.Run(p, sim.PCT(1, 3, 0, n))
		if err != nil || r.Failure == nil || !errors.Is(r.Failure, check.ErrStarved) {
			t.Errorf("a lock that %s: %v (%v)", s.name, r.Failure, err)
		} else {
			t.Logf("%s: execution %d: %v", s.name, r.Failure.Execution, r.Failure)
		}
	}
}
