package race

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/cider"
	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
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
	buckets := make([]int64, t.cfg.Segments*t.cfg.Groups*groupBuckets*t.width) // all on one host
	t.w.GetBulk(buckets, 0, 0)
	if err := t.w.Flush(0); err != nil {
		return err
	}
	for i, w := range buckets {
		if i%t.width > 0 && !empty(w) {
			_, words := t.block(w)
			used -= int64(t.heap.Size(words))
		}
	}
	if used != 0 {
		return fmt.Errorf("%w: %d words", errLost, used)
	}
	return nil
}

var errLost = errors.New("memory is lost")

// sizedPlan is a check of a table of sized values, whose memory is counted at rest.
func sizedPlan(clients int, scheme cider.Scheme, loaded []int64) kvtest.Plan {
	cfg := tiny(scheme)
	cfg.Most, cfg.Segments = 112, 16
	p := plan(clients, cfg, loaded...)
	whole := p.Open
	p.Open = func(c rma.Comm) (kvtest.Map, error) {
		m, err := whole(c)
		if err != nil {
			return nil, err
		}
		return sized{m.(asMap)}, nil
	}
	p.RestAll = lost
	p.Search.Ticks = 1
	return p
}

// ending is keys whose hashes end with some bits, of two.
func ending(bits ...uint64) (out []int64) {
	t := &Table{cfg: Config{Groups: 1}}
	for k := int64(0); len(out) < len(bits); k++ {
		if t.aim(number(k)); t.to.hash&3 == bits[len(out)] {
			out = append(out, k)
		}
	}
	return out
}

// alike is two keys with the same fingerprint.
func alike() []int64 {
	t, seen := &Table{cfg: Config{Groups: 1}}, map[int64]int64{}
	for k := int64(0); ; k++ {
		t.aim(number(k))
		if other, there := seen[t.to.print]; there {
			return []int64{other, k}
		}
		seen[t.to.print] = k
	}
}

// TestMutants: the searches find what the generator breaks in a table, whose updates are
// optimistic or combined, and that is split.
// The allocator, and the queues of package cider, have mutants of their own.
func TestMutants(t *testing.T) {
	goes, stays := pair(0, 1), pair(1000, 0)
	full := []int64{stays[0], goes[0], stays[1]}             // one segment, and one of its keys goes when it is split
	two := append(slices.Clone(goes), pair(goes[1]+1, 1)...) // keys that go
	// A second split follows, of the new segment or of the old one.
	child, same, again := ending(1, 1, 3, 3), ending(0, 0, 2, 2), ending(1, 2, 2, 2, 0)
	three := func(n int) []int64 { return append(slices.Clone(two[:n]), stays[0]) }
	var uses []kvtest.Use
	for _, k := range []struct {
		name         string
		scheme       cider.Scheme
		keys, loaded []int64
		scripts      []string
		bound        int   // of all schedules; -1 for none
		part         int64 // of the budget, for all schedules
	}{
		{"keys alike", cider.Optimistic, alike(), nil, []string{"i%a u%a d%a i%b u%b d%b i%a d%a i%b d%b", ""}, 0, 1},
		{"all operations", cider.Optimistic, goes, nil, []string{"i%a d%a", "u%a g%a"}, 2, 100},
		{"two inserts", cider.Optimistic, goes, nil, []string{"i%a g%a", "i%a g%a"}, 2, 200},
		{"inserts that follow", cider.Optimistic, goes, nil, []string{"i%b i%a", "g%b i%a"}, 2, 200},
		{"two updates", cider.Optimistic, goes, goes[:1], []string{"u%a", "u%a u%a"}, 3, 500},
		{"a deletion", cider.Optimistic, goes, goes[:1], []string{"u%a u%a", "d%a"}, 3, 1000},
		{"updates", cider.Optimistic, goes, goes[:1], []string{"u%a g%a", "u%a d%a"}, 2, 100},
		{"inserts into two slots", cider.Optimistic, goes, goes[1:], []string{"i%a g%a", "d%b i%a"}, 1, 100},

		{"split and update", cider.Optimistic, goes, full, []string{"i%b u%a g%a", "u%a g%a"}, 1, 100},
		{"split and delete", cider.Optimistic, goes, full, []string{"i%b u%a", "d%a i%a"}, 1, 100},
		{"split by two", cider.Optimistic, goes, full, []string{"i%b u%a", "i%b d%a"}, 1, 100},
		{"split, queue", cider.Combining, goes, full, []string{"i%b u%a", "u%a g%a"}, 1, 100},
		{"split and delete, queue", cider.Combining, goes, full, []string{"i%b u%a", "d%a i%a"}, 1, 100},
		{"three, queue", cider.Combining, goes, full, []string{"i%b", "u%a", "d%a"}, -1, 0},
		{"the new one too", cider.Optimistic, child, child[:3], []string{"i%d u%a", "u%a"}, -1, 0},
		{"the new one too, delete", cider.Optimistic, child, child[:3], []string{"i%d u%b", "d%a"}, -1, 0},
		{"the new one too, insert", cider.Optimistic, child, child[:3], []string{"i%d u%d", "i%d u%a"}, -1, 0},
		{"the old one again", cider.Optimistic, again, again[:3], []string{"i%d i%e", "u%a"}, -1, 0},
		{"the old one again, delete", cider.Optimistic, again, again[:3], []string{"i%d i%e", "d%a"}, -1, 0},
		{"the old one again, insert", cider.Optimistic, same, same[:3], []string{"i%d u%d", "i%d u%a"}, -1, 0},
		{"three, updates", cider.Optimistic, two, three(2), []string{"i%c", "u%a", "u%b"}, -1, 0},
		{"three, a deletion", cider.Optimistic, two, three(2), []string{"i%c", "u%a", "d%b"}, -1, 0},
		{"three, a key comes again", cider.Optimistic, two, three(2), []string{"i%c", "d%a i%a", "u%b"}, -1, 0},
		{"three, a key comes again, a deletion", cider.Optimistic, two, three(2), []string{"i%c", "d%a i%a", "d%b"}, -1, 0},
		{"three, a split, a key comes again", cider.Optimistic, goes, full, []string{"i%b", "d%a", "i%a"}, -1, 0},
		{"three, inserts", cider.Optimistic, two, three(1), []string{"i%b", "i%c", "u%a"}, -1, 0},
		{"three, inserts, a deletion", cider.Optimistic, two, three(1), []string{"i%b", "i%c", "d%a"}, -1, 0},
	} {
		p := sizedPlan(len(k.scripts), k.scheme, k.loaded)
		p.Scripts, p.Keys = named(k.scripts, k.keys...), k.keys
		drawn := p
		drawn.Search.Ticks, drawn.Search.Ascending = 300, false
		if k.bound >= 0 {
			uses = append(uses, kvtest.Use{Plan: p, Name: k.name + ", dfs", By: kvtest.Bounded(k.bound), Part: k.part})
		}
		pct := kvtest.PCT
		if len(k.scripts) > 2 {
			pct = func(executions int64) sim.Scheduler { return sim.PCT(1, 5, 0, executions) }
		}
		uses = append(uses,
			kvtest.Use{Plan: drawn, Name: k.name + ", random", By: kvtest.Random, Part: 10},
			kvtest.Use{Plan: drawn, Name: k.name + ", pct", By: pct, Part: 25})
	}
	for _, s := range []cider.Scheme{cider.Optimistic, cider.Combining} {
		p := sizedPlan(4, s, nil)
		p.Calls, p.Seed, p.Ops, p.Search.Ascending, p.Search.Ticks = 5, 1, "iiidug", false, 300
		p.Keys = []int64{0, 1, 2, 3, 4, 5, 6, 7}
		uses = append(uses, kvtest.Use{Plan: p, Name: fmt.Sprint("four, ", s, ", random"), By: kvtest.Random, Part: 5})
	}
	e := check.Effort{Budget: 20_000, Every: 12, Leave: []string{".ENTRY", ".POOL", ".FREE", ".EVICTED", "Get race.EPOCH", "mail.", ".LOCK", ".EPOCH", "Await race."}}
	kvtest.Mutants(t, "race", e, equivalentMutants(), uses...)
}

// equivalentMutants are those that change nothing, or are not caught.
func equivalentMutants() (out []check.Equivalent) {
	const (
		unused    = "the result is not used: any client may have done it"
		directory = "the directory only says who splits alone: a split that is done again changes nothing, and one that is left is finished by the next"
		helps     = "not caught, and caught in an insert: the client helps with a split, and meanwhile "
		queued    = "the queue of the slot lets one client at a time take a frozen key out"
	)
	const swap, header = "CompareAndSwap race.BUCKET", "CompareAndSwap race.DIRECTORY"
	at := func(op check.Phase, step, before, why string, mistakes ...check.Mutation) {
		for _, m := range mistakes {
			out = append(out, check.Equivalent{Phase: op, Step: step, Before: before, Mutation: m, Why: why})
		}
	}
	for _, op := range []check.Phase{'i', 'u', 'd'} {
		at(op, swap, swap, unused, check.Trusting)
		at(op, swap, "Flush of Get race.BUCKET", unused, check.Trusting)
	}
	for _, op := range []check.Phase{'u', 'd'} {
		at(op, "GetBulk race.BUCKET", swap, helps+"a third one inserts into a slot that a fourth one has emptied", check.NoFence)
		at(op, swap, "Flush of Get race.BUCKET", helps+"the segment is split twice", check.Torn, check.Blind)
		at(op, swap, "Flush of Get race.HEAP", helps+"a third one updates the key that is frozen", check.Trusting)
		at(op, swap, "Flush of GetBulk race.BUCKET", helps+"a third one commits what it has put there", check.Torn, check.Trusting)
	}
	at('u', swap, swap, helps+"the new segment is split", check.Torn)
	at('d', swap, "Await cider mail.STATUS", "not caught: the key is frozen just when the deletion has its turn", check.Torn)
	at('i', header, "", directory, check.Torn, check.Blind, check.Trusting)
	at('i', "Flush of "+header, "", directory, check.NoFlush)
	at('i', swap, "Await cider mail.STATUS", queued, check.Torn, check.Blind, check.Trusting)
	at('i', swap, "Flush of MaskedSwap race.LOCK", queued, check.Torn, check.Blind, check.Trusting)
	return out
}
