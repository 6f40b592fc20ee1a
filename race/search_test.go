package race

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// asMap is a Table of numbers. Checksums show torn blocks.
type asMap struct{ *Table }

func (m asMap) Get(key int64) (int64, bool, error) {
	b, there, err := m.Search(number(key), nil)
	if err != nil || !there {
		return 0, false, err
	}
	return asNumber(b), true, nil
}

func asNumber(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }

func (m asMap) Set(key, value int64) error     { return m.Put(number(key), number(value)) }
func (m asMap) Delete(key int64) (bool, error) { return m.Table.Delete(number(key)) }
func (m asMap) Insert(key, value int64) (bool, error) {
	return m.Table.Insert(number(key), number(value))
}
func (m asMap) Update(key, value int64) (bool, error) {
	return m.Table.Update(number(key), number(value))
}

// pair is two keys, from a number on, that a split of the first segment moves, or does not: bit says
// so. In a tiny table both go into the first slot that there is if it is empty, else into the last.
func pair(from int64, bit uint64) (out []int64) {
	t := &Table{cfg: Config{Groups: 1}}
	for k := from; len(out) < 2; k++ {
		if t.aim(number(k)); t.to.hash&1 == bit && t.to.main[0] == 0 {
			out = append(out, k)
		}
	}
	return out
}

// tiny is a table of segments with three slots, of which any key may have any.
func tiny(s cider.Scheme) Config {
	return Config{Segments: 4, Groups: 1, slots: 1, Policy: cider.Policy{Scheme: s}}
}

// plan is a check of a table. loaded keys are there at first; those below 1000 are also the plan's.
func plan(clients int, cfg Config, loaded ...int64) kvtest.Plan {
	p := kvtest.Plan{}
	p.Search.Node = make([]int, clients)
	for i := range p.Search.Node {
		p.Search.Node[i] = i / max(1, cfg.Local)
	}
	p.Search.MemoryNodes, p.Search.Ascending, p.Search.MaxDelay = 1, true, 1
	cfg.Most, cfg.Words, cfg.Lease, cfg.Hot, cfg.BackoffLast = max(16, cfg.Most), 1<<14, sim.DefaultTickNs, 2, -1
	if cfg.Section == 0 {
		cfg.Section = 2
	}
	for _, k := range loaded {
		if k < 1000 {
			p.Loaded = append(p.Loaded, k)
		}
	}
	p.Open = func(c rma.Comm) (kvtest.Map, error) {
		t, err := New(c, cfg)
		if err == nil && c.Rank() == 0 {
			for _, k := range loaded {
				if err := t.Put(number(k), number(-1)); err != nil {
					return nil, err
				}
			}
			err = t.Rest()
		}
		if err != nil {
			return nil, err
		}
		return asMap{t}, c.Barrier()
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

// TestSearch: all schedules of two and three clients, up to a number of preemptions, on one key
// and on two, with and without a split; histories are linearizable.
func TestSearch(t *testing.T) {
	goes, stays := pair(0, 1), pair(1000, 0)
	full := []int64{stays[0], goes[0], stays[1]} // one segment, and one of its keys goes when it is split
	for _, k := range []struct {
		name    string
		scheme  cider.Scheme
		loaded  []int64
		scripts []string
		ticks   int
		crashes int
		bound   int
		size    int
	}{
		{"two inserts", cider.Optimistic, nil, []string{"i%a", "i%a"}, 1, 0, 1, short},
		{"two inserts", cider.Optimistic, nil, []string{"i%a", "i%a"}, 1, 0, 3, deep},
		{"three inserts", cider.Optimistic, nil, []string{"i%a", "i%a", "i%a"}, 1, 0, 1, long},
		{"all operations", cider.Optimistic, nil, []string{"i%a d%a", "u%a g%a"}, 1, 0, 2, short},
		{"inserts and deletes", cider.Optimistic, nil, []string{"i%a d%a", "i%a g%a"}, 1, 0, 1, short},
		{"inserts and deletes", cider.Optimistic, nil, []string{"i%a d%a", "i%a g%a"}, 1, 0, 2, long},
		{"all operations", cider.Combining, nil, []string{"i%a d%a", "u%a g%a"}, 1, 0, 1, short},
		{"inserts into two slots", cider.Optimistic, goes[1:], []string{"i%a", "d%b i%a"}, 1, 0, 1, short},
		{"inserts into two slots", cider.Optimistic, goes[1:], []string{"i%a g%a", "d%b i%a"}, 1, 0, 3, long},
		{"insert, one dies", cider.Optimistic, nil, []string{"i%a", "i%a g%a"}, 1, 1, 0, short},
		{"split, one dies", cider.Optimistic, full, []string{"i%b", "u%a i%b"}, 1, 1, 0, long},
		{"insert, one dies", cider.Optimistic, nil, []string{"i%a", "i%a g%a"}, 1, 1, 1, deep},
		{"split, one dies", cider.Optimistic, full, []string{"i%b", "u%a i%b"}, 1, 1, 1, deep},
		{"split, one dies", cider.Combining, full, []string{"i%b", "u%a i%b"}, 5, 1, 0, deep},
		{"three, a split", cider.Combining, full, []string{"i%b", "u%a", "d%a"}, 1, 0, 0, long},
		{"three, a split", cider.Combining, full, []string{"i%b", "u%a", "d%a"}, 1, 0, 1, deep},
		{"three, two each, a split", cider.Cider, full, []string{"i%b u%b", "u%a d%a", "d%a i%a"}, 1, 0, 0, long},
		{"three, two each, a split", cider.Cider, full, []string{"i%b u%b", "u%a d%a", "d%a i%a"}, 1, 0, 1, deep},
		{"three, two each", cider.Combining, nil, []string{"i%a u%b", "i%b d%a", "u%a g%b"}, 1, 0, 0, long},
		{"three, two each", cider.Combining, nil, []string{"i%a u%b", "i%b d%a", "u%a g%b"}, 1, 0, 1, deep},
		{"split and search", cider.Optimistic, full, []string{"i%b", "g%a g%a"}, 1, 0, 1, short},
		{"split and search", cider.Optimistic, full, []string{"i%b", "g%a g%a"}, 1, 0, 2, long},
		{"split and update", cider.Optimistic, full, []string{"i%b", "u%a g%a"}, 1, 0, 1, short},
		{"split and update", cider.Optimistic, full, []string{"i%b", "u%a g%a"}, 1, 0, 2, deep},
		{"split and delete", cider.Optimistic, full, []string{"i%b", "d%a i%a"}, 1, 0, 1, short},
		{"split and update", cider.Combining, full, []string{"i%b", "u%a g%a"}, 1, 0, 1, short},
		{"split and delete", cider.Combining, full, []string{"i%b", "d%a i%a"}, 1, 0, 1, long},
	} {
		t.Run(fmt.Sprintf("%s, %v, %d", k.name, k.scheme, k.bound), func(t *testing.T) {
			switch {
			case k.size >= long && locktest.Quick():
				t.Skip("takes some seconds; see test-all")
			case k.size == deep && !locktest.Deep():
				t.Skip("takes minutes; see check-deep")
			}
			p := plan(len(k.scripts), tiny(k.scheme), k.loaded...)
			p.Scripts = named(k.scripts, goes...)
			p.Keys = goes
			p.Search.Ticks, p.Search.Crashes = k.ticks, k.crashes
			x := sim.Exhaustive(k.bound)
			x.Limit = 2_000_000
			look(t, p, x)
		})
	}
}

// named puts keys in place of %a and %b.
func named(scripts []string, keys ...int64) []string {
	var out []string
	for _, s := range scripts {
		for i, k := range keys {
			s = strings.ReplaceAll(s, "%"+string(rune('a'+i)), fmt.Sprint(k))
		}
		out = append(out, s)
	}
	return out
}

// TestSearchRandom: drawn schedules of more clients, some of which die, on keys of a table that
// grows from one tiny segment.
func TestSearchRandom(t *testing.T) {
	keys := []int64{0, 1, 2, 3, 4, 5, 6, 7}
	// A key is in the queue after one retry, and no longer after one lonely execution.
	hot := cider.Policy{Scheme: cider.Cider, HotnessThreshold: 1, InitialCredit: 1}
	for _, k := range []struct {
		name           string
		policy         cider.Policy
		clients, calls int
		keys           []int64
		crashes        int
		ops            string
		n              int64
	}{
		{"optimistic", cider.Policy{Scheme: cider.Optimistic}, 4, 5, keys, 0, "iiidugs", 600},
		{"optimistic, two keys", cider.Policy{Scheme: cider.Optimistic}, 4, 5, keys[:2], 0, "iidugs", 600},
		{"spin", cider.Policy{Scheme: cider.Spin}, 4, 5, keys, 0, "iiiduugs", 300},
		{"queue", cider.Policy{Scheme: cider.Queue}, 4, 5, keys, 0, "iiiduugs", 300},
		{"combining", cider.Policy{Scheme: cider.Combining}, 5, 5, keys, 0, "iiiduuugs", 600},
		{"cider", hot, 4, 6, keys[:5], 0, "iiiduuugs", 600},
		{"cider, 16 clients", hot, 16, 4, keys, 0, "iiiduuugs", 60},
		{"cider, 64 clients", hot, 64, 2, keys, 0, "iiiduuugs", 8},
		{"optimistic, deaths", cider.Policy{Scheme: cider.Optimistic}, 4, 5, keys, 2, "iiidugs", 600},
		{"combining, deaths", cider.Policy{Scheme: cider.Combining}, 4, 4, keys[:5], 2, "iiiduuugs", 600},
		{"cider, deaths", hot, 5, 4, keys, 2, "iiiduuugs", 400},
		{"mates", cider.Policy{Scheme: cider.Combining, Local: 2, LocalKeys: 2}, 4, 4, keys[:3], 0, "iiduuugggs", 400},
		{"mates, a split", cider.Policy{Scheme: cider.Cider, Local: 3, LocalKeys: 2, HotnessThreshold: 1, InitialCredit: 1}, 5, 4, keys, 0, "iiiduuggs", 200},
		{"mates, deaths", cider.Policy{Scheme: cider.Combining, Local: 2, LocalKeys: 2}, 4, 4, keys[:3], 2, "iiduuugggs", 400},
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
			t.Run(k.name+"/"+explore.name, func(t *testing.T) {
				t.Parallel()
				cfg := tiny(k.policy.Scheme)
				cfg.Policy, cfg.Segments = k.policy, 16
				var loaded []int64
				if len(k.keys) < 8 { // so that they split what there is
					loaded = []int64{1000, 1001, 1002}
				}
				p := plan(k.clients, cfg, loaded...)
				p.NoSwap = explore.noSwap
				p.Calls, p.Seed, p.Ops, p.Keys, p.Search.Ascending = k.calls, 1, k.ops, k.keys, false
				p.Search.Ticks, p.Search.Crashes = 300, k.crashes
				look(t, p, explore.s)
			})
		}
	}
}
