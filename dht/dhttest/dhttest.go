// Package dhttest checks the hashtable of package dht under rma/sim: that histories are
// linearizable, that no key is there twice, and that every execution ends. It is a test
// library, as package check is for locks.
package dhttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/internal/handle"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// ErrHistory is wrapped where what the ranks got from a hashtable cannot be explained
// by operations done one after the other.
var ErrHistory = errors.New("the history of the hashtable is not linearizable")

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

// A call is an operation on the table, an answer its result.
type (
	call struct {
		what       byte // 'I'nsert, 'A'dd, 'L'ookup
		key, value int64
	}
	answer struct {
		value int64
		ok    bool // of Lookup: there; of Insert: created
		full  bool
	}
	keyState struct { // the state of one key
		there bool
		value int64
	}
)

// kinds are the operations that are drawn from.
func (p *Plan) kinds() string {
	if p.Adds {
		return "AAAAA"
	}
	return "IIAAL"
}

// calls draws the operations of a rank.
func (p *Plan) calls(rank int) []call {
	rng := rand.New(rand.NewPCG(p.Seed, uint64(rank)^0xD47))
	out := make([]call, p.Calls)
	for i := range out {
		c := call{what: p.kinds()[rng.IntN(5)], key: p.Keys[rng.IntN(len(p.Keys))]}
		if c.what != 'L' {
			c.value = int64(rng.IntN(5) - 2)
			if rng.IntN(4) == 0 {
				c.value += 1 << 62 // does not fit into a slot
			}
		}
		out[i] = c
	}
	return out
}

// model is a map, key by key: a history is linearizable if each key's is.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		var keys []int64
		for _, o := range history {
			k := o.Input.(call).key
			i := slices.Index(keys, k)
			if i < 0 {
				i = len(keys)
				keys, parts = append(keys, k), append(parts, nil)
			}
			parts[i] = append(parts[i], o)
		}
		return parts
	},
	Init: func() any { return keyState{} },
	Step: func(s, in, out any) (bool, any) {
		was, c, a := s.(keyState), in.(call), out.(answer)
		switch {
		case a.full: // refused: only a key that is absent is
			return !was.there, was
		case c.what == 'I' && a.ok:
			return !was.there, keyState{true, c.value}
		case c.what == 'I':
			return was.there, was
		case c.what == 'A':
			return a.value == was.value, keyState{true, was.value + c.value}
		}
		return a.ok == was.there && a.value == was.value, was
	},
	DescribeOperation: func(in, out any) string {
		c, a := in.(call), out.(answer)
		return fmt.Sprintf("%c(%d, %d) -> %d, %v, full: %v", c.what, c.key, c.value, a.value, a.ok, a.full)
	},
}

// A record is the history of one execution.
type record struct {
	did  []porcupine.Operation
	at   []int // by rank: its last operation there
	time int64
	good map[uint64]bool // sums of histories that were found linearizable
}

func (h *record) reset() { h.did, h.time = h.did[:0], 0 }

// Save is of sim.Snapshotter.
func (h *record) Save(into any) any {
	s, ok := into.(*record)
	if !ok {
		s = &record{}
	}
	s.did, s.at, s.time = append(s.did[:0], h.did...), append(s.at[:0], h.at...), h.time
	return s
}

// Restore is of sim.Snapshotter.
func (h *record) Restore(from any) {
	s := from.(*record)
	h.did, h.at, h.time = append(h.did[:0], s.did...), append(h.at[:0], s.at...), s.time
}

// called notes that a rank begins an operation, with a call. The order among calls and
// returns is what matters.
func (h *record) called(rank int, c any) {
	h.time++
	h.at[rank] = len(h.did)
	h.did = append(h.did, porcupine.Operation{ClientId: rank, Input: c, Call: h.time, Return: -1})
}

// returned notes that the operation has ended, with an answer.
func (h *record) returned(rank int, a any) {
	h.time++
	o := &h.did[h.at[rank]]
	o.Output, o.Return = a, h.time
}

// hash is the hash of the history so far, the same for histories with the same order of
// calls after returns.
func (h *record) hash() uint64 {
	sum := uint64(0)
	for i := range h.did {
		o := &h.did[i]
		x := uint64(14695981039346656037)
		word := func(v uint64) { x = (x ^ v) * 1099511628211; x ^= x >> 31 }
		c := o.Input.(call)
		word(uint64(o.ClientId))
		word(uint64(c.what))
		word(uint64(c.key))
		word(uint64(c.value))
		if o.Return >= 0 {
			a := o.Output.(answer)
			word(uint64(a.value))
			word(map[bool]uint64{false: 2, true: 3}[a.ok])
			word(map[bool]uint64{false: 2, true: 3}[a.full])
		}
		before := uint64(0) // operations that had returned when it began, in any order
		for j := range h.did {
			if q := &h.did[j]; q.Return >= 0 && q.Return < o.Call {
				before += 0x9E3779B97F4A7C15 ^ uint64(q.ClientId+1)*0xD6E8FEB86659FD93
			}
		}
		word(before)
		sum += x ^ x>>29
	}
	return sum
}

// verdict is nil for a linearizable history.
func (h *record) verdict() error {
	sum := h.hash()
	if h.good[sum] {
		return nil
	}
	if porcupine.CheckOperations(model, h.did) {
		if len(h.good) < 1<<20 {
			h.good[sum] = true
		}
		return nil
	}
	var b strings.Builder
	for _, o := range h.did {
		fmt.Fprintf(&b, "; rank %d, %d to %d: %s", o.ClientId, o.Call, o.Return, model.DescribeOperation(o.Input, o.Output))
	}
	return fmt.Errorf("%w: %s", ErrHistory, strings.TrimPrefix(b.String(), "; "))
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
	h := &record{good: map[uint64]bool{}, at: make([]int, p.Ranks)}
	scripts := make([][]call, p.Ranks)
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
			s.Start(h.reset)
		}
		if err := s.Begin(); err != nil {
			return err
		}
		s.Extra(h.hash)
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
			if err := h.perform(s, table, k); err != nil {
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
func (h *record) perform(s *sim.Comm, table *dht.Table, c call) (err error) {
	var asked any = c
	s.Effect(func() { h.called(s.WorldRank(), asked) })
	s.Mark("calls %c(%d, %d)", c.what, c.key, c.value)
	var a answer
	switch c.what {
	case 'I':
		a.ok, err = table.Insert(c.key, c.value)
	case 'A':
		a.value, err = table.Add(c.key, c.value)
	case 'L':
		a.value, a.ok, err = table.Lookup(c.key)
	}
	if errors.Is(err, dht.ErrFull) {
		a.full, err = true, nil
	}
	var told any = a
	s.Effect(func() { h.returned(s.WorldRank(), told) })
	s.Mark("has %s", model.DescribeOperation(c, a))
	return err
}

// rest checks the table when all ranks have finished, and the history.
func (p *Plan) rest(s *sim.Comm, h *record, table *dht.Table) error {
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
			if err := h.perform(s, table, call{what: 'L', key: k}); err != nil {
				return err
			}
		}
		if err := h.verdict(); err != nil {
			return err
		}
	}
	return s.Barrier()
}
