// Package kvtest checks maps from keys to values, such as package store and package btree, under
// rma/sim: that every history of a few clients is linearizable, and that each execution ends. It
// is for tests, as package dht/dhttest is for the hashtable.
package kvtest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/rmalock/rmalock/internal/handle"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/sim"
)

// ErrHistory is wrapped where what the clients got cannot be explained by operations done one
// after the other.
var ErrHistory = errors.New("the history is not linearizable")

// A Map is what is checked. Each client has its handle.
type Map interface {
	Get(key int64) (value int64, there bool, err error)
	Set(key, value int64) error
	Delete(key int64) (there bool, err error)
}

// A Scanner is a Map whose keys are in an order. What a Scan finds of each key is a Get of its
// own: a Scan is not one moment.
type Scanner interface {
	Map
	// Scan calls f for the keys from from on, in their order, until there are no more or f
	// returns false.
	Scan(from int64, f func(key, value int64) bool) error
}

// An Updater is a Map that tells inserts from updates: an insert of a key that is there, and an
// update of one that is not, change nothing and report false.
type Updater interface {
	Map
	Insert(key, value int64) (bool, error)
	Update(key, value int64) (bool, error)
}

// A Plan is a use of a Map: every client does some operations, drawn at random, on a few keys.
type Plan struct {
	Search sim.Search // its Node has the clients
	Calls  int        // operations of each client
	Seed   uint64     // of the operations drawn
	Ops    string     // letters to draw from: g(et), s(et), d(elete), r(ange), i(nsert), u(pdate); "" for gsd
	Keys   []int64    // to draw from
	// Scripts are the operations of each client, in place of those drawn: letter and key, such as
	// "s1 g2 r0".
	Scripts []string
	Loaded  []int64 // keys to which Open has given the value -1
	// NoSwap has clients use a transport on which a swap, whole or masked, is a loop.
	NoSwap bool
	// Open opens the Map at each client. Collective.
	Open func(c rma.Comm) (Map, error)
	// Rest, if not nil, looks at the Map of rank 0 when all have finished.
	Rest func(m Map) error
}

// A Result is what a check found.
type Result struct {
	Stats   sim.Stats
	States  int  // that Exhaustive saw
	Whole   bool // Exhaustive came to its end
	Failure *sim.Failure
}

// Run checks a Map under the schedules of s.
func (p Plan) Run(s sim.Scheduler) Result {
	x, ok := s.(*sim.ExhaustiveSearch)
	stats, f := p.Search.Run(s, p.body(ok))
	r := Result{Stats: stats, Failure: f}
	if ok {
		r.States, r.Whole = x.States(), !x.Left && f == nil
	}
	return r
}

// Trace is what happens under a schedule, as text.
func (p Plan) Trace(schedule string) string {
	trace, _, err := p.Search.Replay(schedule, p.body(false))
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	if err := sim.WriteTrace(&b, trace); err != nil {
		return err.Error()
	}
	return b.String()
}

type (
	call struct {
		what       byte
		key, value int64
	}
	answer struct {
		value int64
		there bool
	}
)

// calls are the operations of a client.
func (p *Plan) calls(rank int) (out []call) {
	value := func(i int) int64 { return int64(rank)*100 + int64(i) + 1 }
	if p.Scripts != nil {
		for i, text := range strings.Fields(p.Scripts[rank]) {
			key, err := strconv.ParseInt(text[1:], 10, 64)
			if err != nil {
				panic("kvtest: no key in " + text)
			}
			out = append(out, call{what: text[0], key: key, value: value(i)})
		}
		return out
	}
	ops := p.Ops
	if ops == "" {
		ops = "gsd"
	}
	rng := rand.New(rand.NewPCG(p.Seed, uint64(rank)^0x4B56))
	for i := range p.Calls {
		out = append(out, call{what: ops[rng.IntN(len(ops))], key: p.Keys[rng.IntN(len(p.Keys))], value: value(i)})
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
	Init: func() any { return answer{} },
	Step: func(s, in, out any) (bool, any) {
		was, c := s.(answer), in.(call)
		if out == nil { // of a client that died in it: the model is told by two histories
			return true, was
		}
		a := out.(answer)
		switch c.what {
		case 's':
			return true, answer{c.value, true}
		case 'd':
			return a.there == was.there, answer{}
		case 'i', 'u': // a.there: it changed the key
			if possible := was.there == (c.what == 'u'); a.there {
				return possible, answer{c.value, true}
			} else {
				return !possible, was
			}
		}
		return a == was, was
	},
	DescribeOperation: func(in, out any) string {
		c, a := in.(call), out.(answer)
		switch c.what {
		case 's':
			return fmt.Sprintf("set(%d, %d)", c.key, c.value)
		case 'd':
			return fmt.Sprintf("delete(%d) -> %v", c.key, a.there)
		case 'i', 'u':
			return fmt.Sprintf("%c(%d, %d) -> %v", c.what, c.key, c.value, a.there)
		}
		return fmt.Sprintf("%c(%d) -> %d, %v", c.what, c.key, a.value, a.there)
	},
}

// A record is the history of one execution.
type record struct {
	did  []porcupine.Operation
	at   []int // by rank: its last operation there
	time int64
	good map[uint64]bool // sums of histories that were found linearizable
	keys []int64         // that are there at first
}

// reset begins a history, with a set of each key that is there at first.
func (h *record) reset() {
	h.did, h.time = h.did[:0], 0
	for _, k := range h.keys {
		h.did = append(h.did, porcupine.Operation{ClientId: len(h.at), Input: call{what: 's', key: k, value: -1}, Call: h.time, Output: answer{}, Return: h.time + 1})
		h.time += 2
	}
}

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

func (h *record) called(rank int, c any) {
	h.time++
	h.at[rank] = len(h.did)
	h.did = append(h.did, porcupine.Operation{ClientId: rank, Input: c, Call: h.time, Return: -1})
}

func (h *record) returned(rank int, a any) {
	h.time++
	o := &h.did[h.at[rank]]
	o.Output, o.Return = a, h.time
}

// hash is the hash of the history so far, the same for histories with the same order of calls
// after returns.
func (h *record) hash() uint64 {
	sum := uint64(0)
	for i := range h.did {
		o := &h.did[i]
		x := fnv.New64a()
		before := uint64(0)
		for j := range h.did {
			if q := &h.did[j]; q.Return >= 0 && q.Return < o.Call {
				before += 0x9E3779B97F4A7C15 ^ uint64(q.ClientId+1)*0xD6E8FEB86659FD93
			}
		}
		fmt.Fprint(x, o.ClientId, o.Input, o.Output, o.Return >= 0, before)
		v := x.Sum64()
		sum += v ^ v>>29
	}
	return sum
}

// verdict is nil for a linearizable history.
func (h *record) verdict() error {
	sum := h.hash()
	if h.good[sum] {
		return nil
	}
	if linearizable(h.did, h.time) {
		if len(h.good) < 1<<20 {
			h.good[sum] = true
		}
		return nil
	}
	var b strings.Builder
	for _, o := range h.did {
		if o.Return < 0 {
			fmt.Fprintf(&b, "; rank %d, from %d on: %v without an end", o.ClientId, o.Call, o.Input)
			continue
		}
		fmt.Fprintf(&b, "; rank %d, %d to %d: %s", o.ClientId, o.Call, o.Return, model.DescribeOperation(o.Input, o.Output))
	}
	return fmt.Errorf("%w: %s", ErrHistory, strings.TrimPrefix(b.String(), "; "))
}

// linearizable reports whether the history can be explained, where each operation whose client
// died in it has taken effect at any time after its call, or never.
func linearizable(did []porcupine.Operation, end int64) bool {
	open := slices.IndexFunc(did, func(o porcupine.Operation) bool { return o.Return < 0 })
	if open < 0 {
		return porcupine.CheckOperations(model, did)
	}
	without := slices.Delete(slices.Clone(did), open, open+1)
	if linearizable(without, end) {
		return true
	}
	with := slices.Clone(did)
	with[open].Return = end + 1
	for _, there := range []bool{false, true} {
		with[open].Output = answer{there: there}
		if c := with[open].Input.(call); c.what != 'g' && c.what != 'r' && linearizable(with, end+1) {
			return true
		}
	}
	return false
}

// body is what every rank runs. states says that the search compares states.
func (p *Plan) body(states bool) func(rma.Comm) error {
	n := len(p.Search.Node)
	opened := make([]Map, n)
	saved := make([]*handle.Snapshot, n)
	h := &record{good: map[uint64]bool{}, at: make([]int, n), keys: p.Loaded}
	scripts := make([][]call, n)
	for r := range scripts {
		scripts[r] = p.calls(r)
	}
	return func(c rma.Comm) error {
		s, _ := sim.Of(c)
		rank, m := c.Rank(), opened[c.Rank()]
		if saved[rank] != nil {
			saved[rank].Restore()
		} else {
			var err error
			if p.NoSwap {
				c = hook.NoSwap(c)
			}
			if m, err = p.Open(c); err != nil {
				return err
			}
			if snapshot, ok := handle.TakeSnapshot(nil, m); ok {
				opened[rank], saved[rank] = m, snapshot
				s.Keep()
				s.Memoise(h)
			}
		}
		if rank == 0 {
			s.Start(h.reset)
		}
		if err := s.Begin(); err != nil {
			return err
		}
		s.Extra(h.hash)
		home := func(i int) {
			if states {
				s.Home(func() uint64 { return handle.Fingerprint(m)*64 + uint64(i) })
			}
		}
		for i, k := range scripts[rank] {
			home(i)
			s.Sleep(1) // other ranks may come first
			s.Effect(s.Visible)
			if err := h.perform(s, m, k, p.Keys); err != nil {
				return err
			}
			s.Effect(s.Visible)
		}
		home(len(scripts[rank]))
		if err := s.End(); err != nil {
			return err
		}
		return p.rest(s, h, m, rank)
	}
}

// perform does an operation and records it.
func (h *record) perform(s *sim.Comm, m Map, c call, keys []int64) (err error) {
	if c.what == 'r' {
		return h.scan(s, m.(Scanner), c.key, keys)
	}
	var asked any = c
	s.Effect(func() { h.called(s.WorldRank(), asked) })
	s.Mark("calls %c(%d, %d)", c.what, c.key, c.value)
	var a answer
	switch c.what {
	case 'g':
		a.value, a.there, err = m.Get(c.key)
	case 's':
		err = m.Set(c.key, c.value)
	case 'd':
		a.there, err = m.Delete(c.key)
	case 'i':
		a.there, err = m.(Updater).Insert(c.key, c.value)
	case 'u':
		a.there, err = m.(Updater).Update(c.key, c.value)
	default:
		panic("kvtest: no operation " + string(c.what))
	}
	if err != nil {
		return err
	}
	var told any = a
	s.Effect(func() { h.returned(s.WorldRank(), told) })
	s.Mark("has %s", model.DescribeOperation(c, a))
	return nil
}

// scan records a Scan as a Get of each key from from on.
func (h *record) scan(s *sim.Comm, m Scanner, from int64, keys []int64) error {
	var wanted []int64
	for _, k := range keys {
		if k >= from && !slices.Contains(wanted, k) {
			wanted = append(wanted, k)
		}
	}
	at := make([]int, len(wanted))
	rank := s.WorldRank()
	s.Effect(func() {
		for i, k := range wanted {
			h.called(rank, call{what: 'r', key: k})
			at[i] = h.at[rank]
		}
	})
	found := map[int64]int64{}
	last, ordered := from, true
	err := m.Scan(from, func(k, v int64) bool {
		ordered = ordered && k >= last
		last = k + 1
		found[k] = v
		return true
	})
	if err != nil {
		return err
	}
	if !ordered {
		return fmt.Errorf("%w: a scan is out of order, or finds a key twice", ErrHistory)
	}
	s.Effect(func() {
		for i, k := range wanted {
			v, there := found[k]
			h.at[rank] = at[i]
			h.returned(rank, answer{v, there})
		}
	})
	return nil
}

// rest checks what all find when the clients have finished, and the history.
func (p *Plan) rest(s *sim.Comm, h *record, m Map, rank int) error {
	if rank == 0 {
		if p.Rest != nil {
			if err := p.Rest(m); err != nil {
				return err
			}
		}
		for _, k := range p.Keys {
			if err := h.perform(s, m, call{what: 'g', key: k}, nil); err != nil {
				return err
			}
		}
		if err := h.verdict(); err != nil {
			return err
		}
	}
	return s.Barrier()
}
