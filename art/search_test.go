package art

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// names are the keys of the searches by number, in order. What 5 and 6 have in common is more than
// a head has room for.
var names = []string{"", "ab1", "ab2", "abcde", "ax", "c.........1", "c.........2", "c....y", "c..x", "d", "e", "f"}

// asMap is a Tree whose keys are names and whose values are numbers, written twice: so a torn one
// shows.
type asMap struct{ *Tree }

func data(v int64) []byte {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	binary.LittleEndian.PutUint64(b[8:], uint64(v))
	return b[:]
}

func number(b []byte) int64 {
	v := int64(binary.LittleEndian.Uint64(b))
	if w := int64(binary.LittleEndian.Uint64(b[8:])); w != v {
		v = -1
	}
	return v
}

func (m asMap) Get(key int64) (int64, bool, error) {
	b, there, err := m.Search([]byte(names[key]), nil)
	if err != nil || !there {
		return 0, false, err
	}
	return number(b), true, nil
}

func (m asMap) Set(key, value int64) error        { return m.Put([]byte(names[key]), data(value)) }
func (m asMap) Delete(key int64) (bool, error)    { return m.Tree.Delete([]byte(names[key])) }
func (m asMap) Insert(key, v int64) (bool, error) { return m.Tree.Insert([]byte(names[key]), data(v)) }
func (m asMap) Update(key, v int64) (bool, error) { return m.Tree.Update([]byte(names[key]), data(v)) }

func (m asMap) Scan(from int64, f func(key, value int64) bool) error {
	return m.Tree.Scan([]byte(names[from]), func(k, v []byte) bool {
		for i, name := range names {
			if name == string(k) {
				return f(int64(i), number(v))
			}
		}
		return true
	})
}

// plan is a check of a tree with nodes of two slots and extents of one. The loaded keys are there
// at first, which the clients leave alone; of those that went all was taken out again.
func plan(scripts []string, loaded, went []int, policy cider.Policy) kvtest.Plan {
	p := kvtest.Plan{Scripts: scripts}
	for _, f := range strings.Fields(strings.Join(scripts, " ")) {
		k, err := strconv.ParseInt(f[1:], 10, 64)
		if err == nil && !slices.Contains(p.Keys, k) && k != 0 {
			p.Keys = append(p.Keys, k)
		}
	}
	p.Search.Node = make([]int, max(1, len(scripts)))
	for i := range p.Search.Node {
		p.Search.Node[i] = i
	}
	p.Search.MemoryNodes, p.Search.Ascending = 1, true
	policy.Lease, policy.Hot, policy.BackoffLast = sim.DefaultTickNs, 2, -1
	p.Open = func(c rma.Comm) (kvtest.Map, error) {
		t, err := New(c, Config{
			MostKey: 11, MostValue: 16, Words: 1 << 13, FarWords: 1 << 13, Section: 2, Cache: NewCache(0), Policy: policy,
			growth: []int{2, 1, 1, 1}, keep: 64,
		})
		if err != nil || c.Rank() != 0 {
			return asMap{t}, err
		}
		for _, k := range append(loaded, went...) {
			if err := t.Put([]byte(names[k]), data(0)); err != nil {
				return nil, err
			}
		}
		for _, k := range went {
			if _, err := t.Delete([]byte(names[k])); err != nil {
				return nil, err
			}
		}
		return asMap{t}, t.Rest()
	}
	p.Rest = func(m kvtest.Map) error {
		_, err := m.(interface {
			Check(func(key, value []byte)) (Shape, error)
		}).Check(nil)
		return err
	}
	return p
}

// look runs a search and fails the test if it finds something.
func look(t *testing.T, p kvtest.Plan, s sim.Scheduler) {
	t.Helper()
	r := p.Run(s)
	if f := r.Failure; f != nil {
		t.Fatalf("%v\n%s", f, p.Trace(f.Schedule))
	}
	_, all := s.(*sim.ExhaustiveSearch)
	if n := r.Stats.OutOfTicks; n > 0 && all && p.Search.Crashes == 0 || n == r.Stats.Executions {
		t.Errorf("%d executions need more ticks", n) // a search of all schedules leaves none out
	}
	t.Logf("%d states, %d executions, %d out of ticks, longest %d", r.States, r.Stats.Executions+r.Stats.Cut, r.Stats.OutOfTicks, r.Stats.Longest)
}

// How long a search takes, from those of every test to those of check-deep.
const (
	short = iota
	long
	deep
)

var optimistic = cider.Policy{Scheme: cider.Optimistic}

// TestSearch: all schedules of two and three clients whose operations let nodes grow and split;
// histories are linearizable and the tree is whole.
func TestSearch(t *testing.T) {
	for _, k := range []struct {
		name         string
		policy       cider.Policy
		scripts      []string
		loaded, went []int
		ticks        int
		crashes      int
		bound        int
		size         int
	}{
		{"a leaf splits", optimistic, []string{"i1 g2", "i2 g1"}, nil, nil, 1, 0, 0, short},
		{"a node grows", optimistic, []string{"i9 g10", "i10 g9"}, []int{0, 1}, nil, 1, 0, 0, short},
		{"a row of nodes", optimistic, []string{"i5", "i6"}, nil, nil, 1, 0, 0, short},
		{"a node above", optimistic, []string{"i4 g3", "i3 g4"}, []int{1, 2}, nil, 1, 0, 0, short},
		{"two nodes above", optimistic, []string{"i7", "i8 d7"}, []int{5, 6}, nil, 1, 0, 0, short},
		{"a leaf goes and splits", optimistic, []string{"i1 d1", "i2 g1"}, nil, nil, 1, 0, 0, short},
		{"a leaf goes and comes", optimistic, []string{"i1 d1", "i1 g1"}, nil, nil, 1, 0, 0, short},
		{"a leaf is used again", optimistic, []string{"i1 d1 i2", "g1 g1"}, nil, nil, 1, 0, 1, short},
		{"a leaf moves", cider.Policy{Scheme: cider.Combining}, []string{"i1 u1", "i2 u1"}, nil, nil, 1, 0, 0, short},

		{"a leaf splits", optimistic, []string{"i1 g2", "i2 g1"}, nil, nil, 1, 0, sim.Unbounded, long},
		{"a node grows", optimistic, []string{"i9 g10", "i10 g9"}, []int{0, 1}, nil, 1, 0, 1, long},
		{"a node above", optimistic, []string{"i4 g3", "i3 g4"}, []int{1, 2}, nil, 1, 0, 1, long},
		{"two nodes above", optimistic, []string{"i7 g8", "i8 d7"}, []int{5, 6}, nil, 1, 0, 0, long},
		{"a leaf goes and splits", optimistic, []string{"i1 d1", "i2 g1"}, nil, nil, 1, 0, sim.Unbounded, long},
		{"a leaf goes and comes", optimistic, []string{"i1 d1", "i1 g1"}, nil, nil, 1, 0, sim.Unbounded, long},
		{"a leaf moves", cider.Policy{Scheme: cider.Combining}, []string{"i1 u1", "i2 u1"}, nil, nil, 1, 0, 1, long},
		{"a leaf moves", cider.Policy{Scheme: cider.Combining}, []string{"i1 u1", "u1", "i2"}, nil, nil, 1, 0, 1, long},
		{"a death", optimistic, []string{"i1", "i2 g1"}, nil, nil, 4, 1, 0, long},
		{"three grow a node", optimistic, []string{"i9 d10", "i10 g9", "i11 g10"}, []int{0, 1}, nil, 1, 0, 0, long},
		{"three at a leaf", optimistic, []string{"i1 g2", "i2 d1", "s1 r0"}, nil, nil, 1, 0, 0, long},

		{"a death", optimistic, []string{"i1 d1", "i2 g1"}, nil, nil, 4, 1, 0, deep},
		{"a row of nodes", optimistic, []string{"i5 g6", "i6 d5"}, nil, nil, 1, 0, 2, deep},
		{"a node above", optimistic, []string{"i4 g3", "i3 g4"}, []int{1, 2}, nil, 1, 0, sim.Unbounded, deep},
		{"two nodes above", optimistic, []string{"i7 g8", "i8 d7"}, []int{5, 6}, nil, 1, 0, 2, deep},
		{"three grow a node", optimistic, []string{"i9 d10", "i10 g9", "i11 g10"}, []int{0, 1}, nil, 1, 0, 1, deep},
		{"three at a leaf", optimistic, []string{"i1 g2", "i2 d1", "s1 r0"}, nil, nil, 1, 0, 1, deep},
	} {
		t.Run(fmt.Sprintf("%s, %v, %v, %d deaths, %d preemptions", k.name, k.policy.Scheme, k.scripts, k.crashes, k.bound), func(t *testing.T) {
			switch {
			case k.size >= long && locktest.Quick():
				t.Skip("takes some seconds; see test-all")
			case k.size == deep && !locktest.Deep():
				t.Skip("takes minutes; see check-deep")
			}
			t.Parallel()
			p := plan(k.scripts, k.loaded, k.went, k.policy)
			p.Search.Ticks, p.Search.MaxDelay, p.Search.Crashes = k.ticks, 1, k.crashes
			look(t, p, sim.Exhaustive(k.bound))
		})
	}
}

// drawn keys of TestSearchRandom: 1 to 8 are not all of one node.
var some = []int64{1, 2, 3, 4, 7, 8, 9, 10}

// TestSearchRandom: drawn schedules of more clients, some of which die.
func TestSearchRandom(t *testing.T) {
	hot := cider.Policy{Scheme: cider.Cider, HotnessThreshold: 1, InitialCredit: 1}
	for name, k := range map[string]struct {
		policy         cider.Policy
		clients, calls int
		keys           []int64
		crashes        int
		n              int64
	}{
		"o-sync":             {optimistic, 4, 5, some, 0, 400},
		"o-sync, one leaf":   {optimistic, 4, 5, []int64{1, 2}, 0, 400},
		"o-sync, deaths":     {optimistic, 4, 5, some[:4], 2, 400},
		"cider":              {hot, 4, 6, []int64{1, 2}, 0, 400},
		"combining":          {cider.Policy{Scheme: cider.Combining}, 4, 5, []int64{1, 2, 9}, 0, 400},
		"combining, deaths":  {cider.Policy{Scheme: cider.Combining}, 4, 4, []int64{1, 2}, 2, 400},
		"queue, deaths":      {cider.Policy{Scheme: cider.Queue}, 4, 4, []int64{1, 2}, 2, 200},
		"mates":              {cider.Policy{Scheme: cider.Combining, Local: 2, LocalKeys: 2}, 4, 4, []int64{1, 2}, 0, 400},
		"o-sync, 16 clients": {optimistic, 16, 4, some, 0, 20},
		"cider, 64 clients":  {hot, 64, 2, some, 0, 6},
	} {
		for _, explore := range []struct {
			name   string
			s      sim.Scheduler
			noSwap bool
		}{
			{"random", sim.Random(1, 0, locktest.Draws(k.n)), false},
			{"pct", sim.PCT(1, 3, 0, locktest.Draws(k.n)), false},
			{"no swap", sim.Random(2, 0, locktest.Draws(k.n/4)), true},
		} {
			t.Run(name+"/"+explore.name, func(t *testing.T) {
				if k.clients > 16 && locktest.Quick() {
					t.Skip("takes some seconds; see test-all")
				}
				t.Parallel()
				p := plan(nil, []int{5, 6}, []int{11}, k.policy)
				p.NoSwap = explore.noSwap
				p.Calls, p.Seed, p.Ops, p.Keys = k.calls, 1, "sugidr", k.keys
				p.Search.Node = make([]int, k.clients)
				for i := range p.Search.Node {
					p.Search.Node[i] = i / max(1, k.policy.Local)
				}
				p.Search.Ascending, p.Search.Ticks, p.Search.MaxDelay, p.Search.Crashes = false, max(300, 40*k.clients), 1, k.crashes
				p.Pace = 1 // under PCT a client that begins at once leaves the others no time
				look(t, p, explore.s)
			})
		}
	}
}
