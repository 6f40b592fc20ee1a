package rmarw_test

import (
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rmarw"
)

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
		t.Log(s.name)
		p := check.Plan{Info: honest, Ranks: s.ranks, Acquires: 12, Writers: s.writers, Topology: top}
		locktest.RunGreedy(t, p, greedy, 300)
	}
}

// TestBargingFairness: the same at a barging root, with a reader and without.
func TestBargingFairness(t *testing.T) {
	for _, writers := range []int{3, 4} {
		honest, top := bargingRoot(t, "rank:4", 1, 1, "4", 1, 0)
		greedy, _ := bargingRoot(t, "rank:4", 1000, 1, "4", 1, 0)
		t.Logf("%d writers", writers)
		p := check.Plan{Info: honest, Ranks: 4, Acquires: 24, Writers: writers, Topology: top}
		locktest.RunGreedy(t, p, greedy, 300)
	}
}
