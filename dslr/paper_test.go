package dslr_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// paper is DSLR as dslr prints it, Algorithms 1 to 3 line by line, or with repairs. Its
// fields have 15 bits and not 16: the others count resets, where that is repaired. A
// transaction that fails begins again.
type paper struct {
	c        rma.Comm
	w        *rma.Window
	countMax int64
	lease    int64 // 0: no rank is taken for dead
	slots    int64 // k of section 5.1
	repairs

	prev  int64
	reset int64 // ResetFrom
	began int64 // the lease
	froze int64 // the counters when the rank met a frozen word
	since int64 // and when
}

// repairs are what the algorithms lack.
type repairs struct {
	readersLook    bool // line 3 of Algorithm 2 looks at nS for exclusive tickets alone
	leaseBegins    bool // with the last look that did not find the ticket served
	releaseLooks   bool // a release looks at what it found, and is taken back
	releaseLate    bool // a release after the lease is a CompareAndSwap, line 1 of Algorithm 3
	undoLooks      bool // lines 5 and 19 of Algorithm 1 are a CompareAndSwap
	siblingsRemain bool // line 13 of Algorithm 2 counts this ticket alone
	drains         bool // the designated rank alone resets, when the tickets before are released
	generations    bool // a reset counts
	crosses        bool // the rank whose tickets reach COUNT_MAX resets, lines 10 and 24 of Algorithm 1
}

var repaired = repairs{true, true, true, true, true, true, true, true, true}

// but is all repairs without one.
func but(without func(r *repairs)) repairs {
	r := repaired
	without(&r)
	return r
}

var (
	gen = rma.Field{Name: "gen", Shift: 60, Bits: 4}
	fX  = rma.Field{Name: "nX", Shift: 45, Bits: 15}
	fS  = rma.Field{Name: "nS", Shift: 30, Bits: 15}
	mX  = rma.Field{Name: "maxX", Shift: 15, Bits: 15}
	mS  = rma.Field{Name: "maxS", Shift: 0, Bits: 15}
)

func word(nX, nS, maxX, maxS int64) int64 {
	return fX.With(fS.With(mX.With(mS.With(0, maxS), maxX), nS), nX)
}

func printed(countMax, lease int64, r repairs) lock.Info { return printedFor(1, countMax, lease, r) }

func printedFor(slots, countMax, lease int64, r repairs) lock.Info {
	return lock.Info{Name: "algorithms 1 to 3", Shared: true, Recovers: lease > 0, Open: func(c rma.Comm, _, _ int) (lock.Table, error) {
		w, err := c.Allocate(rma.Spec{Name: "dslr", Hosts: rma.MemoryNodes, Regions: []rma.Region{
			{Count: 1, Words: []rma.Word{{Name: "L", Fields: []rma.Field{gen, fX, fS, mX, mS}}}},
		}})
		return &paper{c: c, w: w, countMax: countMax, lease: lease, slots: slots, repairs: r}, err
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

func (t *paper) now() int64 {
	if t.lease == 0 {
		return 0
	}
	return t.c.Now()
}

func (t *paper) frozen(v int64) bool { return mS.Get(v) >= t.countMax || mX.Get(v) >= t.countMax }

// zero is the word after a reset.
func (t *paper) zero(v int64) int64 {
	if t.generations {
		return gen.With(0, gen.Get(v)+1)
	}
	return 0
}

func (t *paper) served(v int64, mode lock.Mode) bool {
	return gen.Get(v) == gen.Get(t.prev) && mX.Get(t.prev) == fX.Get(v) && (mode == lock.Shared || mS.Get(t.prev) == fS.Get(v))
}

// Lock is Algorithm 1, until it succeeds.
func (t *paper) Lock(_ context.Context, _ int, mode lock.Mode) error {
	max := mX
	if mode == lock.Shared {
		max = mS
	}
	t.since = -1
	for try := 0; ; try++ {
		t.reset = 0 // line 1
		t.began = t.now()
		prev, err := t.w.FetchAndOpFlush(t.slots*max.One(), 0, 0, rma.Sum) // lines 3, 17
		if err != nil {
			return err
		}
		t.prev = prev
		if t.frozen(prev) { // lines 4, 18
			if err := t.bounce(max, try); err != nil {
				return err
			}
			continue
		}
		if reach := max.Get(prev) + t.slots; max.Get(prev) == t.countMax-1 || t.crosses && reach >= t.countMax { // lines 10, 11, 24, 25
			t.reset = word(mX.Get(prev), reach, mX.Get(prev), reach)
			if mode == lock.Exclusive {
				t.reset = word(reach, mS.Get(prev), reach, mS.Get(prev))
			}
		}
		ok := t.served(prev, mode) // lines 12, 26
		if !ok {
			ok, err = t.handleConflict(mode)
		}
		switch {
		case !ok || err != nil:
		case !t.leaseBegins:
			t.began = t.now()
		case t.now()-t.began > t.lease: // it learns too late
			ok = false
			if err = t.Unlock(0, mode); errors.Is(err, lock.ErrLeaseLost) {
				err = nil
			}
		}
		if ok && t.lease > 0 {
			return lock.ErrOwnerDied // the paper tells no rank of a death; here all are told, to see what else goes wrong
		}
		if ok || err != nil {
			return err
		}
	}
}

// bounce is lines 5 to 8 and 19 to 22: the draw is taken back, and a word that is frozen for
// two leases is reset.
func (t *paper) bounce(max rma.Field, try int) error {
	v, err := t.undo(t.prev+t.slots*max.One(), t.slots*max.One())
	if err != nil || !t.frozen(v) {
		return err
	}
	if counters := v & (gen.Mask() | fX.Mask() | fS.Mask()); t.since < 0 || counters != t.froze {
		t.froze, t.since = counters, t.now()
	} else if t.lease > 0 && t.now()-t.since >= 2*t.lease {
		_, err := t.w.CompareAndSwapFlush(t.zero(v), v, 0, 0)
		return err
	}
	return t.w.Backoff(0, 0, v, try) // lines 6, 20
}

// undo takes back what was added to a word.
func (t *paper) undo(v, added int64) (int64, error) {
	if !t.undoLooks {
		found, err := t.w.FetchAndOpFlush(-added, 0, 0, rma.Sum)
		return found - added, err
	}
	for gen.Get(v) == gen.Get(t.prev) {
		found, err := t.w.CompareAndSwapFlush(v-added, v, 0, 0)
		if found == v || err != nil {
			return v - added, err
		}
		v = found
	}
	return v, nil
}

// handleConflict is Algorithm 2.
func (t *paper) handleConflict(mode lock.Mode) (bool, error) {
	prev := t.prev
	counters := gen.Mask() | fX.Mask() | fS.Mask()
	seen, since := prev&counters, t.now()
	for {
		looks := t.now()
		val, err := t.w.GetFlush(0, 0) // line 2
		switch {
		case err != nil:
			return false, err
		case t.generations && gen.Get(val) != gen.Get(prev):
			return false, nil
		case mX.Get(prev) < fX.Get(val), (mode == lock.Exclusive || !t.readersLook) && mS.Get(prev) < fS.Get(val): // line 3
			return false, nil
		case t.served(val, mode): // lines 5 to 10
			return true, nil
		}
		t.began = looks
		until := rma.Forever
		if t.lease > 0 {
			now := t.c.Now()
			if val&counters != seen {
				seen, since = val&counters, now
			}
			if looks-since >= 2*t.lease { // line 11
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
	next := fX.With(fS.With(val, mS.Get(t.prev)), mX.Get(t.prev)+t.slots)
	if mode == lock.Shared {
		next = fX.With(fS.With(val, mS.Get(t.prev)+t.slots), mX.Get(t.prev))
		if t.siblingsRemain {
			next = fX.With(fS.With(val, fS.Get(val)+t.slots), mX.Get(t.prev))
		}
	}
	found, err := t.w.CompareAndSwapFlush(next, val, 0, 0)
	if err != nil || found != val {
		return false, err
	}
	switch {
	case t.drains && t.reset != 0:
		return true, t.drain(next)
	case !t.drains && t.frozen(next): // line 17
		_, err = t.w.CompareAndSwapFlush(t.zero(next), next, 0, 0)
	}
	return true, err
}

// Unlock is Algorithm 3.
func (t *paper) Unlock(_ int, mode lock.Mode) error {
	added := t.slots * fX.One()
	if mode == lock.Shared {
		added = t.slots * fS.One()
	}
	var val int64
	var err error
	if t.lease > 0 && t.now()-t.began >= t.lease && (t.reset == 0 || t.releaseLate) { // line 1
		if !t.releaseLate {
			return lock.ErrLeaseLost
		}
		if val, err = t.unlockLate(mode, added); err != nil {
			return err
		}
	} else if val, err = t.w.FetchAndOpFlush(added, 0, 0, rma.Sum); err != nil { // lines 3, 5
		return err
	} else if t.releaseLooks && !t.served(val, mode) {
		if _, err := t.undo(val+added, added); err != nil {
			return err
		}
		return lock.ErrLeaseLost
	}
	if t.reset == 0 {
		return nil
	}
	if t.drains {
		return t.drain(val + added)
	}
	t.reset = gen.With(t.reset, gen.Get(t.prev))
	for try := 0; ; try++ { // lines 6, 7
		found, err := t.w.CompareAndSwapFlush(t.zero(t.reset), t.reset, 0, 0)
		if err != nil || found == t.reset {
			return err
		}
		if err := t.w.Backoff(0, 0, found, try); err != nil {
			return err
		}
	}
}

// unlockLate releases by CompareAndSwap what still serves the ticket.
func (t *paper) unlockLate(mode lock.Mode, added int64) (int64, error) {
	v, err := t.w.GetFlush(0, 0)
	for err == nil && t.served(v, mode) {
		var found int64
		if found, err = t.w.CompareAndSwapFlush(v+added, v, 0, 0); err == nil && found == v {
			return v, nil
		}
		v = found
	}
	return 0, errors.Join(err, lock.ErrLeaseLost)
}

// drain resets the word when the tickets up to this one are released, or those before take
// more than two leases.
func (t *paper) drain(v int64) error {
	counters := gen.Mask() | fX.Mask() | fS.Mask()
	seen, since := v&counters, t.now()
	for gen.Get(v) == gen.Get(t.prev) {
		looks := t.now()
		if v&counters != seen {
			seen, since = v&counters, looks
		}
		drained := fX.Get(v) >= fX.Get(t.reset) && fS.Get(v) >= fS.Get(t.reset)
		if drained || t.lease > 0 && looks-since >= 2*t.lease {
			found, err := t.w.CompareAndSwapFlush(t.zero(v), v, 0, 0)
			if err != nil || found == v {
				return err
			}
			v = found
			continue
		}
		until := rma.Forever
		if t.lease > 0 {
			until = since + 2*t.lease
		}
		if _, _, err := t.w.AwaitUntil(0, 0, rma.NotEqual(v&counters).In(counters), until); err != nil {
			return err
		}
		var err error
		if v, err = t.w.GetFlush(0, 0); err != nil {
			return err
		}
	}
	return nil
}

// TestErrata: the algorithms as printed fail where docs/errata.md says so, and with the repair
// they do not.
func TestErrata(t *testing.T) {
	readers := check.Plan{Ranks: 3, Acquires: 2, Writers: 1}
	two := check.Plan{Ranks: 2, Acquires: 2, Writers: 2}
	slow := check.Plan{Ranks: 2, Acquires: 2, Writers: 2, Ticks: 4, MaxDelay: 1}
	const lease = sim.DefaultTickNs
	for _, k := range []struct {
		name     string
		plan     check.Plan
		countMax int64
		lease    int64
		repairs  repairs
		want     error // nil: it passes
		slots    int64 // 0 means 1
	}{
		{"a reader gives up because a sibling has released", readers, 9, 0, repairs{}, sim.ErrDeadlock, 0},
		{"a reader looks at nX alone", readers, 9, 0, repairs{readersLook: true}, nil, 0},
		{"a lease begins when the rank sees that it is served", slow, 9, lease, repairs{readersLook: true}, check.ErrExclusion, 0},
		{"a release adds to a word that another rank has passed over", slow, 9, lease, repairs{readersLook: true, releaseLooks: true}, check.ErrLease, 0},
		{"no ticket of two slots is at COUNT_MAX-1", two, 4, 0, repairs{readersLook: true}, sim.ErrDeadlock, 2},
		{"the tickets that cross COUNT_MAX reset", two, 4, 0, repairs{readersLook: true, drains: true, undoLooks: true, generations: true, crosses: true}, nil, 2},
	} {
		t.Run(k.name, func(t *testing.T) {
			k.plan.Info = printedFor(max(1, k.slots), k.countMax, k.lease, k.repairs)
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

// TestErrataDrawn: the algorithms with all repairs but one fail in random schedules with time and
// a death, and with all they do not.
func TestErrataDrawn(t *testing.T) {
	writers := check.Plan{Ranks: 3, Acquires: 3, Writers: 3, Ticks: 12, Crashes: 1, MaxDelay: 1}
	once := check.Plan{Ranks: 3, Acquires: 1, Writers: 3, Ticks: 6, Crashes: 1, MaxDelay: 1}
	mixed := check.Plan{Ranks: 4, Acquires: 3, Writers: check.Mixed, Ticks: 20, Crashes: 1, MaxDelay: 1}
	const lease = sim.DefaultTickNs
	for _, k := range []struct {
		name     string
		plan     check.Plan
		countMax int64
		repairs  repairs
		want     error // nil: it passes
	}{
		{"all, writers", writers, 3, repaired, nil},
		{"all, mixed", mixed, 3, repaired, nil},
		{"a release after the lease does nothing", writers, 9, but(func(r *repairs) { r.releaseLate = false }), check.ErrLease},
		{"a draw is taken back after a reset", writers, 2, but(func(r *repairs) { r.undoLooks = false }), sim.ErrCarry},
		{"a reader counts its siblings as released", mixed, 9, but(func(r *repairs) { r.siblingsRemain = false }), check.ErrLease},
		{"a rank enters before the word is set to zero", once, 3, but(func(r *repairs) { r.drains = false }), check.ErrExclusion},
		{"a waiting rank does not see a reset", once, 3, but(func(r *repairs) { r.generations = false }), check.ErrLease},
		{"all, once", once, 3, repaired, nil},
		{"a word comes again after a reset", writers, 2, but(func(r *repairs) { r.generations = false }), check.ErrExclusion},
	} {
		t.Run(k.name, func(t *testing.T) {
			k.plan.Info, k.plan.MemoryNodes = printed(k.countMax, lease, k.repairs), 1
			executions := int64(3000)
			if k.want == nil {
				executions = locktest.Draws(executions)
			}
			r, err := check.Run(k.plan, sim.Random(1, 0, executions))
			switch {
			case err != nil:
				t.Fatal(err)
			case k.want == nil && r.Failure != nil:
				t.Errorf("it fails: %v", r.Failure)
			case k.want != nil && r.Failure == nil:
				t.Errorf("it passes, want %v", k.want)
			case k.want != nil && !errors.Is(r.Failure.Err, k.want):
				t.Errorf("it fails with %v, want %v", r.Failure, k.want)
			}
		})
	}
}
