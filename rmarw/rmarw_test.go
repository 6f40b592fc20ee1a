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
	return onWith(t, rmarw.Config{DC: dc}, text, tl, tr, tdc, levels...)
}

// onWith is on, with more of the Config.
func onWith(t testing.TB, cfg rmarw.Config, text string, tl int, tr int64, tdc string, levels ...string) (lock.Info, *topo.Topology) {
	t.Helper()
	top, err := topo.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if top, err = top.Pick(levels...); err != nil {
		t.Fatal(err)
	}
	cfg.Topology, cfg.Thresholds = top, rmarw.Thresholds{TL: make([]int, len(top.Levels())), TR: tr}
	for i := range cfg.Thresholds.TL {
		cfg.Thresholds.TL[i] = tl
	}
	if cfg.Thresholds.TDC, err = rmarw.ParseTDC(tdc); err != nil {
		t.Fatal(err)
	}
	return lock.Info{Name: "rmarw", Shared: true, Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		cfg := cfg
		cfg.Locks, cfg.Home = n, home
		t, err := rmarw.New(c, cfg)
		if err == nil {
			err = t.StartAt(-2) // so that the phase wraps
		}
		return t, err
	}}, top
}
