package store

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	_ "github.com/rmalock/rmalock/baseline"
	_ "github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/dslr"
	"github.com/rmalock/rmalock/internal/kvtest"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// asMap is a Store whose values are numbers, written twice into objects of 24 bytes: so a torn
// one shows.
type asMap struct {
	*Store
	locks lock.Table
}

func (m asMap) Get(key int64) (int64, bool, error) {
	b, _, there, err := m.Store.Get(context.Background(), int(key), nil)
	if err != nil || !there {
		return 0, false, err
	}
	v := int64(binary.LittleEndian.Uint64(b))
	if w := int64(binary.LittleEndian.Uint64(b[16:])); w != v {
		v = -1
	}
	return v, true, nil
}

func (m asMap) Set(key, value int64) error {
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], uint64(value))
	binary.LittleEndian.PutUint64(b[16:], uint64(value))
	_, err := m.Store.Set(context.Background(), int(key), b[:])
	return err
}

func (m asMap) Delete(key int64) (bool, error) {
	return m.Store.Delete(context.Background(), int(key))
}

// plan is a check of a store under a lock.
func plan(t *testing.T, name string, fixed int, clients int) kvtest.Plan {
	t.Helper()
	info, err := lock.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	p := kvtest.Plan{Keys: []int64{0}}
	p.Search.Node = make([]int, clients)
	for i := range p.Search.Node {
		p.Search.Node[i] = i
	}
	p.Search.MemoryNodes, p.Search.Ascending = 1, true
	p.Open = func(c rma.Comm) (kvtest.Map, error) {
		locks, err := info.Open(c, 1, 0)
		if err != nil {
			return nil, err
		}
		s, err := New(c, Config{Objects: 1, Locks: locks, Fixed: fixed, Most: 24, Words: 1 << 10})
		return asMap{s, locks}, err
	}
	return p
}

// look runs a search and fails the test if it finds something.
func look(t *testing.T, p kvtest.Plan, s sim.Scheduler) {
	t.Helper()
	r := p.Run(s)
	if f := r.Failure; f != nil {
		t.Fatalf("%v\n%s", f, p.Trace(f.Schedule))
	}
	if r.Stats.OutOfTicks > r.Stats.Executions {
		t.Errorf("%d of %d executions ran out of ticks", r.Stats.OutOfTicks, r.Stats.Executions)
	}
	t.Logf("%d states, %d executions, %d to their end, %d out of ticks", r.States, r.Stats.Executions+r.Stats.Cut, r.Stats.Executions, r.Stats.OutOfTicks)
}

// TestSearch: all schedules of two and three clients on one object, under locks with and without
// a shared mode; histories are linearizable.
func TestSearch(t *testing.T) {
	for _, k := range []struct {
		name    string
		lock    string
		fixed   int
		scripts []string
		ticks   int
		bound   int
		long    bool
	}{
		{"fixed", "fompi-spin", 24, []string{"s0 d0", "g0 s0"}, 0, sim.Unbounded, false},
		{"blocks", "fompi-spin", 0, []string{"s0", "g0 d0"}, 5, 1, false},
		{"blocks, more", "dmcs", 0, []string{"s0 d0", "g0 s0"}, 5, 1, true},
		{"fixed, readers", "fompi-rw", 24, []string{"s0 s0", "g0 d0", "g0"}, 0, 2, false},
		{"blocks, readers", "fompi-rw", 0, []string{"s0 s0", "g0 d0", "g0"}, 2, 2, true},
		{"fixed, dslr", "dslr", 24, []string{"s0", "g0 d0"}, 10, 1, true},
	} {
		t.Run(k.name, func(t *testing.T) {
			if k.long && locktest.Quick() {
				t.Skip("takes some seconds; see test-all")
			}
			t.Parallel()
			p := plan(t, k.lock, k.fixed, len(k.scripts))
			p.Scripts, p.Search.Ticks, p.Search.MaxDelay = k.scripts, k.ticks, min(k.ticks, 1)
			look(t, p, sim.Exhaustive(k.bound))
		})
	}
}

// TestSearchRandom: random and PCT schedules of more clients on three objects.
func TestSearchRandom(t *testing.T) {
	for _, fixed := range []int{0, 24} {
		for _, name := range []string{"fompi-spin", "fompi-rw", "dmcs", "dslr"} {
			p := plan(t, name, fixed, 4)
			p.Calls, p.Seed, p.Search.Ticks, p.Search.MaxDelay, p.Search.Ascending = 4, 1, 200, 1, false
			for _, s := range []sim.Scheduler{sim.Random(1, 0, locktest.Draws(600)), sim.PCT(1, 3, 0, locktest.Draws(600))} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					look(t, p, s)
				})
			}
		}
	}
}

// TestSearchDeath: a client dies at any step of a set, under a lock that recovers. Where sizes are
// not fixed the others find the old object or the new one; a fixed one may be half written, until
// a Set mends it.
func TestSearchDeath(t *testing.T) {
	for _, fixed := range []int{0, 24} {
		for _, s := range []sim.Scheduler{sim.Random(1, 0, locktest.Draws(1500)), sim.PCT(1, 3, 0, locktest.Draws(1500))} {
			p := plan(t, "dslr", fixed, 3)
			p.Scripts = []string{"g0 g0 s0 g0", "s0 s0 d0", "s0 g0"}
			p.Search.Ticks, p.Search.Crashes, p.Search.MaxDelay = 400, 1, 1
			p.Open = func(c rma.Comm) (kvtest.Map, error) {
				locks, err := dslr.New(c, dslr.Config{Lease: 20_000, BackoffFirst: -1, BackoffLast: -1})
				if err != nil {
					return nil, err
				}
				s, err := New(c, Config{Objects: 1, Locks: locks, Fixed: fixed, Most: 24, Words: 1 << 10})
				return asMap{s, locks}, err
			}
			if fixed > 0 {
				p.GivesUp = func(err error) bool { return errors.Is(err, ErrTorn) }
			}
			look(t, p, s)
		}
	}
}

// open is a lock that excludes nobody.
type open struct{ lock.Table }

func (open) Len() int                                   { return 1 }
func (open) Lock(context.Context, int, lock.Mode) error { return nil }
func (open) Unlock(int, lock.Mode) error                { return nil }

// early is a Transport whose Flush returns before a write is complete.
type early struct {
	rma.Transport
	pending int
	writing *bool
}

func (x *early) Issue(o rma.Operation) {
	*x.writing = o.Kind == rma.KindPutBulk
	x.pending++
	x.Transport.Issue(o)
}

func (x *early) Flush(target int, r *rma.Results) (int, error) {
	if *x.writing {
		return x.pending, nil
	}
	var err error
	x.pending, err = x.Transport.Flush(target, r)
	return x.pending, err
}

// TestMutants: without a lock, and without the flush before the unlock, a search finds what is
// wrong: the checksum shows a torn object, and a reader an old one.
func TestMutants(t *testing.T) {
	for name, k := range map[string]struct {
		change  func(s *Store)
		scripts []string
		want    error
	}{
		"no lock": {func(s *Store) { s.cfg.Locks = open{} }, []string{"s0 s0", "s0 g0"}, ErrTorn},
		"no flush": {func(s *Store) {
			s.w = rma.Decorate(s.w, func(t rma.Transport) rma.Transport { return &early{Transport: t, writing: new(bool)} })
		}, []string{"s0", "g0"}, kvtest.ErrHistory},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan(t, "fompi-spin", 24, len(k.scripts))
			p.Scripts = k.scripts
			whole := p.Open
			p.Open = func(c rma.Comm) (kvtest.Map, error) {
				m, err := whole(c)
				if err == nil {
					k.change(m.(asMap).Store)
				}
				return m, err
			}
			f := p.Run(sim.Exhaustive(sim.Unbounded)).Failure
			if f == nil || !errors.Is(f, k.want) && !errors.Is(f, ErrTorn) {
				t.Fatalf("the search found %v, want %v", f, k.want)
			}
			t.Log(f)
		})
	}
}
