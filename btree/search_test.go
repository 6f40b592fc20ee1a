package btree

import (
	"errors"
	"fmt"
	"testing"
	"time"

	_ "github.com/rmalock/rmalock/baseline"
	"github.com/rmalock/rmalock/declock"
	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// small is a tree with nodes of three slots. locks is Vanilla, NH, or a lock by name.
func small(c rma.Comm, locks string) (*Tree, lock.Table, error) {
	var table lock.Table
	own := locks
	if p, ok := within[locks]; ok {
		return smallWithin(c, p)
	}
	if locks != Vanilla && locks != NH {
		info, err := lock.Lookup(locks)
		if err != nil {
			return nil, nil, err
		}
		if table, err = info.Open(c, 2, 0); err != nil {
			return nil, nil, err
		}
		own = ""
	}
	t, err := smallOf(c, Config{Own: own, Locks: table})
	return t, table, err
}

// within are the parameters of declock for locks that lie in the tree's window.
var within = map[string]map[string]string{
	"declock in the window":        {"LEASE": "off", "HELD": "1"},
	"declock in the window, local": {"LEASE": "off", "HELD": "1", "POLICY": "local"},
}

// smallWithin is small with locks of declock in the tree's window.
func smallWithin(c rma.Comm, params map[string]string) (t *Tree, table lock.Table, err error) {
	info, err := lock.Lookup("declock")
	if err != nil {
		return nil, nil, err
	}
	hosts := c.MemoryNodes()
	if hosts == 0 {
		hosts = c.Size()
	}
	s := lock.Setting{Locks: 2 * hosts, Params: params}
	var cfg Config
	if cfg.Regions, err = info.Regions(c, s); err != nil {
		return nil, nil, err
	}
	cfg.Open = func(w *rma.Window, at int) (lock.Table, error) {
		s.Window, s.At = w, at
		table, err = info.With(c, s)
		return table, err
	}
	t, err = smallOf(c, cfg)
	return t, table, err
}

// smallOf is small with the locks of a Config.
func smallOf(c rma.Comm, cfg Config) (*Tree, error) {
	cfg.Node, cfg.Nodes, cfg.NodeLocks, cfg.Cache = minNode, 32, 2, NewCache(4)
	t, err := New(c, cfg)
	if err == nil {
		t.tries = 1 // a second read may find the same
	}
	return t, err
}

// asMap is a tree with its locks, which a search puts back together.
type asMap struct {
	*Tree
	table lock.Table
}

// errNever says that the tree leads to a node that no client has written whole.
var errNever = errors.New("the node was never whole")

// torn tells the node that a dead client has left half written from one that never was whole.
func (m asMap) torn(err error) error {
	if errors.Is(err, ErrTorn) && m.buf[headerCheck] == 0 {
		return fmt.Errorf("%w: %v", errNever, err)
	}
	return err
}

func (m asMap) Get(key int64) (value int64, there bool, err error) {
	value, there, err = m.Tree.Get(key)
	return value, there, m.torn(err)
}

func (m asMap) Set(key, value int64) error { return m.torn(m.Tree.Set(key, value)) }

func (m asMap) Delete(key int64) (there bool, err error) {
	there, err = m.Tree.Delete(key)
	return there, m.torn(err)
}

// plan is a check of a small tree. loaded keys are there at first, with values of -1.
func plan(locks string, nodes []int, loaded []int64) kvtest.Plan {
	p := kvtest.Plan{Keys: []int64{1, 2, 3, 4, 5, 6}}
	p.Search.Node, p.Search.MemoryNodes, p.Search.Ascending = nodes, 1, true
	p.Open = opening(func(c rma.Comm) (*Tree, lock.Table, error) { return small(c, locks) }, loaded)
	p.Rest = func(m kvtest.Map) error { return m.(asMap).Check(nil) }
	return p
}

// opening opens a tree and loads keys.
func opening(open func(c rma.Comm) (*Tree, lock.Table, error), loaded []int64) func(c rma.Comm) (kvtest.Map, error) {
	return func(c rma.Comm) (kvtest.Map, error) {
		t, table, err := open(c)
		if err != nil {
			return nil, err
		}
		if c.Rank() == 0 {
			for _, k := range loaded {
				if err := t.Set(k, 0); err != nil {
					return nil, err
				}
			}
			for _, k := range loaded { // values that the model begins with: none
				if k < 10 {
					if _, err := t.Delete(k); err != nil {
						return nil, err
					}
				}
			}
		}
		return asMap{t, table}, c.Barrier()
	}
}

// look runs a search and fails the test if it finds something.
func look(t *testing.T, p kvtest.Plan, s sim.Scheduler) {
	t.Helper()
	r := p.Run(s)
	if f := r.Failure; f != nil {
		t.Fatalf("%v\n%s", f, p.Trace(f.Schedule))
	}
	if r.Stats.OutOfTicks > r.Stats.Executions/10 {
		t.Errorf("%d of %d executions ran out of ticks", r.Stats.OutOfTicks, r.Stats.Executions)
	}
	t.Logf("%d states, %d executions, longest %d", r.States, r.Stats.Executions+r.Stats.Cut, r.Stats.Longest)
}

// TestSearch: all schedules of two clients, up to a number of preemptions, and some of three,
// that read, write, delete and scan a leaf, or split it.
func TestSearch(t *testing.T) {
	full := []int64{10, 20, 30} // one leaf, full
	two := []int64{10, 20, 30, 25}
	for _, k := range []struct {
		name    string
		locks   string
		nodes   []int
		loaded  []int64
		scripts []string
		bound   int
		long    bool
	}{
		{"write and read", NH, []int{0, 1}, []int64{10}, []string{"s1 s1", "g1"}, sim.Unbounded, false},
		{"write, delete and read", NH, []int{0, 1}, []int64{10}, []string{"s1 d1", "s1 g1"}, 2, false},
		{"split and read", NH, []int{0, 1}, full, []string{"s1", "g1 g1"}, 2, false},
		{"two splits", NH, []int{0, 1}, full, []string{"s1", "s2"}, 1, false},
		{"two splits, more preemptions", NH, []int{0, 1}, full, []string{"s1", "s2"}, 3, true},
		{"split and scan", NH, []int{0, 1}, two, []string{"s1", "r1"}, 1, false},
		{"hand-over", Vanilla, []int{0, 0}, []int64{10}, []string{"s1 d1", "s1 g1"}, 2, false},
		{"hand-over and another node", Vanilla, []int{0, 0, 1}, []int64{10}, []string{"s1", "s1", "g1"}, 1, false},
		{"any lock", "fompi-spin", []int{0, 1}, full, []string{"s1", "s2 g1"}, 1, false},
		{"a lock in the window", "declock in the window", []int{0, 1}, []int64{10}, []string{"s1", "s2 g2"}, 2, false},
		{"hand-over of a lock in the window", "declock in the window, local", []int{0, 0}, []int64{10}, []string{"s1 d1", "s1 g1"}, 1, false},
		{"the same, and another node", "declock in the window, local", []int{0, 0, 1}, []int64{10}, []string{"s1", "s1", "g1"}, 1, true},
		{"readers", "fompi-rw", []int{0, 1}, full, []string{"s1", "s2 g1"}, 1, true},
		{"split and read, more preemptions", NH, []int{0, 1}, full, []string{"s1", "g1 g1"}, 3, true},
		{"three", NH, []int{0, 1, 2}, full, []string{"s1", "s2", "g1"}, 1, true},
	} {
		t.Run(k.name, func(t *testing.T) {
			if k.long && locktest.Quick() {
				t.Skip("takes some seconds; see test-all")
			}
			t.Parallel()
			p := plan(k.locks, k.nodes, k.loaded)
			p.Scripts = k.scripts
			x := sim.Exhaustive(k.bound)
			look(t, p, x)
		})
	}
}

// TestSearchRandom: random and PCT schedules of more clients on six keys, in a tree that splits.
func TestSearchRandom(t *testing.T) {
	for _, locks := range []string{Vanilla, NH, "fompi-rw", "dslr", "declock in the window", "declock in the window, local"} {
		for seed := range uint64(3) {
			p := plan(locks, []int{0, 0, 1, 1}, nil)
			p.Calls, p.Seed, p.Ops, p.Search.Ascending = 4, seed, "sssdggr", false
			p.Search.Ticks, p.Search.MaxDelay = 300, 1
			for _, s := range []sim.Scheduler{sim.Random(1, 0, locktest.Draws(200)), sim.PCT(1, 3, 0, locktest.Draws(200))} {
				t.Run(fmt.Sprintf("%s/%d", locks, seed), func(t *testing.T) {
					t.Parallel()
					look(t, p, s)
				})
			}
		}
	}
}

// recoveringWithin has parameters of declock, with leases of 20 ticks.
const recoveringWithin = "declock in the window, leases"

// recovering is a lock whose holders may die: their leases last 20 ticks, so that a client which is
// slow hardly ever loses one.
func recovering(c rma.Comm, name string) (lock.Table, error) {
	const lease = 20 * sim.DefaultTickNs
	if name == "declock" {
		return declock.New(c, declock.Config{Locks: 2, Held: 1, Lease: lease})
	}
	return dslr.New(c, dslr.Config{Locks: 2, Lease: lease, BackoffFirst: -1, BackoffLast: -1})
}

// deaths is a check of a tree whose clients may die, with a script each or drawn operations.
func deaths(locks string, loaded []int64, scripts []string, crashes int) kvtest.Plan {
	p := plan(locks, []int{0, 1, 2}, nil)
	p.Open = opening(func(c rma.Comm) (*Tree, lock.Table, error) {
		if locks == recoveringWithin {
			return smallWithin(c, map[string]string{"HELD": "1", "LEASE": time.Duration(20 * sim.DefaultTickNs).String()})
		}
		table, err := recovering(c, locks)
		if err != nil {
			return nil, nil, err
		}
		t, err := smallOf(c, Config{Locks: table})
		return t, table, err
	}, loaded)
	if p.Scripts = scripts; scripts == nil {
		p.Calls, p.Seed, p.Ops, p.Search.Node = 5, 1, "sssdgr", []int{0, 0, 1, 1}
	}
	p.Search.Ascending, p.Search.Ticks, p.Search.MaxDelay, p.Search.Crashes = false, 600, 1, crashes
	p.GivesUp = func(err error) bool { return errors.Is(err, ErrTorn) || errors.Is(err, lock.ErrLeaseLost) }
	return p
}

// TestSearchDeath: one or two clients die at any step, as they hold a lock, write, split or link a
// node. The others go on. They find what a dead one has set, or what was there before, or that the
// node is half written; the rest of the tree keeps its invariants.
func TestSearchDeath(t *testing.T) {
	for _, locks := range []string{"dslr", "declock", recoveringWithin} {
		for _, k := range []struct {
			name    string
			loaded  []int64
			scripts []string
			crashes int
		}{
			{"a leaf", []int64{10}, []string{"s1 s1 d1", "s1 g1 d1", "g1 g1 s1"}, 1},
			{"splits", []int64{10, 20, 30}, []string{"s1 s3 g2", "s2 s4 g1", "g1 r1 s5"}, 1},
			{"a tree", nil, nil, 2},
		} {
			p := deaths(locks, k.loaded, k.scripts, k.crashes)
			for _, s := range []sim.Scheduler{sim.Random(1, 0, locktest.Draws(1500)), sim.PCT(1, 3, 0, locktest.Draws(1500))} {
				t.Run(locks+"/"+k.name, func(t *testing.T) {
					t.Parallel()
					look(t, p, s)
				})
			}
		}
	}
}

// hasty is a Transport on which a client does not wait until a new node is complete.
type hasty struct {
	rma.Transport
	node, pending *int
}

func (x hasty) Issue(o rma.Operation) {
	*x.node, *x.pending = 0, *x.pending+1
	if o.Kind == rma.KindPutBulk && len(o.Data) == minNode {
		*x.node = 1
	}
	x.Transport.Issue(o)
}

func (x hasty) Flush(target int, r *rma.Results) (n int, err error) {
	if *x.node == 1 {
		return *x.pending, nil
	}
	*x.pending, err = x.Transport.Flush(target, r)
	return *x.pending, err
}

// TestDeathMutant: the search finds a tree that leads to a node which a dead client has not completed.
func TestDeathMutant(t *testing.T) {
	p := deaths("dslr", []int64{10, 20, 30}, []string{"s1 s3 g2", "s2 s4 g1", "g1 g2 s5"}, 1)
	whole := p.Open
	p.Open = func(c rma.Comm) (kvtest.Map, error) {
		m, err := whole(c)
		if err == nil {
			t := m.(asMap).Tree
			t.w = rma.Decorate(t.w, func(t rma.Transport) rma.Transport { return hasty{t, new(int), new(int)} })
			t.locks = &tableLocks{w: t.w, locks: t.cfg.Locks}
		}
		return m, err
	}
	f := p.Run(sim.Random(1, 0, 2000)).Failure
	if f == nil || !errors.Is(f, errNever) && !errors.Is(f, kvtest.ErrHistory) {
		t.Fatalf("the search found %v, want %v", f, errNever)
	}
	t.Logf("%v, after %d executions", f, f.Execution)
}

// TestOwnLocksDoNotRecover: a client that dies with one of the tree's own locks stops the next one.
func TestOwnLocksDoNotRecover(t *testing.T) {
	for _, locks := range []string{NH, Vanilla} {
		p := plan(locks, []int{0, 0}, []int64{10})
		p.Scripts, p.Search.Crashes = []string{"s1", "s1"}, 1
		if f := p.Run(sim.Exhaustive(1)).Failure; f == nil || !errors.Is(f, sim.ErrDeadlock) {
			t.Errorf("%s: the search found %v, want a deadlock", locks, f)
		}
	}
}

// trusting is a Transport that makes nodes whole which a read found torn: the reader's checks
// are as if taken out, all of them or those of slots alone.
type trusting struct {
	rma.Transport
	reads *[]node
	slots bool
}

func (x trusting) Issue(o rma.Operation) {
	if o.Kind == rma.KindGetBulk && len(o.Data) == minNode {
		*x.reads = append(*x.reads, o.Data)
	}
	x.Transport.Issue(o)
}

func (x trusting) Flush(target int, r *rma.Results) (int, error) {
	n, err := x.Transport.Flush(target, r)
	for _, d := range *x.reads {
		for i := range d.slots() {
			d.slot(i)[checkWord] = d.slotCheck(i, d.has(i))
		}
		if !x.slots {
			d.seal()
		}
	}
	*x.reads = (*x.reads)[:0]
	return n, err
}

// unordered is a Transport without fences.
type unordered struct{ rma.Transport }

func (x unordered) Issue(o rma.Operation) {
	o.Epoch = 0
	x.Transport.Issue(o)
}

// TestMutants: a search finds what is wrong without the checks of a node, or of slots alone, and
// without the fence between a write and the release.
func TestMutants(t *testing.T) {
	for name, k := range map[string]struct {
		wrap    func(rma.Transport) rma.Transport
		loaded  []int64
		scripts []string
	}{
		"no checks":           {func(t rma.Transport) rma.Transport { return trusting{t, new([]node), false} }, []int64{10}, []string{"s1 d1 s2", "g1 g1"}},
		"no version in slots": {func(t rma.Transport) rma.Transport { return trusting{t, new([]node), true} }, []int64{10, 20, 3}, []string{"s3 s1 s2", "g3 g3"}},
		"no fence":            {func(t rma.Transport) rma.Transport { return unordered{t} }, []int64{10}, []string{"s1", "d1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan(NH, []int{0, 1}, k.loaded)
			p.Scripts = k.scripts
			whole := p.Open
			p.Open = func(c rma.Comm) (kvtest.Map, error) {
				m, err := whole(c)
				if err != nil {
					return nil, err
				}
				t := m.(asMap).Tree
				t.w = rma.Decorate(t.w, k.wrap)
				t.locks = &globalLocks{w: t.w, at: 1, n: t.cfg.NodeLocks, me: int64(c.Rank()) + 1}
				return m, nil
			}
			var f *sim.Failure
			for bound := 1; bound <= 3 && f == nil; bound++ {
				x := sim.Exhaustive(bound)
				x.Limit = 300_000
				f = p.Run(x).Failure
			}
			if f == nil || !errors.Is(f, kvtest.ErrHistory) && !errors.Is(f, ErrTorn) {
				t.Fatalf("the search found %v", f)
			}
			t.Logf("%v, after %d executions", f, f.Execution)
		})
	}
}
