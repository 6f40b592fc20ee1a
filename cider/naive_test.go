package cider

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// naive is a Store with one mistake on the way of an update.
type naive struct {
	asMap
	refuses bool // an update that the lock rejects is answered at once, as in 4.2.2
	hasty   bool // a coordinator does not wait for its executor
	counts  bool // and it counts as combined
	trusts  bool // a queue that was reset has changed the slot
}

func (m naive) Update(key, value int64) (bool, error) {
	s, k := m.Store, int(key)
	if err := s.begin(k); err != nil {
		return false, err
	}
	for at := s.slot(k); ; {
		p, err := s.w.GetFlush(at.Host, at.Pointer)
		if err != nil || Empty(p) {
			return false, err
		}
		s.write = write{s: s, at: at, data: data(value)}
		became, err := m.pessimistic(at, p, &s.write)
		if m.trusts && became == Again {
			became = Changed
		}
		if err != nil || became != Again {
			return became == Changed, err
		}
	}
}

func (m naive) pessimistic(at Slot, p int64, w Writer) (Became, error) {
	s := m.Store
	q, before, in, err := s.enqueue(at, Version.Get(p), false)
	if err != nil || !in {
		if m.refuses || err != nil {
			return Absent, err
		}
		return s.rejected(&q)
	}
	status := info.With(0, holds)
	if before != 0 {
		if err := s.send(before, nextWord, int64(q.me)); err != nil {
			return Absent, err
		}
		if status, in, err = s.await(&q, statusWord); err != nil || !in {
			return Again, err
		}
	}
	next, err := s.box.GetFlush(s.c.Rank(), nextWord)
	to := s.successor(&q, next)
	if info.Get(status) != holds || to == 0 || !m.hasty || err != nil {
		return s.serve(&q, status, p, w, false)
	}
	t, err := s.w.GetFlush(at.Host, at.Lock)
	if err != nil {
		return Absent, err
	}
	if m.counts {
		s.stats.Combined++
	}
	err = errors.Join(
		s.send(name(tail.Get(t)), statusWord, whom.With(info.With(0, executes), int64(q.me))),
		s.send(to, statusWord, batch.With(info.With(0, combined), 1)))
	return Changed, err
}

// naiveMates is a Store that answers node-mates by an operation that has begun before theirs: the
// window of the ticket in SMART's table, left open.
type naiveMates struct{ asMap }

func (m naiveMates) Update(key, value int64) (bool, error) {
	s, k := m.Store, int(key)
	if err := s.begin(k); err != nil {
		return false, err
	}
	name := s.bytes(k)
	if there, done, err := s.JoinUpdate(name); done || err != nil {
		return there, err
	}
	there, err := s.change(k, data(value), false)
	return there, s.LeaveUpdate(name, there, errors.Join(err, m.late()))
}

func (m naiveMates) Get(key int64) (int64, bool, error) {
	s, k := m.Store, int(key)
	if err := s.begin(k); err != nil {
		return 0, false, err
	}
	name := s.bytes(k)
	out, there, done, err := s.JoinSearch(name, nil)
	if !done && err == nil {
		out, there, err = s.search(k, nil)
		err = s.LeaveSearch(name, out, there, errors.Join(err, m.late()))
	}
	if err != nil || !there {
		return 0, false, err
	}
	return int64(binary.LittleEndian.Uint64(out)), true, nil
}

// late has the client answer those that have come since it began.
func (m naiveMates) late() error {
	l := m.local
	if l.entry < 0 || l.below != 0 {
		return nil
	}
	s, err := l.w.GetFlush(l.at, l.entry)
	for err == nil && top.Get(s) != 0 {
		found, err := l.w.CompareAndSwapFlush(top.With(s, 0), s, l.at, l.entry)
		if err != nil || found == s {
			l.below = name(top.Get(s))
			return err
		}
		s = found
	}
	return err
}

// TestNaiveMates: a search finds that the window is open, for updates and for searches.
func TestNaiveMates(t *testing.T) {
	for _, scripts := range [][]string{{"i0 u0", "u0 g0", "g0 g0"}, {"i0 g0", "g0 g0", "u0 u0"}} {
		t.Run(fmt.Sprint(scripts), func(t *testing.T) {
			t.Parallel()
			p := plan(len(scripts), Config{Policy: mates(Optimistic)})
			p.Scripts, p.Search.Ticks, p.Search.MaxDelay, p.Search.Ascending = scripts, 50, 1, false
			whole := p.Open
			p.Open = func(c rma.Comm) (kvtest.Map, error) {
				m, err := whole(c)
				if err != nil {
					return nil, err
				}
				return naiveMates{m.(asMap)}, nil
			}
			if f := p.Run(sim.Random(1, 0, 200_000)).Failure; !errors.Is(f, kvtest.ErrHistory) {
				t.Errorf("the search found %v, want %v", f, kvtest.ErrHistory)
			} else {
				t.Log(f)
			}
		})
	}
}

// TestNaive: a search finds what is wrong with each mistake, and nothing without.
func TestNaive(t *testing.T) {
	for name, k := range map[string]struct {
		scripts []string
		change  func(m naive) naive
		want    error // nil: it passes
	}{
		"none": {[]string{"i0 u0 g0", "u0 g0", "u0 g0"}, func(m naive) naive { return m }, nil},
		"a rejected update is answered at once": {[]string{"i0 d0", "u0 g0"}, func(m naive) naive {
			m.refuses = true
			return m
		}, kvtest.ErrHistory},
		"a coordinator does not wait": {[]string{"i0 u0 g0", "u0 g0", "u0 g0"}, func(m naive) naive {
			m.hasty = true
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
	} {
		t.Run(name, func(t *testing.T) {
			draws := int64(500)
			if k.want != nil {
				draws = 20_000
			}
			if len(k.scripts) > 2 && k.want != nil && locktest.Quick() {
				t.Skip("takes some seconds; see test-all")
			}
			t.Parallel()
			p := plan(len(k.scripts), Config{Policy: Policy{Scheme: Combining}})
			p.Scripts, p.Search.Ticks, p.Search.MaxDelay = k.scripts, 4, 1
			whole := p.Open
			p.Open = func(c rma.Comm) (kvtest.Map, error) {
				m, err := whole(c)
				if err != nil {
					return nil, err
				}
				return k.change(naive{asMap: m.(asMap)}), nil
			}
			var explore sim.Scheduler = sim.Exhaustive(3)
			if len(k.scripts) > 2 {
				p.Search.Ticks, p.Search.Ascending, explore = 50, false, sim.Random(1, 0, draws)
			}
			f := p.Run(explore).Failure
			switch {
			case k.want == nil && f != nil:
				t.Errorf("it fails: %v", f)
			case k.want != nil && (f == nil || !errors.Is(f, k.want)):
				t.Errorf("the search found %v, want %v", f, k.want)
			case f != nil:
				t.Log(f)
			}
		})
	}
}

// unfenced is a Transport without fences.
type unfenced struct{ rma.Transport }

func (t unfenced) Issue(o rma.Operation) {
	o.Epoch = 0
	t.Transport.Issue(o)
}

// trusting is a Transport whose CompareAndSwaps of POINTERs seem to succeed.
type trusting struct {
	rma.Transport
	last rma.Operation
}

func (t *trusting) Issue(o rma.Operation) {
	if t.Transport.Issue(o); o.Kind == rma.KindCompareAndSwap && o.Disp < 2 {
		t.last = o
	}
}

func (t *trusting) Flush(target int, r *rma.Results) (int, error) {
	left, err := t.Transport.Flush(target, r)
	if t.last.Kind == rma.KindCompareAndSwap {
		r[t.last.Slot] = t.last.Compare
		t.last = rma.Operation{}
	}
	return left, err
}
