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
	return int64(binary.LittleEndian.Uint64(b)), true, nil
}

func (m asMap) Set(key, value int64) error     { return m.Put(number(key), number(value)) }
func (m asMap) Delete(key int64) (bool, error) { return m.Table.Delete(number(key)) }
func (m asMap) Insert(key, value int64) (bool, error) {
	return m.Table.Insert(number(key), number(value))
}
func (m asMap) Update(key, value int64) (bool, error) {
	return m.Table.Update(number(key), number(value))
}

// keysOf are the first n numbers from from on whose hashes end with bits.
func keysOf(from, n int64, mask, bits uint64) (out []int64) {
	for k := from; int64(len(out)) < n; k++ {
		if hash(number(k))&mask == bits {
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
		p.Search.Node[i] = i
	}
	p.Search.MemoryNodes, p.Search.Ascending, p.Search.MaxDelay = 1, true, 1
	cfg.Most, cfg.Words, cfg.Lease, cfg.Hot, cfg.BackoffLast = 16, 1<<14, sim.DefaultTickNs, 2, -1
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
	if r.Stats.OutOfTicks == r.Stats.Executions {
		t.Error("every execution needs more ticks")
	}
	t.Logf("%d states, %d executions, %d out of ticks, longest %d", r.States, r.Stats.Executions+r.Stats.Cut, r.Stats.OutOfTicks, r.Stats.Longest)
}

// How long a search takes, from those of every test to those of check-deep.
const (
	short = iota
	long
	deep
)

// hot switches a key to the queue after one retry, and back after one lonely execution.
var hot = cider.Policy{Scheme: cider.Cider, HotnessThreshold: 1, InitialCredit: 1}

// TestSearch: all schedules of two and three clients, up to a number of preemptions, on one key
// and on two, with and without a split; histories are linearizable.
func TestSearch(t *testing.T) {
	go1, go2 := keysOf(0, 2, 1, 1)[0], keysOf(0, 2, 1, 1)[1]
	stays := keysOf(1000, 3, 1, 0)
	full := append(stays[:2:2], go1) // one segment, and one of its keys goes when it is split
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
		{"two inserts", cider.Optimistic, nil, []string{"i%a", "i%a"}, 2, 0, 1, short},
		{"two inserts", cider.Optimistic, nil, []string{"i%a", "i%a"}, 2, 0, 3, long},
		{"three inserts", cider.Optimistic, nil, []string{"i%a", "i%a", "i%a"}, 2, 0, 1, long},
		{"all operations", cider.Optimistic, nil, []string{"i%a d%a", "u%a g%a"}, 2, 0, 2, short},
		{"inserts and deletes", cider.Optimistic, nil, []string{"i%a d%a", "i%a g%a"}, 2, 0, 1, short},
		{"inserts and deletes", cider.Optimistic, nil, []string{"i%a d%a", "i%a g%a"}, 2, 0, 2, long},
		{"all operations", cider.Combining, nil, []string{"i%a d%a", "u%a g%a"}, 2, 0, 1, short},
		{"split and search", cider.Optimistic, full, []string{"i%b", "g%a g%a"}, 2, 0, 1, short},
		{"split and search", cider.Optimistic, full, []string{"i%b", "g%a g%a"}, 2, 0, 2, long},
		{"split and update", cider.Optimistic, full, []string{"i%b", "u%a g%a"}, 2, 0, 1, short},
		{"split and update", cider.Optimistic, full, []string{"i%b", "u%a g%a"}, 2, 0, 2, long},
		{"split and delete", cider.Optimistic, full, []string{"i%b", "d%a i%a"}, 2, 0, 1, short},
		{"split and update", cider.Combining, full, []string{"i%b", "u%a g%a"}, 2, 0, 1, short},
		{"split and delete", cider.Combining, full, []string{"i%b", "d%a i%a"}, 2, 0, 1, long},
	} {
		t.Run(fmt.Sprintf("%s, %v, %d", k.name, k.scheme, k.bound), func(t *testing.T) {
			switch {
			case k.size >= long && locktest.Quick():
				t.Skip("takes some seconds; see test-all")
			case k.size == deep && !locktest.Deep():
				t.Skip("takes minutes; see check-deep")
			}
			p := plan(len(k.scripts), tiny(k.scheme), k.loaded...)
			p.Scripts = named(k.scripts, go1, go2)
			p.Keys = []int64{go1, go2}
			p.Search.Ticks, p.Search.Crashes = k.ticks, k.crashes
			look(t, p, sim.Exhaustive(k.bound))
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
