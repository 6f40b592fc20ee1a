package locktest

import (
	"errors"
	"strings"
	"testing"

	search "github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
)

// RunSearch checks a registered lock under schedules that package check searches; see
// check.Battery. With RMALOCK_DEEP in the environment it takes many minutes more.
func RunSearch(t *testing.T, name string) {
	info, err := lock.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	size := search.Standard
	if Quick() {
		size = search.Short
	}
	items := search.Battery(info, size)
	if Deep() {
		items = append(items, search.Battery(info, search.Deep)...)
	}
	runItems(t, items)
}

// RunRecovery searches schedules in which ranks of a registered lock die, are slow, and have
// successors; see CheckRecovery.
func RunRecovery(t *testing.T, name string, tickNs int64) {
	info, err := lock.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	size := search.Standard
	if Quick() {
		size = search.Short
	}
	runItems(t, search.Recovery(info, size, tickNs))
}

// RunVariant is RunSearch for a variant of a lock that gets the whole of it, or for
// another way of using one: check.Brief, and with RMALOCK_DEEP check.Standard.
func RunVariant(t *testing.T, info lock.Info) {
	size := search.Brief
	switch {
	case Quick():
		size = search.Short
	case Deep():
		size = search.Standard
	}
	runItems(t, search.Battery(info, size))
}

// RunNoSwap searches schedules of a lock on a transport without a native swap, with the
// parameters that it has for a number of levels.
func RunNoSwap(t *testing.T, name string, params func(levels int) map[string]string) {
	info, err := lock.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	items := search.Battery(info, search.Short)
	for i := range items {
		p := &items[i].Plan
		p.Disturb = func(c rma.Comm, _ func() search.Position) rma.Comm { return hook.NoSwap(c) }
		if levels := 1; params != nil {
			if p.Topology != nil {
				levels = len(p.Topology.Levels())
			}
			p.Params = params(levels)
		}
	}
	runItems(t, items)
}

// runItems runs the parts of a battery, as many at a time as there are cores.
func runItems(t *testing.T, items []search.Item) {
	for _, i := range items {
		t.Run(strings.ReplaceAll(i.Name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r, err := i.Run()
			if err != nil {
				t.Fatal(err)
			}
			if r.Failure != nil && errors.Is(r.Failure, errors.ErrUnsupported) {
				t.Skip(r.Failure)
			}
			if r.Failure != nil {
				fatal(t, i.Plan, r.Failure)
			}
			t.Logf("%d executions, %d cut, %d steps", r.Stats.Executions, r.Stats.Cut, r.Stats.Steps)
		})
	}
}
