package dslr_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// paper is DSLR as dslr prints it, Algorithms 1 to 3 line by line, or with repairs. Its
// fields have 16 bits. A transaction that fails begins again.
type paper struct {
	c        rma.Comm
	w        *rma.Window
	countMax int64
	lease    int64 // 0: no rank is taken for dead
	repairs

	prev  int64
	reset int64 // ResetFrom
	began int64
}

// repairs are what the algorithms lack.
type repairs struct {
	readersLook  bool // line 3 of Algorithm 2 looks at nS for exclusive tickets alone
	releaseLooks bool // a release looks at what it found
}

var (
	fX = rma.Field{Name: "nX", Shift: 48, Bits: 16}
	fS = rma.Field{Name: "nS", Shift: 32, Bits: 16}
	mX = rma.Field{Name: "maxX", Shift: 16, Bits: 16}
	mS = rma.Field{Name: "maxS", Shift: 0, Bits: 16}
)

func word(nX, nS, maxX, maxS int64) int64 {
	return fX.With(fS.With(mX.With(mS.With(0, maxS), maxX), nS), nX)
}

func printed(countMax, lease int64, r repairs) lock.Info {
	return lock.Info{Name: "algorithms 1 to 3", Shared: true, Recovers: lease > 0, Open: func(c rma.Comm, _, _ int) (lock.Table, error) {
		w, err := c.Allocate(rma.Spec{Name: "dslr", Hosts: rma.MemoryNodes, Regions: []rma.Region{
			{Count: 1, Words: []rma.Word{{Name: "L", Fields: []rma.Field{fX, fS, mX, mS}}}},
		}})
		return &paper{c: c, w: w, countMax: countMax, lease: lease, repairs: r}, err
	}}
}

func (t *paper) Len() int             { return 1 }
func (t *paper) Home(int) int         { return 0 }
func (t *paper) Hosts() rma.Hosts     { return rma.MemoryNodes }
func (t *paper) Free() error          { return t.w.Free() }
func (t *paper) Mutex(int) lock.Mutex { return nil }
func (t *paper) Idle() error          { return nil }
func (t *paper) Promise(lock.Mode) lock.Promise {
	return lock.Promise{Bypass: lock.Unbounded, Acquire: lock.Unbounded, Release: lock.Unbounded, Lease: t.lease}
}
func (t *paper) TryLock(int, lock.Mode) (bool, error) { return false, errors.ErrUnsupported }

// Lock is Algorithm 1, until it succeeds.
func (t *paper) Lock(_ context.Context, _ int, mode lock.Mode) error {
	max := mX
	if mode == lock.Shared {
		max = mS
	}
	for try := 0; ; try++ {
		t.reset = 0                                                // line 1
		prev, err := t.w.FetchAndOpFlush(max.One(), 0, 0, rma.Sum) // lines 3, 17
		if err != nil {
			return err
		}
		t.prev = prev
		if mS.Get(prev) >= t.countMax || mX.Get(prev) >= t.countMax { // lines 4, 18
			v, err := t.undo(max)
			if err == nil && (mS.Get(v) >= t.countMax || mX.Get(v) >= t.countMax) {
				err = t.w.Backoff(0, 0, v, try) // lines 6, 20; no rank dies before its reset here
			}
			if err != nil {
				return err
			}
			continue
		}
		if mode == lock.Shared && mS.Get(prev) == t.countMax-1 { // lines 10, 11
			t.reset = word(mX.Get(prev), t.countMax, mX.Get(prev), t.countMax)
		}
		if mode == lock.Exclusive && mX.Get(prev) == t.countMax-1 { // lines 24, 25
			t.reset = word(t.countMax, mS.Get(prev), t.countMax, mS.Get(prev))
		}
		ok := fX.Get(prev) == mX.Get(prev) && (mode == lock.Shared || fS.Get(prev) == mS.Get(prev)) // lines 12, 26
		if !ok {
			ok, err = t.handleConflict(mode)
		}
		if t.lease > 0 {
			t.began = t.c.Now()
		}
		if ok && t.lease > 0 {
			return lock.ErrOwnerDied // the paper tells no rank of a death; here all are told, to see what else goes wrong
		}
		if ok || err != nil {
			return err
		}
	}
}

// undo is lines 5 and 19.
func (t *paper) undo(max rma.Field) (int64, error) {
	found, err := t.w.FetchAndOpFlush(-max.One(), 0, 0, rma.Sum)
	return found - max.One(), err
}

// handleConflict is Algorithm 2.
func (t *paper) handleConflict(mode lock.Mode) (bool, error) {
	prev := t.prev
	counters := fX.Mask() | fS.Mask()
	seen, since := prev&counters, int64(0)
	if t.lease > 0 {
		since = t.c.Now()
	}
	for {
		val, err := t.w.GetFlush(0, 0) // line 2
		switch {
		case err != nil:
			return false, err
		case mX.Get(prev) < fX.Get(val), (mode == lock.Exclusive || !t.readersLook) && mS.Get(prev) < fS.Get(val): // line 3
			return false, nil
		case mX.Get(prev) == fX.Get(val) && (mode == lock.Shared || mS.Get(prev) == fS.Get(val)): // lines 5 to 10
			return true, nil
		}
		until := rma.Forever
		if t.lease > 0 {
			now := t.c.Now()
			if val&counters != seen {
				seen, since = val&counters, now
			}
			if now-since >= 2*t.lease { // line 11
				if done, err := t.passOver(mode, val); done || err != nil {
					return false, err
				}
			}
			until = since + 2*t.lease
		}
		if _, _, err := t.w.AwaitUntil(0, 0, rma.NotEqual(val&counters).In(counters), until); err != nil { // line 20
			return false, err
		}
	}
}

// passOver is lines 12 to 19.
func (t *paper) passOver(mode lock.Mode, val int64) (bool, error) {
	next := fX.With(fS.With(val, mS.Get(t.prev)), mX.Get(t.prev)+1)
	if mode == lock.Shared {
		next = fX.With(fS.With(val, mS.Get(t.prev)+1), mX.Get(t.prev))
	}
	found, err := t.w.CompareAndSwapFlush(next, val, 0, 0)
	if err != nil || found != val {
		return false, err
	}
	if mX.Get(next) >= t.countMax || mS.Get(next) >= t.countMax { // line 17
		_, err = t.w.CompareAndSwapFlush(0, next, 0, 0)
	}
	return true, err
}

// Unlock is Algorithm 3.
func (t *paper) Unlock(_ int, mode lock.Mode) error {
	if t.lease > 0 && t.reset == 0 && t.c.Now()-t.began >= t.lease { // line 1
		return lock.ErrLeaseLost
	}
	n, val := fX, int64(0)
	if mode == lock.Shared {
		n = fS
	}
	val, err := t.w.FetchAndOpFlush(n.One(), 0, 0, rma.Sum) // lines 3, 5
	if err != nil {
		return err
	}
	if t.releaseLooks && fX.Get(val) != mX.Get(t.prev) {
		return lock.ErrLeaseLost
	}
	for try := 0; t.reset != 0; try++ { // lines 6, 7
		found, err := t.w.CompareAndSwapFlush(0, t.reset, 0, 0)
		if err != nil || found == t.reset {
			return err
		}
		if err := t.w.Backoff(0, 0, found, try); err != nil {
			return err
		}
	}
	return nil
}

// TestErrata: the algorithms as printed fail where docs/errata.md says so, and with the repair
// they do not.
func TestErrata(t *testing.T) {
	readers := check.Plan{Ranks: 3, Acquires: 2, Writers: 1}
	slow := check.Plan{Ranks: 2, Acquires: 2, Writers: 2, Ticks: 4, MaxDelay: 1}
	const lease = sim.DefaultTickNs
	for _, k := range []struct {
		name     string
		plan     check.Plan
		countMax int64
		lease    int64
		repairs  repairs
		want     error // nil: it passes
	}{
		{"a reader gives up because a sibling has released", readers, 9, 0, repairs{}, sim.ErrDeadlock},
		{"a reader looks at nX alone", readers, 9, 0, repairs{readersLook: true}, nil},
		{"a lease begins when the rank sees that it is served", slow, 9, lease, repairs{readersLook: true}, check.ErrExclusion},
		{"a release adds to a word that another rank has passed over", slow, 9, lease, repairs{readersLook: true, releaseLooks: true}, check.ErrLease},
	} {
		t.Run(k.name, func(t *testing.T) {
			k.plan.Info = printed(k.countMax, k.lease, k.repairs)
			k.plan.MemoryNodes = 1
			r, err := check.Run(k.plan, sim.Exhaustive(sim.Unbounded))
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case k.want == nil && r.Failure != nil:
				t.Errorf("it fails: %v", r.Failure)
			case k.want != nil && r.Failure == nil:
				t.Errorf("it passes, want %v", k.want)
			case k.want != nil && !errors.Is(r.Failure.Err, k.want):
				t.Errorf("it fails with %v, want %v", r.Failure, k.want)
			}
			if r.Failure != nil {
				t.Log(r.Failure.Err, r.Failure.Schedule)
			}
		})
	}
}
