package cider

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// recovering makes a plan one of all schedules in which a client dies, small enough to be searched
// whole. What it leaves out is searched elsewhere, or makes no difference:
//
//   - The allocator. Each client has its memory, and is in a section that lasts, when the search
//     begins. No block is used again then, so its clock decides nothing. Package remote has searches
//     of its own.
//   - The order of the words of a block. It is written before a pointer leads to it, and not changed
//     while one does.
//   - A bound on how late an operation takes effect: it may be late by any time.
//   - What a client knows no more (turns, tidy).
//   - Ticks while a client could do something else, but for a few: so leases are longer than what
//     clients do without a wait.
//
// A wait takes a tick, and a queue that stands still is reset after two.
func recovering(clients int, cfg Config, early int) kvtest.Plan {
	cfg.Section, cfg.Words = 1, 128*clients
	p := plan(clients, cfg)
	p.Search.Ticks, p.Search.Crashes, p.Search.AtOnce = 8, 1, true
	p.Search.TicksForced, p.Search.TicksEarly = true, early
	whole := p.Open
	p.Open = func(c rma.Comm) (kvtest.Map, error) {
		m, err := whole(stopped{c})
		if err != nil {
			return nil, err
		}
		s := m.(asMap)
		s.Sync.c, s.Sync.cfg.Lease = c, sim.DefaultTickNs/4
		s.sections = s.heap.Sections(1 << 20)
		if err := s.begin(0); err != nil {
			return nil, err
		}
		ref, err := s.heap.Alloc(headWords + 2)
		if err != nil {
			return nil, err
		}
		s.heap.Return(ref, headWords+2)
		return m, nil
	}
	return p
}

// forgetting has the clients of a plan say what they know no more.
func forgetting(p *kvtest.Plan) {
	p.Search.Ages = true
	whole := p.Open
	p.Open = func(c rma.Comm) (kvtest.Map, error) {
		m, err := whole(c)
		if err != nil {
			return nil, err
		}
		s := storeOf(m)
		k, _ := sim.Of(c)
		s.Sync.c = &turns{c, k, s.Sync}
		return tidy{m.(kvtest.Updater), s}, nil
	}
}

func storeOf(m kvtest.Map) *Store {
	if n, ok := m.(naive); ok {
		return n.Store
	}
	return m.(asMap).Store
}

// stopped is a Comm whose clock stands still.
type stopped struct{ rma.Comm }

func (c stopped) Now() int64       { return 0 }
func (c stopped) Unwrap() rma.Comm { return c.Comm }

// tidy is a Map whose client forgets, after an operation, what no later one reads: the next
// operation writes it first, and statistics decide nothing.
type tidy struct {
	kvtest.Updater
	s *Store
}

func (m tidy) forget() {
	m.s.stats, m.s.still, m.s.write = Stats{}, stillness{}, write{s: m.s}
	clear(m.s.buf)
}

func (m tidy) Get(key int64) (int64, bool, error) { defer m.forget(); return m.Updater.Get(key) }
func (m tidy) Set(key, v int64) error             { defer m.forget(); return m.Updater.Set(key, v) }
func (m tidy) Delete(key int64) (bool, error)     { defer m.forget(); return m.Updater.Delete(key) }
func (m tidy) Insert(key, v int64) (bool, error)  { defer m.forget(); return m.Updater.Insert(key, v) }
func (m tidy) Update(key, v int64) (bool, error)  { defer m.forget(); return m.Updater.Update(key, v) }

// turns is the Comm of a Sync, which reads the clock in the loops of await and rejected alone.
//
// A client that waits again knows what it knew when the loop began, and its stillness: EPOCH as it
// was, and since when. Of the time it asks whether that is longer ago than patience says. When await
// has its message, nothing of the loop decides anything.
type turns struct {
	rma.Comm
	k *sim.Comm
	s *Sync
}

func (c *turns) Unwrap() rma.Comm { return c.Comm }

func (c *turns) Now() int64 {
	if c.k.Repeats() {
		return c.Comm.Now()
	}
	var calls [2]uintptr
	frames := runtime.CallersFrames(calls[:runtime.Callers(2, calls[:])])
	caller := func() string {
		f, _ := frames.Next()
		return f.Function[strings.LastIndexByte(f.Function, '.')+1:]
	}
	t, still := sim.Turn{Most: patience*c.s.cfg.Lease + 1}, &c.s.still
	switch f := caller(); {
	case f == "look" && caller() == "await": // the loop goes on at once
		return c.Comm.Now()
	case f == "look": // rejected reads the pointer before it waits again
		t.Kind = sim.TurnRead
	case f != "await" && f != "rejected":
		panic("cider: " + f + " reads the clock")
	case still.seen:
		t.Kind, t.State, t.Since = sim.TurnNext, uint64(still.epoch), still.since
	default:
		t.Ends = f == "await"
	}
	c.k.Turn(t)
	return c.Comm.Now()
}

// TestSearchDeath: all schedules of two and three clients of which one dies at any step; histories
// are linearizable, and no client waits for a dead one for more than eight leases.
func TestSearchDeath(t *testing.T) {
	combining := Config{Policy: Policy{Scheme: Combining}}
	for _, k := range []struct {
		cfg     Config
		scripts []string
		early   int // ticks
		size    int
	}{
		{combining, []string{"i0 u0", "u0 d0"}, 0, short},
		{combining, []string{"i0", "u0", "d0"}, 0, short},
		{combining, []string{"i0 u0", "u0 g0"}, 1, short},
		{combining, []string{"i0 u0", "u0 d0"}, 2, long},
		{combining, []string{"i0", "u0", "d0"}, 2, long},
		{combining, []string{"i0 u0", "u0 g0", "d0 g0"}, 0, long},
		{combining, []string{"i0 u0", "u0 g0", "d0 g0"}, 1, deep},
		{combining, []string{"i0 u0", "u0 g0", "u0 d0"}, 0, deep},
		{combining, []string{"i0 u1", "u0 i1", "u0 d1"}, 0, short},
		{hot, []string{"i0 u0", "u0 u0", "u0 d0"}, 0, long},
		{hot, []string{"i0 u0", "u0 u0", "u0 d0"}, 3, long},
		{combining, []string{"i0 u1", "u0 i1", "u0 d1"}, 2, long},
		{hot, []string{"i0 u1", "u0 i1", "u0 d1"}, 0, short},
	} {
		t.Run(fmt.Sprintf("%v, %v, %d early", k.cfg.Scheme, k.scripts, k.early), func(t *testing.T) {
			switch {
			case k.size >= long && locktest.Quick():
				t.Skip("takes some seconds; see test-all")
			case k.size == deep && !locktest.Deep():
				t.Skip("takes minutes; see check-deep")
			}
			t.Parallel()
			p := recovering(len(k.scripts), k.cfg, k.early)
			forgetting(&p)
			p.Scripts = k.scripts
			if strings.Contains(fmt.Sprint(k.scripts), "1") {
				p.Keys = []int64{0, 1}
			}
			x := sim.Exhaustive(sim.Unbounded)
			r := p.Run(x)
			if f := r.Failure; f != nil {
				t.Fatalf("%v\n%s", f, p.Trace(f.Schedule))
			}
			if r.Stats.OutOfTicks > 0 && k.early == 0 {
				t.Errorf("%d executions need more ticks", r.Stats.OutOfTicks)
			}
			t.Logf("%d states, %d executions, %d out of ticks", r.States, r.Stats.Executions+r.Stats.Cut, r.Stats.OutOfTicks)
		})
	}
}

// TestDeathFinds: what a client forgets in the searches of a death hides no mistake.
func TestDeathFinds(t *testing.T) {
	for name, k := range map[string]struct {
		scripts []string
		change  func(m naive) naive
		want    error // nil: executions need more ticks
	}{
		"a queue that was reset is an answer": {[]string{"i0 u0", "u0 g0"}, func(m naive) naive {
			m.trusts = true
			return m
		}, kvtest.ErrHistory},
		"a rejected update is answered at once": {[]string{"i0 d0", "u0 g0"}, func(m naive) naive {
			m.refuses = true
			return m
		}, kvtest.ErrHistory},
		"a lost CompareAndSwap is taken for a success": {[]string{"i0", "i0"}, func(m naive) naive {
			m.Sync.w = rma.Decorate(m.w, func(t rma.Transport) rma.Transport { return &trusting{Transport: t} })
			return m
		}, kvtest.ErrHistory},
		"no fence before the pointer": {[]string{"i0", "g0"}, func(m naive) naive {
			m.Sync.w = rma.Decorate(m.w, func(t rma.Transport) rma.Transport { return unfenced{t} })
			return m
		}, ErrTorn},
		"a reset leaves the lock's version": {[]string{"i0 d0", "u0 g0"}, func(m naive) naive {
			m.Sync.w = rma.Decorate(m.w, func(t rma.Transport) rma.Transport { return keepsVersion{t} })
			return m
		}, nil},
	} {
		for _, forgets := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %v", name, forgets), func(t *testing.T) {
				if !forgets && locktest.Quick() {
					t.Skip("takes some seconds; see test-all")
				}
				t.Parallel()
				p := recovering(len(k.scripts), Config{Policy: Policy{Scheme: Combining}}, 0)
				p.Scripts = k.scripts
				whole := p.Open
				p.Open = func(c rma.Comm) (kvtest.Map, error) {
					m, err := whole(c)
					if err != nil {
						return nil, err
					}
					return k.change(naive{asMap: m.(asMap)}), nil
				}
				if forgets {
					forgetting(&p)
				}
				r := p.Run(sim.Exhaustive(sim.Unbounded))
				switch f := r.Failure; {
				case k.want == nil && (f != nil || r.Stats.OutOfTicks == 0):
					t.Errorf("the search found %v, %d executions out of ticks, want some", f, r.Stats.OutOfTicks)
				case k.want != nil && (f == nil || !errors.Is(f, k.want)):
					t.Errorf("the search found %v in %d states, want %v", f, r.States, k.want)
				}
				t.Logf("%d states, %d out of ticks: %v", r.States, r.Stats.OutOfTicks, r.Failure)
			})
		}
	}
}

// noting is a Map whose client keeps the answers.
type noting struct {
	kvtest.Updater
	did *answers
}

type answers struct {
	n  int
	of [8]int64
}

func (m noting) note(v int64, ok bool) {
	if m.did.of[m.did.n] = 2 * v; ok {
		m.did.of[m.did.n]++
	}
	m.did.n++
}

func (m noting) Get(key int64) (v int64, ok bool, err error) {
	v, ok, err = m.Updater.Get(key)
	m.note(v, ok)
	return v, ok, err
}

func (m noting) Delete(key int64) (ok bool, err error) {
	ok, err = m.Updater.Delete(key)
	m.note(0, ok)
	return ok, err
}

func (m noting) Insert(key, v int64) (ok bool, err error) {
	ok, err = m.Updater.Insert(key, v)
	m.note(0, ok)
	return ok, err
}

func (m noting) Update(key, v int64) (ok bool, err error) {
	ok, err = m.Updater.Update(key, v)
	m.note(0, ok)
	return ok, err
}

// TestForgetsNothing: what client 0 gets as answers, and what is there in the end, is the same
// whether the clients forget or not.
func TestForgetsNothing(t *testing.T) {
	for _, scripts := range [][]string{{"u0 g0", "i0 u0"}, {"i0 u0", "d0 i0"}, {"d0 u0", "i0 u0"}, {"i0", "u0", "u0"}, {"u0", "i0", "d0"}} {
		t.Run(fmt.Sprint(scripts), func(t *testing.T) {
			if locktest.Quick() {
				t.Skip("takes some seconds; see test-all")
			}
			t.Parallel()
			var ends [2]map[string]bool
			var states [2]int
			for i := range ends {
				ends[i] = map[string]bool{}
				p := recovering(len(scripts), Config{Policy: Policy{Scheme: Combining}}, 1)
				p.Scripts = scripts
				if i > 0 {
					forgetting(&p)
				}
				whole := p.Open
				p.Open = func(c rma.Comm) (kvtest.Map, error) {
					m, err := whole(c)
					if err != nil {
						return nil, err
					}
					return noting{m.(kvtest.Updater), &answers{}}, nil
				}
				p.Rest = func(m kvtest.Map) error {
					n := m.(noting)
					v, there, err := n.Updater.Get(0)
					ends[i][fmt.Sprint(n.did.of[:n.did.n], v, there)] = true
					return err
				}
				r := p.Run(sim.Exhaustive(sim.Unbounded))
				if r.Failure != nil {
					t.Fatal(r.Failure)
				}
				states[i] = r.States
			}
			t.Logf("%d ends, %d and %d states", len(ends[0]), states[0], states[1])
			if !maps.Equal(ends[0], ends[1]) || len(ends[0]) < 3 || states[1] > states[0] {
				t.Errorf("%v without, %v with", ends[0], ends[1])
			}
		})
	}
}

// keepsVersion is a Transport on which a reset empties the queue, and leaves the version of LOCK.
type keepsVersion struct{ rma.Transport }

func (t keepsVersion) Issue(o rma.Operation) {
	if o.Kind == rma.KindCompareAndSwap && resets.Get(o.Operand) == resets.Get(o.Compare)+1 && tail.Get(o.Operand) == 0 && o.Disp < 6 {
		o.Operand = Version.With(o.Operand, Version.Get(o.Compare))
	}
	t.Transport.Issue(o)
}
