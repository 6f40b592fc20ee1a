package check

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// ErrHistory is wrapped where what the ranks got from a hashtable cannot be explained
// by operations done one after the other.
var ErrHistory = errors.New("the history of the hashtable is not linearizable")

// A DHTPlan says what is checked of the hashtable: every rank does some operations,
// drawn at random, on a few keys. The smaller the table, the more chains, lost races
// and ErrFull there are.
type DHTPlan struct {
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

	reopen bool // the table is opened anew for each execution
}

func (p *DHTPlan) validate() error {
	if p.Keys == nil {
		p.Keys = []int64{0, 1, 2, -1}
	}
	if p.Node == nil && p.Ranks > 0 && p.Ranks <= 1<<16 {
		p.Node = make([]int, p.Ranks)
	}
	switch {
	case p.Ranks < 1 || len(p.Node) != p.Ranks:
		return fmt.Errorf("check: %d ranks on nodes %v, want 1 to %d, and the node of each: %w", p.Ranks, p.Node, 1<<16, lock.ErrConfig)
	case p.Calls < 1:
		return fmt.Errorf("check: %d operations per rank, want at least 1: %w", p.Calls, lock.ErrConfig)
	case len(p.Keys) == 0:
		return fmt.Errorf("check: no keys: %w", lock.ErrConfig)
	}
	return nil
}

// RunDHT checks a hashtable under the schedules of s: that the histories are
// linearizable (ErrHistory), that no key is there twice, and that it ends.
func RunDHT(p DHTPlan, s sim.Scheduler) (Result, error) {
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

// ReplayDHT runs a plan under one schedule and returns its trace, and what went wrong.
func ReplayDHT(p DHTPlan, schedule string) ([]sim.Event, *sim.Failure, error) {
	if err := p.validate(); err != nil {
		return nil, nil, err
	}
	return p.search().Replay(schedule, p.body(false))
}

// ShrinkDHT is Shrink.
func ShrinkDHT(p DHTPlan, f *sim.Failure, tries int) (*sim.Failure, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	return p.search().Shrink(f, tries, p.body(false))
}

func (p *DHTPlan) search() sim.Search {
	return sim.Search{Node: p.Node, Faults: p.Faults, Ascending: p.Ascending}
}

// A dhtCall is what is asked of the table, a dhtAnswer what comes back.
type (
	dhtCall struct {
		what       byte // 'I'nsert, 'A'dd, 'L'ookup
		key, value int64
	}
	dhtAnswer struct {
		value int64
		ok    bool // of Lookup: there; of Insert: created
		full  bool
	}
	dhtKey struct { // the state of one key
		there bool
		value int64
	}
)

// calls draws what a rank does.
func (p *DHTPlan) calls(rank int) []dhtCall {
	rng := rand.New(rand.NewPCG(p.Seed, uint64(rank)^0xD47))
	out := make([]dhtCall, p.Calls)
	for i := range out {
		c := dhtCall{what: "IIAAL"[rng.IntN(5)], key: p.Keys[rng.IntN(len(p.Keys))]}
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

// dhtModel is a map, key by key: a history is linearizable if each key's is.
var dhtModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		var keys []int64
		for _, o := range history {
			k := o.Input.(dhtCall).key
			i := slices.Index(keys, k)
			if i < 0 {
				i = len(keys)
				keys, parts = append(keys, k), append(parts, nil)
			}
			parts[i] = append(parts[i], o)
		}
		return parts
	},
	Init: func() any { return dhtKey{} },
	Step: func(s, in, out any) (bool, any) {
		was, c, a := s.(dhtKey), in.(dhtCall), out.(dhtAnswer)
		switch {
		case a.full: // refused: only a key that is absent is
			return !was.there, was
		case c.what == 'I' && a.ok:
			return !was.there, dhtKey{true, c.value}
		case c.what == 'I':
			return was.there, was
		case c.what == 'A':
			return a.value == was.value, dhtKey{true, was.value + c.value}
		}
		return a.ok == was.there && a.value == was.value, was
	},
	DescribeOperation: func(in, out any) string {
		c, a := in.(dhtCall), out.(dhtAnswer)
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

// Save is of sim.Beside.
func (h *record) Save(into any) any {
	s, ok := into.(*record)
	if !ok {
		s = &record{}
	}
	s.did, s.at, s.time = append(s.did[:0], h.did...), append(s.at[:0], h.at...), h.time
	return s
}

// Restore is of sim.Beside.
func (h *record) Restore(from any) {
	s := from.(*record)
	h.did, h.at, h.time = append(h.did[:0], s.did...), append(h.at[:0], s.at...), s.time
}

// called notes that a rank begins an operation, a dhtCall. What matters of the moment is
// who has returned by then.
func (h *record) called(rank int, c any) {
	h.time++
	h.at[rank] = len(h.did)
	h.did = append(h.did, porcupine.Operation{ClientId: rank, Input: c, Call: h.time, Return: -1})
}

// returned notes that it has ended, with a dhtAnswer.
func (h *record) returned(rank int, a any) {
	h.time++
	o := &h.did[h.at[rank]]
	o.Output, o.Return = a, h.time
}

// hash is that of the history so far, the same for histories with the same order of
// calls after returns.
func (h *record) hash() uint64 {
	sum := uint64(0)
	for i := range h.did {
		o := &h.did[i]
		x := uint64(14695981039346656037)
		word := func(v uint64) { x = (x ^ v) * 1099511628211; x ^= x >> 31 }
		c := o.Input.(dhtCall)
		word(uint64(o.ClientId))
		word(uint64(c.what))
		word(uint64(c.key))
		word(uint64(c.value))
		if o.Return >= 0 {
			a := o.Output.(dhtAnswer)
			word(uint64(a.value))
			word(map[bool]uint64{false: 2, true: 3}[a.ok])
			word(map[bool]uint64{false: 2, true: 3}[a.full])
		}
		before := uint64(0) // who had returned when it began, whatever their order
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
	if porcupine.CheckOperations(dhtModel, h.did) {
		if len(h.good) < 1<<20 {
			h.good[sum] = true
		}
		return nil
	}
	var b strings.Builder
	for _, o := range h.did {
		fmt.Fprintf(&b, "; rank %d, %d to %d: %s", o.ClientId, o.Call, o.Return, dhtModel.DescribeOperation(o.Input, o.Output))
	}
	return fmt.Errorf("%w: %s", ErrHistory, strings.TrimPrefix(b.String(), "; "))
}

// openedDHT is what a rank has opened.
type openedDHT struct {
	table *dht.Table
	locks lock.Table // or nil
	as    *snapshot
}

// open opens the table, and its locks if it has any.
func (p *DHTPlan) open(c rma.Comm) (o openedDHT, err error) {
	cfg := dht.Config{Volumes: p.Volumes, Slots: p.Slots, Heap: p.Heap}
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
	o.table, err = dht.New(c, cfg)
	return o, err
}

// body is what every rank runs. states says that the search compares states.
func (p *DHTPlan) body(states bool) func(rma.Comm) error {
	all := make([]openedDHT, p.Ranks)
	h := &record{good: map[uint64]bool{}, at: make([]int, p.Ranks)}
	scripts := make([][]dhtCall, p.Ranks)
	for r := range scripts {
		scripts[r] = p.calls(r)
	}
	return func(c rma.Comm) error {
		s, _ := sim.Of(c)
		mine := &all[c.Rank()]
		if mine.as != nil {
			mine.as.restore()
		} else {
			o, err := p.open(c)
			if err != nil {
				return err
			}
			if as, ok := takeSnapshot(o.table, o.locks); ok && !p.reopen {
				o.as = as
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
		// Between two operations a rank's state is that of its locks and its place in the
		// script. What it has found is in the history.
		home := func(i int) {
			switch {
			case !states:
			case locks != nil:
				s.Home(func() uint64 { return fingerprint(locks)*64 + uint64(i) })
			default:
				s.Home(func() uint64 { return uint64(i) })
			}
		}
		for i, k := range scripts[c.Rank()] {
			home(i)
			s.Sleep(1) // the call may come at any time
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
func (h *record) perform(s *sim.Comm, table *dht.Table, c dhtCall) (err error) {
	var asked any = c
	s.Effect(func() { h.called(s.WorldRank(), asked) })
	s.Mark("calls %c(%d, %d)", c.what, c.key, c.value)
	var a dhtAnswer
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
	s.Mark("has %s", dhtModel.DescribeOperation(c, a))
	return err
}

// rest looks at the table when all are through, and judges the history.
func (p *DHTPlan) rest(s *sim.Comm, h *record, table *dht.Table) error {
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
			if err := h.perform(s, table, dhtCall{what: 'L', key: k}); err != nil {
				return err
			}
		}
		if err := h.verdict(); err != nil {
			return err
		}
	}
	return s.Barrier()
}
