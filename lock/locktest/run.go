package locktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/rmatest"
)

// A Check is one promise of package lock. Run is collective.
type Check struct {
	Name string                                 // as the subtest is called
	Run  func(c rma.Comm, info lock.Info) error // reports what is broken
}

// Checks lists the checks in the order in which Run runs them. Those on exclusion
// and on tries come again on disturbed windows: with other ranks let through at
// random steps, and as weak as package rma permits.
func Checks() []Check {
	var out []Check
	add := func(prefix string, slow int, disturb func(rma.Comm) rma.Comm, checks []check) {
		for _, k := range checks {
			out = append(out, Check{Name: prefix + k.name, Run: func(c rma.Comm, info lock.Info) error {
				return rmatest.Probed(disturb(c), prefix+k.name, func(p *rmatest.Probe) {
					k.body(&probe{Probe: p, info: info, slow: slow})
				})
			}})
		}
	}
	plain := func(c rma.Comm) rma.Comm { return c }
	add("", 1, plain, tableChecks)
	add("", 1, plain, misuseChecks)
	add("", 1, plain, exclusionChecks)
	add("", 1, plain, tryChecks)
	add("", 1, plain, errorChecks)
	add("Shaken/", 4, func(c rma.Comm) rma.Comm { return hook.Delay(c, shake(c, 0)) }, exclusionChecks)
	add("Shaken/", 4, func(c rma.Comm) rma.Comm { return hook.Delay(c, shake(c, 1)) }, tryChecks)
	add("Relaxed/", 4, func(c rma.Comm) rma.Comm { return hook.Relax(hook.Delay(c, shake(c, 2)), 2) }, exclusionChecks)
	add("Relaxed/", 4, func(c rma.Comm) rma.Comm { return hook.Relax(c, 3) }, tryChecks)
	return out
}

// shake lets other ranks through at random steps: on the same processor before every
// other step, and now and then for long enough that they get anywhere.
func shake(c rma.Comm, seed uint64) func(hook.Event) int64 {
	sleep := hook.Jitter(c, seed, 60, 50_000)
	r := rand.New(rand.NewPCG(seed, ^uint64(c.Rank())))
	return func(e hook.Event) int64 {
		if r.IntN(2) == 0 {
			runtime.Gosched()
		}
		return sleep(e)
	}
}

// Run runs all checks of a registered lock as subtests. A lock that cannot open on
// the backend skips the test.
func Run(t *testing.T, name string, launch rmatest.Launch) {
	info, err := lock.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	RunOf(t, info, launch)
}

// RunOf is Run for a lock that is not registered, or not to be used in this way.
func RunOf(t *testing.T, info lock.Info, launch rmatest.Launch) {
	if info.Serves {
		t.Skip("some of its ranks serve the others, and the suite has all of them take locks")
	}
	opens := Check{Name: "Open", Run: func(c rma.Comm, info lock.Info) error {
		tab, err := info.Open(c, 1, 0)
		if err != nil {
			return err
		}
		return tab.Free()
	}}
	if !opens.run(t, info, launch) {
		return
	}
	for _, k := range Checks() {
		t.Run(k.Name, func(t *testing.T) { k.run(t, info, launch) })
	}
}

// run runs a check as the whole of a test and reports whether it passed.
func (k Check) run(t *testing.T, info lock.Info, launch rmatest.Launch) bool {
	err := launch(func(c rma.Comm) error { return k.Run(c, info) })
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		t.Skip(err)
	case err != nil:
		t.Error(err)
	}
	return err == nil
}

// RunInproc runs all checks of a registered lock on rma/inproc: with 1 to 16 ranks
// on a node, on two and three nodes of two ranks, and with ranks that die. In short mode
// and under the race detector with some of these.
func RunInproc(t *testing.T, name string) {
	shapes := [][2]int{{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 8}, {1, 16}, {2, 2}, {3, 2}}
	if Quick() {
		shapes = [][2]int{{1, 2}, {1, 8}, {2, 2}}
	}
	for _, shape := range shapes {
		t.Run(fmt.Sprintf("%dx%d", shape[0], shape[1]), func(t *testing.T) {
			Run(t, name, rmatest.Watched(shape[0], shape[1], hung))
		})
	}
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprintf("%dx%d/Death", nodes, 3/nodes), func(t *testing.T) {
			info, err := lock.Lookup(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := CheckDeath(nodes, 3/nodes, info); errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// hung is when ranks of inproc are taken to hang. The slowest check needs a second
// under the race detector.
const hung = 60 * time.Second

// check is a Check before its agreement.
type check struct {
	name string
	body func(p *probe)
}

// probe is one rank's part in a check of a lock.
type probe struct {
	*rmatest.Probe
	info lock.Info
	slow int // how many times slower than usual everything is

	hosts rma.Hosts // of the lock's tables
	known bool      // hosts is
}

// modes are the modes that the lock tells apart.
func (p *probe) modes() []lock.Mode {
	if p.info.Shared {
		return []lock.Mode{lock.Exclusive, lock.Shared}
	}
	return []lock.Mode{lock.Exclusive}
}

// table opens n locks with lock 0 at home, or as many as the lock can have with
// these ranks; it opens them on all ranks or on none: then it returns nil.
func (p *probe) table(n, home int) lock.Table { return p.tableOn(p.Comm, n, home) }

// home is the home of a table that a rank stands for: the rank itself, or where locks are on
// memory nodes one of these. The first call is collective in a job that has memory nodes.
func (p *probe) home(rank int) int {
	if p.MemoryNodes() == 0 {
		return rank
	}
	if !p.known {
		p.known = true
		t, err := p.info.Open(p.Comm, 1, 0)
		if !p.Agreed(err) {
			return rank
		}
		p.hosts = lock.HostsOf(t)
		p.free(t)
	}
	if p.hosts == rma.MemoryNodes {
		return rank % p.MemoryNodes()
	}
	return rank
}

// homes is the number of homes that a table may have.
func (p *probe) homes() int {
	if p.home(0); p.hosts == rma.MemoryNodes {
		return p.MemoryNodes()
	}
	return p.Size()
}

// tableOn is table on a Comm that the probe's ranks have made of theirs.
func (p *probe) tableOn(c rma.Comm, n, home int) lock.Table {
	if p.Lost() {
		return nil
	}
	home = p.home(home)
	t, err := p.info.Open(c, n, home)
	if errors.Is(err, lock.ErrConfig) && n > c.Size() {
		t, err = p.info.Open(c, c.Size(), home) // one lock per rank, as MPI has
	}
	if !p.Agreed(err) {
		return nil
	}
	return t
}

// free closes a table.
func (p *probe) free(t lock.Table) {
	p.Meet()
	if !p.Lost() {
		p.OK(t.Free())
	}
}

// inTurn lets the first and the last few ranks do something one after the other,
// while no other rank does anything.
func (p *probe) inTurn(f func()) {
	for r := range p.Size() {
		if r >= 3 && r < p.Size()-2 {
			continue
		}
		if p.Meet(); r == p.Rank() && !p.Lost() {
			f()
		}
	}
	p.Meet()
}
