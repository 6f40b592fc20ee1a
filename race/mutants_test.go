package race

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/rma"
)

// sized is a Table whose values have several sizes: a block that is lost, and another that is freed
// twice, are not the same number of words.
type sized struct{ asMap }

func (m sized) Update(key, value int64) (bool, error) {
	size := 32 * ((value + value/100) % 4)
	return m.Table.Update(number(key), append(number(value), make([]byte, size)...))
}

// lost is an error if words are given out, less those that clients hold, that are not in the blocks
// of slots.
func lost(all []kvtest.Map) error {
	t := all[0].(sized).Table
	u, err := t.Usage()
	if err != nil {
		return err
	}
	used := u.Taken - u.Pooled
	for _, m := range all {
		used -= int64(m.(sized).heap.Held())
	}
	bucket := make([]int64, t.width)
	for segment := range t.cfg.Segments {
		host, base := t.place(segment)
		for b := range t.cfg.Groups * groupBuckets {
			t.w.GetBulk(bucket, host, base+b*t.width)
			if err := t.w.Flush(host); err != nil {
				return err
			}
			for _, w := range bucket[1:] {
				if !empty(w) {
					_, words := t.block(w)
					used -= int64(t.heap.Size(words))
				}
			}
		}
	}
	if used != 0 {
		return fmt.Errorf("%w: %d words", errLost, used)
	}
	return nil
}

var errLost = errors.New("memory is lost")

// TestMutants: the searches find what the generator breaks in a table whose updates are optimistic
// and that is not split.
// The allocator, and the queues of package cider, have mutants of their own.
func TestMutants(t *testing.T) {
	goes := pair(0, 1)
	var uses []kvtest.Use
	for _, k := range []struct {
		name    string
		loaded  []int64
		scripts []string
		bound   int
		part    int64 // of the budget, for all schedules
	}{
		{"all operations", nil, []string{"i%a d%a", "u%a g%a"}, 2, 0},
		{"two inserts", nil, []string{"i%a g%a", "i%a g%a"}, 2, 200},
		{"two updates", goes[:1], []string{"u%a", "u%a u%a"}, 3, 500},
		{"a deletion", goes[:1], []string{"u%a u%a", "d%a"}, 3, 1000},
		{"updates", goes[:1], []string{"u%a g%a", "u%a d%a"}, 2, 0},
		{"inserts into two slots", goes[1:], []string{"i%a g%a", "d%b i%a"}, 1, 0},
	} {
		cfg := tiny(cider.Optimistic)
		cfg.Most = 112
		p := plan(2, cfg, k.loaded...)
		whole := p.Open
		p.Open = func(c rma.Comm) (kvtest.Map, error) {
			m, err := whole(c)
			if err != nil {
				return nil, err
			}
			return sized{m.(asMap)}, nil
		}
		p.RestAll = lost
		p.Scripts, p.Keys, p.Search.Ticks = named(k.scripts, goes...), goes, 1
		drawn := p
		drawn.Search.Ticks, drawn.Search.Ascending = 300, false
		uses = append(uses,
			kvtest.Use{Plan: p, Name: k.name + ", dfs", By: kvtest.Bounded(k.bound), Part: k.part},
			kvtest.Use{Plan: drawn, Name: k.name + ", random", By: kvtest.Random, Part: 5})
	}
	e := check.Effort{Budget: 20_000, Every: 4, Leave: []string{".ENTRY", ".POOL", ".FREE", ".EVICTED", "Get race.EPOCH"}}
	kvtest.Mutants(t, "race", e, equivalentMutants, uses...)
}

const fingerprint = "not caught: what was read before is of another key with the same fingerprint"

var equivalentMutants = []check.Equivalent{
	{Phase: 'u', Step: "Flush of GetBulk race.HEAP", Mutation: check.NoFlush, Why: fingerprint},
	{Phase: 'd', Step: "Flush of GetBulk race.HEAP", Mutation: check.NoFlush, Why: fingerprint},
}
