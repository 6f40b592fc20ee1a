package declock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// paper is the queue of section 4 as declock prints it in Figures 5 to 7: no reset, so that what
// a reset would have to repair shows.
type paper struct {
	c      rma.Comm
	w, box *rma.Window
	queue  []int64
	// ordered: the queue is read after the FetchAndOp, as in one doorbell of an RDMA NIC.
	ordered bool
}

const paperCapacity = 4

var (
	paperWcnt    = rma.Field{Name: "wcnt", Shift: 0, Bits: 4}
	paperQsize   = rma.Field{Name: "qsize", Shift: 4, Bits: 4}
	paperQhead   = rma.Field{Name: "qhead", Shift: 8, Bits: 32}
	paperClient  = rma.Field{Name: "cid", Shift: 0, Bits: 8}
	paperMode    = rma.Field{Name: "mode", Shift: 8, Bits: 1}
	paperVersion = rma.Field{Name: "version+1", Shift: 16, Bits: 16} // 0 is -1

	// errReset is of an entry that is overwritten: the paper resets the lock.
	errReset = errors.New("queue entry overwrite")
)

func printed(ordered bool) lock.Info {
	return lock.Info{Name: "Figure 7", Shared: true, Open: func(c rma.Comm, _, _ int) (lock.Table, error) {
		w, err := c.Allocate(rma.Spec{Name: "cql", Hosts: rma.MemoryNodes, Regions: []rma.Region{
			{Count: 1, Words: []rma.Word{{Name: "HEADER", Fields: []rma.Field{paperQhead, paperQsize, paperWcnt}}}},
			{Count: paperCapacity, Words: []rma.Word{{Name: "ENTRY", Class: rma.Plain, Fields: []rma.Field{paperVersion, paperMode, paperClient}}}},
		}})
		if err != nil {
			return nil, err
		}
		box, err := c.Allocate(rma.Spec{Name: "clients", Regions: []rma.Region{{Count: 1, Words: []rma.Word{{Name: "GRANT", Class: rma.Plain}}}}})
		return &paper{c: c, w: w, box: box, queue: make([]int64, paperCapacity), ordered: ordered}, err
	}}
}

func (t *paper) Len() int             { return 1 }
func (t *paper) Home(int) int         { return 0 }
func (t *paper) Hosts() rma.Hosts     { return rma.MemoryNodes }
func (t *paper) Free() error          { return t.w.Free() }
func (t *paper) Mutex(int) lock.Mutex { return nil }
func (t *paper) Idle() error          { return nil }
func (t *paper) Promise(lock.Mode) lock.Promise {
	return lock.Promise{Bypass: lock.Unbounded, Acquire: lock.Unbounded, Release: lock.Unbounded}
}
func (t *paper) TryLock(int, lock.Mode) (bool, error) { return false, errors.ErrUnsupported }

func exclusive(mode lock.Mode) int64 { return 1 - int64(mode) }

// Lock is Figure 7, lines 1 to 5.
func (t *paper) Lock(_ context.Context, _ int, mode lock.Mode) error {
	v, err := t.w.FetchAndOpFlush(paperQsize.One()+exclusive(mode)*paperWcnt.One(), 0, 0, rma.Sum) // line 1
	if err != nil {
		return err
	}
	if paperWcnt.Get(v) == 0 && (mode == lock.Shared || paperQsize.Get(v) == 0) { // line 2
		return nil
	}
	if err := t.box.PutFlush(0, t.c.Rank(), 0); err != nil {
		return err
	}
	i := paperQhead.Get(v) + paperQsize.Get(v)
	e := paperVersion.With(paperMode.With(int64(t.c.Rank()), int64(mode)), i/paperCapacity+1)
	if err := t.w.PutFlush(e, 0, 1+int(i%paperCapacity)); err != nil { // line 4
		return err
	}
	_, err = t.box.Await(t.c.Rank(), 0, rma.Equal(1)) // line 5
	return err
}

// Unlock is Figure 7, lines 6 to 19, with refetches as in section 4.3.
func (t *paper) Unlock(_ int, mode lock.Mode) error {
	r := t.w.FetchAndOp(paperQhead.One()-paperQsize.One()-exclusive(mode)*paperWcnt.One(), 0, 0, rma.Sum) // line 6
	if t.ordered {
		t.w.Fence(0)
	}
	t.w.GetBulk(t.queue, 0, 1) // line 7
	if err := t.w.Flush(0); err != nil {
		return err
	}
	v := t.w.Value(r)
	next, end := paperQhead.Get(v)+1, paperQhead.Get(v)+paperQsize.Get(v)
	if next == end || mode == lock.Shared && paperWcnt.Get(v) == 0 {
		return nil
	}
	if mode == lock.Exclusive { // lines 11 to 19
		for i := next; i < end; i++ {
			e, err := t.entry(i)
			if err != nil || paperMode.Get(e) == int64(lock.Exclusive) && i > next {
				return err
			}
			if err := t.box.PutFlush(1, int(paperClient.Get(e)), 0); err != nil || paperMode.Get(e) == int64(lock.Exclusive) {
				return err
			}
		}
		return nil
	}
	writers := paperWcnt.Get(v)
	for i := end - 1; i >= next; i-- { // until the valid writers are as many as wcnt
		e, err := t.entry(i)
		if err != nil {
			return err
		}
		if paperMode.Get(e) == int64(lock.Shared) {
			continue
		}
		if writers--; writers == 0 {
			if i == next {
				return t.box.PutFlush(1, int(paperClient.Get(e)), 0)
			}
			return nil
		}
	}
	return nil
}

// entry is the entry of an index, once it is valid.
func (t *paper) entry(i int64) (int64, error) {
	slot := i % paperCapacity
	for {
		e := t.queue[slot]
		switch version := paperVersion.Get(e) - 1; {
		case version == i/paperCapacity:
			return e, nil
		case version > i/paperCapacity:
			return 0, errReset
		}
		var err error
		if t.queue[slot], err = t.w.Await(0, 1+int(slot), rma.NotEqual(e)); err != nil {
			return 0, err
		}
	}
}

// seedOf is a seed that draws modes that begin as wanted, by rank: s for shared.
func seedOf(modes ...string) uint64 {
	for seed := uint64(0); ; seed++ {
		all := true
		for rank, want := range modes {
			rng := rand.New(rand.NewPCG(seed, uint64(rank)))
			for _, m := range want {
				all = all && (rng.IntN(2) == 0) == (m == 's')
			}
		}
		if all {
			return seed
		}
	}
}

// TestErrata: the figures as printed fail where docs/errata.md says so, and the package does not.
func TestErrata(t *testing.T) {
	short := check.Plan{Ranks: 3, Acquires: 1, Writers: 1}
	laps := check.Plan{Ranks: 3, Acquires: 4, Writers: check.Mixed, Seed: seedOf("x", "s", "sssx")}
	for _, k := range []struct {
		name    string
		plan    check.Plan
		ordered bool
		bound   int
		want    error
	}{
		{"one lap", short, true, sim.Unbounded, nil},
		{"one lap, the queue is read at any time", short, false, sim.Unbounded, nil},
		{"an entry is overwritten though there are more entries than ranks", laps, true, 3, errReset},
	} {
		t.Run(k.name, func(t *testing.T) {
			if k.bound != sim.Unbounded && locktest.Quick() {
				t.Skip("takes a while; see test-all")
			}
			k.plan.Info, k.plan.MemoryNodes = printed(k.ordered), 1
			r, err := check.Run(k.plan, sim.Exhaustive(k.bound))
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case k.want == nil && r.Failure != nil:
				t.Errorf("it fails: %v", r.Failure)
			case k.want != nil && r.Failure == nil:
				t.Errorf("it passes, want %v", k.want)
			case k.want != nil && !errors.Is(r.Failure.Err, k.want):
				t.Errorf("it fails with %v, want %v", r.Failure.Err, k.want)
			}
			if r.Failure != nil {
				t.Log(r.Failure.Err, r.Failure.Schedule)
			}
		})
	}
	search(t, laps, params{"CAPACITY": "4"}, sim.PCT(1, 4, 0, locktest.Draws(2000)))
}
