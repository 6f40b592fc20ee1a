package rmarw_test

import (
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rmarw"
	"github.com/rmalock/rmalock/topo"
)

func TestLock(t *testing.T) { locktest.RunInproc(t, "rmarw") }

// dcs are the ways in which readers and writers meet.
var dcs = []rmarw.DC{rmarw.Symmetric, rmarw.Asymmetric}

// on opens the lock over a described machine with T_L of tl at every level.
func on(t testing.TB, dc rmarw.DC, text string, tl int, tr int64, tdc string, levels ...string) (lock.Info, *topo.Topology) {
	t.Helper()
	top, err := topo.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if top, err = top.Pick(levels...); err != nil {
		t.Fatal(err)
	}
	th := rmarw.Thresholds{TL: make([]int, len(top.Levels())), TR: tr}
	for i := range th.TL {
		th.TL[i] = tl
	}
	if th.TDC, err = rmarw.ParseTDC(tdc); err != nil {
		t.Fatal(err)
	}
	return lock.Info{Name: "rmarw", Shared: true, Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		t, err := rmarw.New(c, rmarw.Config{Locks: n, Home: home, Topology: top, Thresholds: th, DC: dc})
		if err == nil {
			err = t.StartAt(-2) // so that the phase wraps
		}
		return t, err
	}}, top
}
