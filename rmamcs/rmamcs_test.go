package rmamcs_test

import (
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rmamcs"
	"github.com/rmalock/rmalock/topo"
)

func TestLock(t *testing.T) { locktest.RunInproc(t, "rmamcs") }

// on opens the lock over a described machine with T_L of tl at every level.
func on(t testing.TB, text string, tl int, levels ...string) (lock.Info, *topo.Topology) {
	t.Helper()
	return onWith(t, rmamcs.Config{}, text, tl, levels...)
}

// onWith is on, with more of the Config.
func onWith(t testing.TB, cfg rmamcs.Config, text string, tl int, levels ...string) (lock.Info, *topo.Topology) {
	t.Helper()
	top, err := topo.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if top, err = top.Pick(levels...); err != nil {
		t.Fatal(err)
	}
	cfg.Topology, cfg.TL = top, make([]int, len(top.Levels()))
	for i := range cfg.TL {
		cfg.TL[i] = tl
	}
	return lock.Info{Name: "rmamcs", Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		cfg := cfg
		cfg.Locks, cfg.Home = n, home
		return rmamcs.New(c, cfg)
	}}, top
}
