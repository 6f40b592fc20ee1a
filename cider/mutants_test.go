package cider

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// steady is a Store with leases that never run out: a lock that is reset shows that a message was
// lost. One that is short writes smaller values: a block that is lost, and another that is freed
// twice, are not the same number of words.
type steady struct {
	asMap
	short bool
}

func (m steady) still(done bool, err error) (bool, error) {
	if m.stats.Resets > 0 {
		err = errors.Join(err, kvtest.ErrStill)
	}
	return done, err
}
func (m steady) Delete(key int64) (bool, error) { return m.still(m.asMap.Delete(key)) }
func (m steady) Update(key, value int64) (bool, error) {
	b := data(value)
	if m.short {
		b = b[:8]
	}
	return m.still(m.Store.Update(int(key), b))
}

func (m steady) Get(key int64) (int64, bool, error) {
	b, there, err := m.Search(int(key), nil)
	if err != nil || !there {
		return 0, false, err
	}
	return int64(binary.LittleEndian.Uint64(b)), true, nil // checksums show torn blocks
}

// mutantPlan is a plan for mutants: key 0 is there at first where loaded says so,
// and where the schemes are mixed client 0 does without the queue.
func mutantPlan(cfg Config, scripts []string, loaded, dies, mixed bool) kvtest.Plan {
	p := plan(len(scripts), cfg)
	p.Scripts, p.Search.Ticks, p.Search.MaxDelay = scripts, 1, 1
	if dies {
		p.Search.Ticks, p.Search.Crashes = 8, 1
	}
	if loaded {
		p.Loaded = []int64{0}
	}
	if !dies {
		p.RestAll = func(all []kvtest.Map) error {
			held := make([]int64, len(all))
			for i, m := range all {
				held[i] = int64(m.(steady).heap.Held())
			}
			return all[0].(steady).lost(held)
		}
	}
	whole := p.Open
	p.Open = func(c rma.Comm) (kvtest.Map, error) {
		m, err := whole(c)
		if err != nil {
			return nil, err
		}
		s := m.(asMap)
		if mixed && c.Rank() == 0 {
			s.Sync.cfg.Scheme = Optimistic
		}
		if !dies {
			s.Sync.cfg.Lease = 1 << 50
			m = steady{s, mixed && c.Rank() == 0}
		}
		if loaded && c.Rank() == 0 {
			err = errors.Join(s.Put(0, data(-1)), s.Rest())
		}
		return m, errors.Join(err, c.Barrier())
	}
	return p
}

// TestMutants: the searches find what the generator breaks in a store whose updates are combined.
// The allocator has mutants of its own.
func TestMutants(t *testing.T) {
	combining := Config{Section: 8, Policy: Policy{Scheme: Combining}}
	var uses []kvtest.Use
	for _, k := range []struct {
		name                string
		scripts             []string
		loaded, dies, mixed bool
		bound               int
		part                int64 // of the budget, for all schedules
	}{
		{"inserts", []string{"i0 g0", "i0 g0"}, false, false, false, sim.Unbounded, 0},
		{"two", []string{"u0 g0", "u0 d0"}, true, false, false, 2, 0},
		{"two deletions", []string{"d0 i0", "d0 g0"}, true, false, false, 2, 0},
		{"a key comes again", []string{"d0 g0", "i0 u0"}, true, false, false, 2, 0},
		{"three", []string{"u0", "u0", "u0"}, true, false, false, 2, 500},
		{"three, a deletion", []string{"u0", "u0", "d0"}, true, false, false, 2, 500},
		{"a reader", []string{"u0", "u0", "g0"}, true, false, false, 2, 500},
		{"four", []string{"u0", "u0", "u0", "u0"}, true, false, false, 1, 0},
		{"mixed", []string{"u0", "u0 g0", "d0"}, true, false, true, 2, 500},
		{"a death", []string{"u0 g0", "u0 d0"}, true, true, false, 0, 0},
	} {
		p := mutantPlan(combining, k.scripts, k.loaded, k.dies, k.mixed)
		drawn, some := p, int64(1)
		if len(k.scripts) > 3 {
			some = 30
		}
		drawn.Search.Ticks, drawn.Search.Ascending = 300, false
		uses = append(uses,
			kvtest.Use{Plan: p, Name: k.name + ", dfs", By: kvtest.Bounded(k.bound), Part: k.part, Prompt: !k.dies},
			kvtest.Use{Plan: drawn, Name: k.name + ", random", By: kvtest.Random, Part: some},
			kvtest.Use{Plan: drawn, Name: k.name + ", pct", By: kvtest.PCT, Part: some})
	}
	e := check.Effort{Budget: 20_000, Every: 8, Leave: []string{".ENTRY", ".POOL", ".FREE", ".EVICTED", "Get cider.EPOCH"}}
	kvtest.Mutants(t, "combining", e, equivalentMutants, uses...)
}

// Reasons of equivalentMutants.
const (
	named     = "a message names the entry that it is for"
	once      = "the word changes once while the client waits"
	looks     = "the client looks at the word after it"
	costs     = "0 is taken for the word, and the CompareAndSwap finds what it is"
	counts    = "EPOCH says that a queue lives: one that is reset too early costs tries"
	selfHeals = "a lock that gets a wrong version, or loses a queue, is reset again"
	chain     = "not caught: the executor lets the lock go before the chain has come, queues again, and the chain's last message covers another one"
)

const (
	put, swap, awaits = "Put cider mail.", "CompareAndSwap cider.", "Await cider mail."
)

// equivalentMutants are those of updates and of deletions that change nothing, or are not caught.
var equivalentMutants = slices.Concat(
	equivalentIn('u'), equivalentIn('d'),
	[]check.Equivalent{
		{Phase: 'i', Step: "Flush of Get cider.POINTER", Mutation: check.NoFlush, Why: costs},
		{Phase: 'd', Step: put + "NEXT", Before: "Flush of Get cider.POINTER", Mutation: check.Late, Why: "nobody can be behind a deletion before it has changed the pointer"},
		{Phase: 'd', Step: awaits + "STATUS", Before: "Flush of Get cider.LOCK", Mutation: check.NoWait, Why: "a deletion is the last of its queue: it goes on as if the holder had died"},
		{Phase: 'd', Step: awaits + "STATUS", Before: "Flush of Put cider mail.STATUS", Mutation: check.NoWait, Why: chain},
		{Phase: 'u', Step: awaits + "NEXT", Before: "Flush of Get cider.LOCK", Mutation: check.AnyChange, Why: once},
		{Phase: 'u', Step: awaits + "NEXT", Before: "Await cider mail.STATUS", Mutation: check.AnyChange, Why: once},
	})

func equivalentIn(op check.Phase) []check.Equivalent {
	return []check.Equivalent{
		{Phase: op, Step: put + "NEXT", Before: "Flush of Get cider.POINTER", Mutation: check.Forget, Why: named},
		{Phase: op, Step: put + "STATUS", Before: "Put cider mail.NEXT", Mutation: check.Forget, Why: named},
		{Phase: op, Step: put + "STATUS", Before: "Accumulate SUM cider.EPOCH", Mutation: check.Late, Why: "the hand-over comes a flush later"},
		{Phase: op, Step: awaits + "NEXT", Before: "Flush of CompareAndSwap cider.LOCK", Mutation: check.AnyChange, Why: once},
		{Phase: op, Step: awaits + "STATUS", Before: "Flush of", Mutation: check.AnyChange, Why: once},
		{Phase: op, Step: "Await cider.POINTER", Before: "Flush of Get cider.POINTER", Mutation: check.AnyChange, Why: looks},
		{Phase: op, Step: "Accumulate SUM cider.EPOCH", Mutation: check.Forget, Why: counts},
		{Phase: op, Step: "Accumulate SUM cider.EPOCH", Mutation: check.Torn, Why: counts},
		{Phase: op, Step: swap + "LOCK", Before: "Flush of Get cider.POINTER", Mutation: check.Torn, Why: selfHeals},
		{Phase: op, Step: swap + "LOCK", Before: "Flush of Get cider.POINTER", Mutation: check.Blind, Why: selfHeals},
		{Phase: op, Step: swap + "LOCK", Before: "Flush of Get cider.POINTER", Mutation: check.Trusting, Why: "a client that cannot reset the lock begins again, too"},
		{Phase: op, Step: "Flush of Flush of Put cider mail.STATUS", Mutation: check.NoFlush, Why: "EPOCH changes with a later flush"},
		{Phase: op, Step: "Flush of Get cider mail.NEXT", Mutation: check.NoFlush, Why: costs},
		{Phase: op, Step: put + "STATUS", Before: "Flush of CompareAndSwap cider.POINTER", Mutation: check.Forget, Why: chain},
	}
}
