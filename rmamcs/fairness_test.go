package rmamcs_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
)

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
		t.Log(s.text)
		locktest.RunGreedy(t, check.Plan{Info: honest, Ranks: s.ranks, Acquires: 8, Topology: top}, greedy, 300)
	}
}

// TestBargingFairness: the same with a barging leaf, whose ranks pass the head of the queue.
func TestBargingFairness(t *testing.T) {
	for _, ranks := range []int{2, 4} {
		text := fmt.Sprintf("node:1 rank:%d", ranks)
		honest, top := barging(t, text, 1)
		greedy, _ := barging(t, text, 1000)
		t.Log(text)
		locktest.RunGreedy(t, check.Plan{Info: honest, Ranks: ranks, Acquires: 24, Topology: top}, greedy, 300)
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
