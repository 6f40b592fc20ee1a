// Package kvtest checks maps from keys to values, such as package store and package btree, under
// rma/sim: that every history of a few clients is linearizable, and that each execution ends. It
// is for tests, as package dht/dhttest is for the hashtable.
package kvtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/internal/handle"
	"github.com/rmalock/rmalock/internal/history"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/sim"
)

// ErrHistory is history.Err.
var ErrHistory = history.Err

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
	// Pace is how long a client sleeps before each operation, in ns. With 0 an operation begins at
	// any time; more lets time pass in searches that draw schedules, for what waits for it.
	Pace int64
	// NoSwap has clients use a transport on which a swap, whole or masked, is a loop.
	NoSwap bool
	// Open opens the Map at each client. Collective.
	Open func(c rma.Comm) (Map, error)
	// GivesUp, if not nil, says whether a client gives up with an error, and makes no more
	// operations. The one that failed may have taken effect.
	GivesUp func(err error) bool
	// Rest, if not nil, looks at the Map of rank 0 when all have finished.
	Rest func(m Map) error
	// RestAll is the same with the Maps of all, of whom none has died.
	RestAll func(m []Map) error
	// Disturb, if not nil, decorates the Comm on which a client opens the Map. The Phase of a
	// Position is the letter of an operation.
	Disturb check.Disturb
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

// calls are the operations of a client.
func (p *Plan) calls(rank int) (out []history.Call) {
	value := func(i int) int64 { return int64(rank)*100 + int64(i) + 1 }
	if p.Scripts != nil {
		for i, text := range strings.Fields(p.Scripts[rank]) {
			key, err := strconv.ParseInt(text[1:], 10, 64)
			if err != nil {
				panic("kvtest: no key in " + text)
			}
			out = append(out, history.Call{What: text[0], Key: key, Value: value(i)})
		}
		return out
	}
	ops := p.Ops
	if ops == "" {
		ops = "gsd"
	}
	rng := rand.New(rand.NewPCG(p.Seed, uint64(rank)^0x4B56))
	for i := range p.Calls {
		out = append(out, history.Call{What: ops[rng.IntN(len(ops))], Key: p.Keys[rng.IntN(len(p.Keys))], Value: value(i)})
	}
	return out
}

// body is what every rank runs. states says that the search compares states.
func (p *Plan) body(states bool) func(rma.Comm) error {
	n := len(p.Search.Node)
	opened := make([]Map, n)
	at := make([]check.Position, n)
	saved := make([]*handle.Snapshot, n)
	var loaded []history.Call
	for _, k := range p.Loaded {
		loaded = append(loaded, history.Call{What: history.Set, Key: k, Value: -1})
	}
	h := history.New(n, loaded...)
	if states {
		h.Compare()
	}
	scripts := make([][]history.Call, n)
	for r := range scripts {
		scripts[r] = p.calls(r)
	}
	return func(c rma.Comm) error {
		s, _ := sim.Of(c)
		rank, m := c.Rank(), opened[c.Rank()]
		at[rank] = check.Position{}
		if saved[rank] != nil {
			saved[rank].Restore()
		} else {
			var err error
			if p.NoSwap {
				c = hook.NoSwap(c)
			}
			if p.Disturb != nil {
				c = p.Disturb(c, func() check.Position { return at[rank] })
			}
			if m, err = p.Open(c); err != nil {
				return err
			}
			if snapshot, ok := handle.TakeSnapshot(check.Outlives(), m); ok {
				opened[rank], saved[rank] = m, snapshot
				s.Keep()
				s.Memoise(h)
			}
		}
		if rank == 0 {
			s.Start(h.Reset)
		}
		if err := s.Begin(); err != nil {
			return err
		}
		s.Extra(h.Hash)
		home := func(i int) {
			if states {
				s.Home(func() uint64 { return handle.Fingerprint(m)*64 + uint64(i) })
			}
		}
		for i, k := range scripts[rank] {
			home(i)
			s.Sleep(p.Pace) // other ranks may come first
			s.Effect(s.Visible)
			at[rank] = check.Position{Visit: i, Phase: check.Phase(k.What)}
			err := perform(h, s, m, k, p.Keys)
			at[rank].Phase = check.Outside
			if p.gaveUp(err) {
				break
			} else if err != nil {
				return err
			}
			s.Effect(s.Visible)
		}
		home(len(scripts[rank]))
		if err := s.End(); err != nil {
			return err
		}
		if rank == 0 && p.RestAll != nil {
			if err := p.RestAll(opened); err != nil {
				return err
			}
		}
		return p.rest(s, h, m, rank)
	}
}

func (p *Plan) gaveUp(err error) bool { return err != nil && p.GivesUp != nil && p.GivesUp(err) }

// perform does an operation and records it.
func perform(h *history.Record, s *sim.Comm, m Map, c history.Call, keys []int64) (err error) {
	if c.What == history.Range {
		return scan(h, s, m.(Scanner), c.Key, keys)
	}
	var asked any = c
	s.Effect(func() { h.Called(s.WorldRank(), asked) })
	s.Mark("calls %c(%d, %d)", c.What, c.Key, c.Value)
	var a history.Answer
	switch c.What {
	case history.Get:
		a.Value, a.OK, err = m.Get(c.Key)
	case history.Set:
		err = m.Set(c.Key, c.Value)
	case history.Delete:
		a.OK, err = m.Delete(c.Key)
	case history.Insert:
		a.OK, err = m.(Updater).Insert(c.Key, c.Value)
	case history.Update:
		a.OK, err = m.(Updater).Update(c.Key, c.Value)
	default:
		panic("kvtest: no operation " + string(c.What))
	}
	if err != nil {
		return err
	}
	var told any = a
	s.Effect(func() { h.Returned(s.WorldRank(), told) })
	s.Mark("has %s", history.Describe(c, a))
	return nil
}

// scan records a Scan as a Get of each key from from on.
func scan(h *history.Record, s *sim.Comm, m Scanner, from int64, keys []int64) error {
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
			at[i] = h.Called(rank, history.Call{What: history.Range, Key: k})
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
			h.ReturnedAt(at[i], history.Answer{Value: v, OK: there})
		}
	})
	return nil
}

// rest checks what all find when the clients have finished, and the history.
func (p *Plan) rest(s *sim.Comm, h *history.Record, m Map, rank int) error {
	if rank == 0 {
		if p.Rest != nil {
			if err := p.Rest(m); err != nil && !p.gaveUp(err) {
				return err
			}
		}
		for _, k := range p.Keys {
			if err := perform(h, s, m, history.Call{What: history.Get, Key: k}, nil); err != nil && !p.gaveUp(err) {
				return err
			}
		}
		if err := h.Verdict(); err != nil {
			return err
		}
	}
	return s.Barrier()
}
