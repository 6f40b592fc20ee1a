package cider

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// asMap is a Store whose values are numbers, written twice: so a torn one shows.
type asMap struct{ *Store }

func data(v int64) []byte {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	binary.LittleEndian.PutUint64(b[8:], uint64(v))
	return b[:]
}

func (m asMap) Get(key int64) (int64, bool, error) {
	b, there, err := m.Search(int(key), nil)
	if err != nil || !there {
		return 0, false, err
	}
	v := int64(binary.LittleEndian.Uint64(b))
	if w := int64(binary.LittleEndian.Uint64(b[8:])); w != v {
		v = -1
	}
	return v, true, nil
}

func (m asMap) Set(key, value int64) error            { return m.Put(int(key), data(value)) }
func (m asMap) Delete(key int64) (bool, error)        { return m.Store.Delete(int(key)) }
func (m asMap) Insert(key, value int64) (bool, error) { return m.Store.Insert(int(key), data(value)) }
func (m asMap) Update(key, value int64) (bool, error) { return m.Store.Update(int(key), data(value)) }

// plan is a check of a store with a scheme.
func plan(clients int, cfg Config) kvtest.Plan {
	p := kvtest.Plan{Keys: []int64{0}}
	p.Search.Node = make([]int, clients)
	for i := range p.Search.Node {
		switch p.Search.Node[i] = i; {
		case cfg.Local > 0: // three are mates: one works, and two are combined
			p.Search.Node[i] = i / 3
		case cfg.Scheme.adapts(): // two are, and have their credits in common
			p.Search.Node[i] = i / 2
		}
	}
	p.Search.MemoryNodes, p.Search.Ascending = 1, true
	cfg.Keys = max(2, cfg.Keys)
	if cfg.Words == 0 {
		cfg.Words = 1 << 14
	}
	cfg.Most, cfg.Lease, cfg.Hot, cfg.BackoffLast = 16, sim.DefaultTickNs, 2, -1
	if cfg.Section == 0 {
		cfg.Section = 2
	}
	p.Open = func(c rma.Comm) (kvtest.Map, error) {
		s, err := New(c, cfg)
		return asMap{s}, err
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
	t.Logf("%d states, %d executions, %d out of ticks", r.States, r.Stats.Executions+r.Stats.Cut, r.Stats.OutOfTicks)
}

// How long a search takes, from those of every test to those of check-deep.
const (
	short = iota
	long
	deep
)

// hot switches a key to the queue after one retry, and back after one lonely execution.
var hot = Config{Policy: Policy{Scheme: Cider, HotnessThreshold: 1, InitialCredit: 1}}

// TestSearch: all schedules of two and three clients on a key and on two; histories are
// linearizable.
func TestSearch(t *testing.T) {
	for _, k := range []struct {
		cfg     Config
		scripts []string
		ticks   int
		crashes int
		bound   int
		size    int
	}{
		{Config{Policy: Policy{Scheme: Optimistic}}, []string{"s0 d0", "u0 g0"}, 1, 0, sim.Unbounded, short},
		{Config{Policy: Policy{Scheme: Spin}}, []string{"s0 d0", "u0 g0"}, 1, 0, sim.Unbounded, short},
		{Config{Policy: Policy{Scheme: Queue}}, []string{"s0 d0", "u0 g0"}, 1, 0, sim.Unbounded, short},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"s0 d0", "u0 g0"}, 1, 0, sim.Unbounded, short},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"i0 u0", "u0", "u0"}, 1, 0, 1, short},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"i0 d0", "u0 g0"}, 4, 0, 2, long},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"i0 u0", "u0 g0", "d0 g0"}, 1, 0, 1, short},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"i0 u0", "u0 g0", "d0 g0"}, 1, 0, 2, long},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"i0 u0", "u0 g0", "d0 g0"}, 1, 0, sim.Unbounded, deep},
		{Config{Policy: Policy{Scheme: Optimistic}}, []string{"i0 u0", "u0 g0", "d0 g0"}, 1, 0, sim.Unbounded, long},
		{hot, []string{"i0 u0", "u0 u0", "u0 d0"}, 1, 0, 1, short},
		{hot, []string{"i0 u0", "u0 u0", "u0 d0"}, 1, 0, 2, long},
		{hot, []string{"i0 u0", "u0 u0", "u0 d0"}, 1, 0, sim.Unbounded, deep},
		{hot, []string{"i0 u1", "u0 i1", "u0 d1"}, 1, 0, 1, short},
		{hot, []string{"i0 u1", "u0 i1", "u0 d1"}, 1, 0, sim.Unbounded, long},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"i0", "u0", "d0"}, 8, 1, 0, long},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"i0 u0", "u0 g0"}, 8, 1, 1, deep},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"i0 d0", "u0 g0"}, 8, 1, 1, long},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"i0", "u0"}, 5, 1, 0, long},
		{hot, []string{"s0 u0", "u0 u0"}, 1, 0, 1, short},
		{hot, []string{"s0 d0", "u0 u0"}, 1, 0, 2, long},
	} {
		t.Run(fmt.Sprintf("%v, %v, %d deaths, %d preemptions", k.cfg.Scheme, k.scripts, k.crashes, k.bound), func(t *testing.T) {
			switch {
			case k.size >= long && locktest.Quick():
				t.Skip("takes some seconds; see test-all")
			case k.size == deep && !locktest.Deep():
				t.Skip("takes minutes; see check-deep")
			}
			t.Parallel()
			p := plan(len(k.scripts), k.cfg)
			p.Scripts, p.Search.Ticks, p.Search.MaxDelay, p.Search.Crashes = k.scripts, k.ticks, 1, k.crashes
			if strings.Contains(fmt.Sprint(k.scripts), "1") {
				p.Keys = []int64{0, 1}
			}
			look(t, p, sim.Exhaustive(k.bound))
		})
	}
}

// TestSearchNoSwap: the same where the swap by which a client enters a queue is a loop.
func TestSearchNoSwap(t *testing.T) {
	for _, k := range []struct {
		cfg     Config
		scripts []string
		ticks   int
		bound   int
		size    int
	}{
		{Config{Policy: Policy{Scheme: Combining}}, []string{"s0 d0", "u0 g0"}, 1, 2, short},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"s0 d0", "u0 g0"}, 1, sim.Unbounded, long},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"i0 u0", "u0", "u0"}, 1, 1, long},
		{hot, []string{"s0 d0", "u0 u0"}, 1, 2, long},
		{Config{Policy: Policy{Scheme: Combining}}, []string{"i0 u0", "u0 g0", "d0 g0"}, 1, 1, long},
	} {
		t.Run(fmt.Sprintf("%v, %v, %d", k.cfg.Scheme, k.scripts, k.bound), func(t *testing.T) {
			switch {
			case k.size >= long && locktest.Quick():
				t.Skip("takes some seconds; see test-all")
			case k.size == deep && !locktest.Deep():
				t.Skip("takes minutes; see check-deep")
			}
			t.Parallel()
			p := plan(len(k.scripts), k.cfg)
			p.Scripts, p.Search.Ticks, p.Search.MaxDelay, p.NoSwap = k.scripts, k.ticks, 1, true
			look(t, p, sim.Exhaustive(k.bound))
		})
	}
}

// TestSearchLocal: three clients of a node that combine, since one of them works and another one
// for a third, and one of another node.
func TestSearchLocal(t *testing.T) {
	for _, k := range []struct {
		scheme  Scheme
		scripts []string
		ticks   int
		crashes int
		bound   int
		size    int
	}{
		{Optimistic, []string{"s0", "u0", "u0"}, 1, 0, 1, short},
		{Optimistic, []string{"s0", "g0", "g0"}, 1, 0, 1, short},
		{Optimistic, []string{"s0", "u0", "u0", "g0"}, 1, 0, 0, short},
		{Optimistic, []string{"s0", "g0", "g0", "u0"}, 1, 0, 0, short},
		{Optimistic, []string{"s0", "u0", "u0", "g0"}, 1, 0, 1, long},
		{Optimistic, []string{"i0 u0", "u0", "g0"}, 4, 0, 1, long},
		{Optimistic, []string{"i0 g0", "g0", "u0"}, 4, 0, 1, long},
		{Combining, []string{"s0", "u0", "d0"}, 1, 0, 1, long},
		{Optimistic, []string{"s0", "u0", "u0"}, 1, 0, sim.Unbounded, deep},
		{Optimistic, []string{"s0", "u0", "u0"}, 8, 1, 0, long},
	} {
		t.Run(fmt.Sprintf("%v, %v, %d deaths", k.scheme, k.scripts, k.crashes), func(t *testing.T) {
			switch {
			case k.size >= long && locktest.Quick():
				t.Skip("takes some seconds; see test-all")
			case k.size == deep && !locktest.Deep():
				t.Skip("takes minutes; see check-deep")
			}
			t.Parallel()
			p := plan(len(k.scripts), Config{Policy: mates(k.scheme)})
			p.Scripts, p.Search.Ticks, p.Search.MaxDelay, p.Search.Crashes = k.scripts, k.ticks, 1, k.crashes
			look(t, p, sim.Exhaustive(k.bound))
		})
	}
}

// TestSameTag: node-mates with two keys that look alike in an entry do not answer each other.
func TestSameTag(t *testing.T) {
	s := &Store{}
	seen, a, b := map[uint64]int{}, 0, 0
	for b = 0; ; b++ {
		mark, there := hashOf(s.bytes(b))>>51|1, false
		if a, there = seen[mark]; there {
			break
		}
		seen[mark] = b
	}
	p := plan(3, Config{Keys: b + 1, Policy: Policy{Scheme: Optimistic, Local: 3, LocalKeys: 1}})
	p.Scripts = []string{fmt.Sprintf("s%d u%d g%d g%d", a, a, a, a), fmt.Sprintf("s%d u%d g%d g%d", b, b, b, b), fmt.Sprintf("u%d u%d u%d u%d", b, a, b, a)}
	p.Search.Ticks, p.Search.MaxDelay, p.Search.Ascending = 50, 1, false
	look(t, p, sim.Random(1, 0, locktest.Draws(3000)))
}

// mates is a policy with local combining of two clients.
func mates(s Scheme) Policy { return Policy{Scheme: s, Local: 3, LocalKeys: 2} }

// load has client 0 put keys into the store at first: else most updates are of no key.
func load(p *kvtest.Plan, keys []int64) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	whole := p.Open
	p.Loaded = keys
	p.Open = func(c rma.Comm) (kvtest.Map, error) {
		m, err := whole(c)
		if err != nil || c.Rank() > 0 {
			return m, err
		}
		for _, k := range keys {
			if err := m.Set(k, -1); err != nil {
				return nil, err
			}
		}
		return m, m.(asMap).Rest()
	}
}

// many is hot with sixteen keys, of which four have half of the operations. Histories are
// linearizable key by key, and those of one key are short.
var (
	many       = Config{Keys: 16, Policy: hot.Policy}
	manyQueued = Config{Keys: 16, Policy: Policy{Scheme: Combining}}
	sixteen    = append(slices.Repeat([]int64{0, 1, 2, 3}, 3), 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
)

// TestSearchRandom: drawn schedules of more clients, some of which die.
func TestSearchRandom(t *testing.T) {
	for name, k := range map[string]struct {
		cfg            Config
		clients, calls int
		keys           []int64
		crashes        int
		ops            string
		n              int64
	}{
		"combining":         {Config{Section: 1, Policy: Policy{Scheme: Combining}}, 4, 4, []int64{0}, 0, "uuuugsd", 2000},
		"cider":             {hot, 4, 6, []int64{0}, 0, "uuuugid", 2000},
		"cider, two keys":   {hot, 5, 5, []int64{0, 1}, 0, "uuuugsd", 1000},
		"cider, 16 clients": {hot, 16, 4, []int64{0, 1}, 0, "uuuuuugs", 60},

		"cider, 64 clients":     {many, 64, 4, sixteen, 0, "uuuuuuuugsid", 120},
		"combining, 64 clients": {manyQueued, 64, 3, sixteen, 0, "uuuuuugsid", 120},
		"deaths":                {Config{Policy: Policy{Scheme: Combining}}, 4, 3, []int64{0}, 2, "uuuugsd", 2000},
		"cider, deaths":         {hot, 5, 4, []int64{0}, 2, "uuuugsd", 1000},
		"local":                 {Config{Policy: mates(Optimistic)}, 3, 5, []int64{0, 1}, 0, "uuuuggggsd", 2000},
		"local, deaths":         {Config{Policy: mates(Combining)}, 5, 4, []int64{0}, 2, "uuuuggggsd", 1000},
		"queue, deaths":         {Config{Policy: Policy{Scheme: Queue}}, 4, 3, []int64{0}, 2, "uuuugsd", 1000},
	} {
		if k.clients > 16 && locktest.Deep() {
			k.n *= 10
		}
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
				t.Parallel()
				p := plan(k.clients, k.cfg)
				if k.clients >= 16 {
					load(&p, k.keys)
					for i := range p.Search.Node {
						p.Search.Node[i] = i / max(8, k.clients/2) // they have their credits in common
					}
				}
				p.NoSwap = explore.noSwap
				p.Calls, p.Seed, p.Ops, p.Keys, p.Search.Ascending = k.calls, 1, k.ops, k.keys, false
				p.Search.Ticks, p.Search.MaxDelay, p.Search.Crashes = 300, 1, k.crashes
				look(t, p, explore.s)
			})
		}
	}
}

// errWindow is wrapped where an update is combined with one outside of its window.
var errWindow = errors.New("the pointer is as it was when the combined update began")

// windowed is a Store with a look at the pointer before each update and after it: where the update
// is combined, another client has changed the pointer within the call (4.5.1).
type windowed struct {
	asMap
	inner interface {
		Update(key, value int64) (bool, error)
	}
}

func (m windowed) Update(key, value int64) (bool, error) {
	at, before := m.slot(int(key)), m.stats.Combined
	p, err := m.w.GetFlush(at.Host, at.Pointer)
	if err != nil {
		return false, err
	}
	done, err := m.inner.Update(key, value)
	if err != nil || m.stats.Combined == before {
		return done, err
	}
	now, err := m.w.GetFlush(at.Host, at.Pointer)
	if err == nil && now == p {
		err = errWindow
	}
	return done, err
}

// TestWindow: an update that is combined has been stood for within its call; not so where a
// coordinator does not wait for its executor.
func TestWindow(t *testing.T) {
	bound := 2
	if locktest.Quick() {
		bound = 1
	}
	for _, hasty := range []bool{false, true} {
		p := plan(3, Config{Section: 8, Policy: Policy{Scheme: Combining}})
		p.Scripts, p.Search.Ticks, p.Search.MaxDelay = []string{"s0 u0", "u0", "u0"}, 1, 1
		whole := p.Open
		p.Open = func(c rma.Comm) (kvtest.Map, error) {
			m, err := whole(c)
			if err != nil {
				return nil, err
			}
			w := windowed{m.(asMap), m.(asMap)}
			if hasty {
				w.inner = naive{asMap: m.(asMap), hasty: true, counts: true}
			}
			return w, nil
		}
		switch {
		case !hasty:
			look(t, p, sim.Exhaustive(bound))
		default:
			if f := p.Run(sim.Exhaustive(bound)).Failure; !errors.Is(f, errWindow) {
				t.Errorf("the search found %v, want %v", f, errWindow)
			}
		}
	}
}
