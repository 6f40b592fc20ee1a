// Package dhttest checks the hashtable of package dht under rma/sim: that histories are
// linearizable, that no key is there twice, and that every execution ends. It is a test
// library, as package check is for locks.
package dhttest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/internal/handle"
	"github.com/rmalock/rmalock/internal/history"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// ErrHistory is wrapped where what the ranks got from a hashtable cannot be explained
// by operations done one after the other.
var ErrHistory = history.Err

// A Plan is a use of the hashtable to check: every rank does some operations, drawn at
// random, on a few keys. The smaller the table, the more chains, lost races and ErrFull
// there are.
type Plan struct {
	Info    lock.Info // of Config.Locks; without Open, atomics alone
	Ranks   int
	Calls   int    // operations of each rank
	Seed    uint64 // of the operations drawn
	Volumes int    // as in dht.Config
	Slots   int
	Heap    int
	Keys    []int64 // nil for 0, 1, 2 and -1
	Node    []int   // the node of each rank; nil for one node
	Faults  []sim.Fault
	// Ascending is as in sim.Search.
	Ascending bool
	Combine   bool // as in dht.Config
	Adds      bool // all operations are Adds
	// Disturb, if not nil, decorates the Comm on which a rank opens the table.
	Disturb func(c rma.Comm) rma.Comm

	reopen bool // the table is opened for each execution
}

func (p *Plan) validate() error {
	if p.Keys == nil {
		p.Keys = []int64{0, 1, 2, -1}
	}
	if p.Node == nil && p.Ranks > 0 && p.Ranks <= 1<<16 {
		p.Node = make([]int, p.Ranks)
	}
	switch {
	case p.Ranks < 1 || len(p.Node) != p.Ranks:
		return fmt.Errorf("dhttest: %d ranks on nodes %v, want 1 to %d, and the node of each: %w", p.Ranks, p.Node, 1<<16, lock.ErrConfig)
	case p.Calls < 1:
		return fmt.Errorf("dhttest: %d operations per rank, want at least 1: %w", p.Calls, lock.ErrConfig)
	case len(p.Keys) == 0:
		return fmt.Errorf("dhttest: no keys: %w", lock.ErrConfig)
	}
	return nil
}

// A Result is what a check found.
type Result struct {
	Stats   sim.Stats
	States  int  // that Exhaustive saw
	Whole   bool // Exhaustive came to its end
	Failure *sim.Failure
}

// Run checks a hashtable under the schedules of s: that the histories are
// linearizable (ErrHistory), that no key is there twice, and that it ends.
func Run(p Plan, s sim.Scheduler) (Result, error) {
	if err := p.validate(); err != nil {
		return Result{}, err
	}
	x, ok := s.(*sim.ExhaustiveSearch)
	stats, f := p.search().Run(s, p.body(ok))
	r := Result{Stats: stats, Failure: f}
	if ok {
		r.States, r.Whole = x.States(), !x.Left && f == nil
	}
	return r, nil
}

// Replay runs a plan under one schedule and returns its trace, and what went wrong.
func Replay(p Plan, schedule string) ([]sim.Event, *sim.Failure, error) {
	if err := p.validate(); err != nil {
		return nil, nil, err
	}
	return p.search().Replay(schedule, p.body(false))
}

// Shrink looks for a schedule of the same error that is shorter to tell, as check.Shrink
// does.
func Shrink(p Plan, f *sim.Failure, tries int) (*sim.Failure, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	return p.search().Shrink(f, tries, p.body(false))
}

func (p *Plan) search() sim.Search {
	return sim.Search{Node: p.Node, Faults: p.Faults, Ascending: p.Ascending}
}

// kinds are the operations that are drawn from.
func (p *Plan) kinds() string {
	if p.Adds {
		return "aaaaa"
	}
	return "iiaag"
}

// calls draws the operations of a rank.
func (p *Plan) calls(rank int) []history.Call {
	rng := rand.New(rand.NewPCG(p.Seed, uint64(rank)^0xD47))
	out := make([]history.Call, p.Calls)
	for i := range out {
		c := history.Call{What: p.kinds()[rng.IntN(5)], Key: p.Keys[rng.IntN(len(p.Keys))]}
		if c.What != history.Get {
			c.Value = int64(rng.IntN(5) - 2)
			if rng.IntN(4) == 0 {
				c.Value += 1 << 62 // does not fit into a slot
			}
		}
		out[i] = c
	}
	return out
}

// opened is what a rank has opened.
type opened struct {
	table *dht.Table
	locks lock.Table       // or nil
	saved *handle.Snapshot // of both, if they are opened once for all executions
}

// open opens the table, and its locks if it has any.
func (p *Plan) open(c rma.Comm) (o opened, err error) {
	cfg := dht.Config{Volumes: p.Volumes, Slots: p.Slots, Heap: p.Heap, Combine: p.Combine}
	if p.Info.Open != nil {
		n := p.Volumes
		if n == 0 {
			n = p.Ranks
		}
		if cfg.Locks, err = p.Info.Open(c, n, 0); err != nil {
			return o, err
		}
	}
	o.locks = cfg.Locks
	if p.Disturb != nil {
		c = p.Disturb(c)
	}
	o.table, err = dht.New(c, cfg)
	return o, err
}

// body is what every rank runs. states says that the search compares states.
func (p *Plan) body(states bool) func(rma.Comm) error {
	all := make([]opened, p.Ranks)
	h := history.New(p.Ranks)
	if states {
		h.Compare()
	}
	scripts := make([][]history.Call, p.Ranks)
	for r := range scripts {
		scripts[r] = p.calls(r)
	}
	return func(c rma.Comm) error {
		s, _ := sim.Of(c)
		mine := &all[c.Rank()]
		if mine.saved != nil {
			mine.saved.Restore()
		} else {
			o, err := p.open(c)
			if err != nil {
				return err
			}
			if saved, ok := handle.TakeSnapshot(nil, o.table, o.locks); ok && !p.reopen {
				o.saved = saved
				s.Keep()
				s.Memoise(h)
			}
			*mine = o
		}
		table, locks := mine.table, mine.locks
		if c.Rank() == 0 {
			s.Start(h.Reset)
		}
		if err := s.Begin(); err != nil {
			return err
		}
		s.Extra(h.Hash)
		// Between two operations a rank's state is that of its locks and its position in the
		// script. Its answers are in the history.
		home := func(i int) {
			switch {
			case !states:
			case locks != nil:
				s.Home(func() uint64 { return handle.Fingerprint(locks)*64 + uint64(i) })
			default:
				s.Home(func() uint64 { return uint64(i) })
			}
		}
		for i, k := range scripts[c.Rank()] {
			home(i)
			s.Sleep(1) // other ranks may come first
			s.Effect(s.Visible)
			if err := perform(h, s, table, k); err != nil {
				return err
			}
			s.Effect(s.Visible)
		}
		home(len(scripts[c.Rank()]))
		if err := s.End(); err != nil {
			return err
		}
		return p.rest(s, h, table)
	}
}

// perform does an operation and records it.
func perform(h *history.Record, s *sim.Comm, table *dht.Table, c history.Call) (err error) {
	var asked any = c
	s.Effect(func() { h.Called(s.WorldRank(), asked) })
	s.Mark("calls %c(%d, %d)", c.What, c.Key, c.Value)
	var a history.Answer
	switch c.What {
	case history.Insert:
		a.OK, err = table.Insert(c.Key, c.Value)
	case history.Add:
		a.Value, err = table.Add(c.Key, c.Value)
	case history.Get:
		a.Value, a.OK, err = table.Lookup(c.Key)
	}
	if errors.Is(err, dht.ErrFull) {
		a.Full, err = true, nil
	}
	var told any = a
	s.Effect(func() { h.Returned(s.WorldRank(), told) })
	s.Mark("has %s", history.Describe(c, a))
	return err
}

// rest checks the table when all ranks have finished, and the history.
func (p *Plan) rest(s *sim.Comm, h *history.Record, table *dht.Table) error {
	found := map[int64]bool{}
	err := table.Range(func(key, _ int64) error {
		if found[key] {
			return fmt.Errorf("%w: key %d is there twice", ErrHistory, key)
		}
		found[key] = true
		return nil
	})
	if err != nil {
		return err
	}
	if s.Rank() == 0 {
		for _, k := range p.Keys {
			if err := perform(h, s, table, history.Call{What: history.Get, Key: k}); err != nil {
				return err
			}
		}
		if err := h.Verdict(); err != nil {
			return err
		}
	}
	return s.Barrier()
}
