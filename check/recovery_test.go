package check_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/check"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

const tick = sim.DefaultTickNs

// A bug is a mistake planted in a toy.
type bug uint8

const (
	none         bug = iota
	shortLease       // the lease is one tick shorter than holders think
	lateRelease      // a release frees the lock whoever has it by then
	noFence          // what a doorbell writes first may come last
	reusedName       // the name of a client is that of its predecessor
	waitsForDead     // waits have no limit
	bugs
)

func (b bug) String() string {
	return [...]string{"none", "short lease", "late release", "no fence", "reused name", "waits for the dead"}[b]
}

// The lease is counted from before the operation that takes the lock. A Lock returns within a
// tick of that, so that the holder has a tick.
const (
	lease    = 2 * tick
	promised = 1 * tick
)

// name of a client: fields of the word that says who has the lock.
var (
	fieldRank       = rma.Field{Name: "rank", Shift: 0, Bits: 8} // plus 1
	fieldGeneration = rma.Field{Name: "gen", Shift: 8, Bits: 8}
	fieldNumber     = rma.Field{Name: "n", Shift: 16, Bits: 16} // of the client's acquires
)

// toy is what the two toys have in common: a word that names the holder, 0 for none.
type toy struct {
	c     rma.Comm
	w     *rma.Window
	home  int
	bug   bug
	n     int64 // acquires begun
	mine  int64 // what the caller wrote into the word
	total int64 // of acquires that DATA must show at rest, or 0
}

const owner = 0 // displacement of the word that names the holder

// name is another one for each acquire.
func (t *toy) name() int64 {
	t.n++
	v := fieldNumber.With(fieldRank.With(0, int64(t.c.Rank()+1)), t.n)
	if t.bug == reusedName {
		return v
	}
	return fieldGeneration.With(v, int64(rma.Generation(t.c)))
}

func (t *toy) fence() {
	if t.bug != noFence {
		t.w.Fence(t.home)
	}
}

// limit is when a rank that waits for a holder takes the lock from it, if it is the earliest
// moment at which the lease may be over.
func (t *toy) limit(end int64) int64 {
	switch t.bug {
	case shortLease:
		return end - tick
	case waitsForDead:
		return rma.Forever
	}
	return end
}

// release frees the lock unless another rank has taken it.
func (t *toy) release() error {
	if t.bug == lateRelease { // it looks who has the lock, and takes its time
		v, err := t.w.GetFlush(t.home, owner)
		if v != t.mine && err == nil {
			err = lock.ErrLeaseLost
		}
		if err != nil {
			return err
		}
		return t.w.PutFlush(0, t.home, owner)
	}
	r := t.w.CompareAndSwap(0, t.mine, t.home, owner)
	if err := t.w.Flush(t.home); err != nil {
		return err
	}
	if t.w.Value(r) != t.mine {
		return lock.ErrLeaseLost
	}
	return nil
}

func (t *toy) Len() int                             { return 1 }
func (t *toy) Home(int) int                         { return t.home }
func (t *toy) TryLock(int, lock.Mode) (bool, error) { return false, errors.ErrUnsupported }
func (t *toy) Mutex(int) lock.Mutex                 { return nil }
func (t *toy) Free() error                          { return t.w.Free() }
func (t *toy) Promise(lock.Mode) lock.Promise {
	return lock.Promise{Bypass: lock.Unbounded, Acquire: lock.Unbounded, Release: lock.Unbounded, Lease: promised, Recovery: 2 * lease}
}

// leaseLock is a lock on words of a rank. A rank that has seen the same holder for a lease
// takes the lock from it. Its Unlock counts in DATA, in the doorbell that frees the lock.
type leaseLock struct {
	toy
	data int64
}

const leaseData = 1

func (t *leaseLock) Lock(context.Context, int, lock.Mode) error {
	told := false
	for {
		start := t.c.Now()
		t.mine = t.name()
		v, err := t.w.CompareAndSwapFlush(t.mine, 0, t.home, owner)
		if err != nil {
			return err
		}
		if v != 0 {
			_, held, err := t.w.AwaitUntil(t.home, owner, rma.NotEqual(v), t.limit(t.c.Now()+lease))
			if err != nil {
				return err
			}
			if held {
				continue
			}
			start = t.c.Now()
			was, err := t.w.CompareAndSwapFlush(t.mine, v, t.home, owner)
			if err != nil {
				return err
			}
			if was != v {
				continue
			}
			told = true
		}
		if t.data, err = t.w.GetFlush(t.home, leaseData); err != nil {
			return err
		}
		switch {
		case t.c.Now() <= start+lease-promised && told:
			return lock.ErrOwnerDied
		case t.c.Now() <= start+lease-promised:
			return nil
		case told: // too late, as if the caller had died
			continue
		}
		if err := t.release(); err != nil && !errors.Is(err, lock.ErrLeaseLost) {
			return err
		}
	}
}

func (t *leaseLock) Unlock(int, lock.Mode) error {
	t.w.Put(t.data+1, t.home, leaseData)
	t.fence()
	return t.release()
}

func (t *leaseLock) Idle() error {
	if got := t.w.Peek(leaseData); t.c.Rank() == t.home && t.total > 0 && got != t.total {
		return fmt.Errorf("DATA is %d after %d acquires", got, t.total)
	}
	return nil
}

func openLease(b bug, total int64) func(c rma.Comm, n, home int) (lock.Table, error) {
	return func(c rma.Comm, _, home int) (lock.Table, error) {
		w, err := c.Allocate(rma.Spec{Name: "lease", Regions: []rma.Region{{Count: 1, Words: []rma.Word{
			{Name: "OWNER", Fields: []rma.Field{fieldRank, fieldGeneration, fieldNumber}}, {Name: "DATA", Class: rma.Plain},
		}}}})
		if err != nil {
			return nil, err
		}
		return &leaseLock{toy: toy{c: c, w: w, home: home, bug: b, total: total}}, nil
	}
}

// memoryLock is a lock on words of a memory node. Who takes it writes before, in the same
// doorbell, when its lease ends: others take the lock from it then.
type memoryLock struct{ toy }

// generations is how many ranks may have a place one after the other.
const generations = 4

// ends is the displacement of the word that says when the lease of a holder ends; a
// successor has another one than its predecessor.
func ends(name int64) int {
	return int(1 + generations*(fieldRank.Get(name)-1) + fieldGeneration.Get(name))
}

func (t *memoryLock) Hosts() rma.Hosts { return rma.MemoryNodes }

func (t *memoryLock) Lock(context.Context, int, lock.Mode) error {
	free, told := int64(0), false // what the caller takes the lock from
	for {
		start := t.c.Now()
		t.mine = t.name()
		t.w.Put(start+lease, t.home, ends(t.mine))
		t.fence()
		r := t.w.CompareAndSwap(t.mine, free, t.home, owner)
		if err := t.w.Flush(t.home); err != nil {
			return err
		}
		v := t.w.Value(r)
		if v != free {
			var err error
			if free, err = t.awaitEnd(v); err != nil {
				return err
			}
			continue
		}
		told = told || free != 0
		switch {
		case t.c.Now() > start+lease-promised: // too late, as if the caller had died
			free = t.mine
		case told:
			return lock.ErrOwnerDied
		default:
			return nil
		}
	}
}

// awaitEnd waits for another holder than v, and returns 0, or for the end of its lease, and
// returns v.
func (t *memoryLock) awaitEnd(v int64) (int64, error) {
	if v == 0 {
		return 0, nil
	}
	end, err := t.w.GetFlush(t.home, ends(v))
	if err != nil {
		return 0, err
	}
	_, held, err := t.w.AwaitUntil(t.home, owner, rma.NotEqual(v), t.limit(end))
	if held {
		v = 0
	}
	return v, err
}

func (t *memoryLock) Unlock(int, lock.Mode) error { return t.release() }
func (t *memoryLock) Idle() error                 { return nil }

func openMemory(b bug, _ int64) func(c rma.Comm, n, home int) (lock.Table, error) {
	return func(c rma.Comm, _, _ int) (lock.Table, error) {
		w, err := c.Allocate(rma.Spec{Name: "memory", Hosts: rma.MemoryNodes, Regions: []rma.Region{
			{Count: 1, Words: []rma.Word{{Name: "OWNER", Fields: []rma.Field{fieldRank, fieldGeneration, fieldNumber}}}},
			{Count: generations * c.Size(), Words: []rma.Word{{Name: "ENDS", Class: rma.Plain}}},
		}})
		if err != nil {
			return nil, err
		}
		return &memoryLock{toy{c: c, w: w, bug: b}}, nil
	}
}

// toyPlans are the plans of the toys: with time alone, with a death, with a successor.
func toyPlans() map[string]check.Plan {
	return map[string]check.Plan{
		"steady":    {Ranks: 2, Acquires: 2, Ticks: 1}, // no lease ends
		"time":      {Ranks: 2, Acquires: 2, Ticks: 3},
		"death":     {Ranks: 2, Acquires: 2, Ticks: 3, Crashes: 1},
		"successor": {Ranks: 2, Acquires: 1, Ticks: 3, Crashes: 1, Rejoins: 1},
	}
}

var toys = map[string]func(b bug, total int64) func(c rma.Comm, n, home int) (lock.Table, error){"lease": openLease, "memory": openMemory}

func toyPlan(p check.Plan, name string, b bug, total int64) check.Plan {
	p.Info = lock.Info{Name: name, Title: "a toy", Recovers: true, Open: toys[name](b, total)}
	p.Writers, p.MemoryNodes = p.Ranks, 1
	return p
}

// TestToysRecover: the toys without a bug pass under all schedules.
func TestToysRecover(t *testing.T) {
	for name := range toys {
		for what, p := range toyPlans() {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				if testing.Short() {
					p.Acquires = 1
				}
				x := sim.Exhaustive(sim.Unbounded)
				r, err := check.Run(toyPlan(p, name, none, 0), x)
				if err != nil {
					t.Fatal(err)
				}
				if r.Failure != nil || !r.Whole {
					report(t, toyPlan(p, name, none, 0), r.Failure)
				}
				t.Logf("%d states, %d executions, %d out of ticks", r.States, r.Stats.Executions+r.Stats.Cut, r.Stats.OutOfTicks)
			})
		}
	}
}

// TestPlantedBugsOfToys: all schedules of some plan find each bug of each toy.
func TestPlantedBugsOfToys(t *testing.T) {
	plans := toyPlans()
	for _, k := range []struct {
		toy  string
		bug  bug
		plan check.Plan
		want error
	}{
		{"lease", shortLease, plans["time"], check.ErrLease},
		{"lease", lateRelease, plans["time"], check.ErrLease},
		{"lease", noFence, plans["steady"], check.ErrIdle},
		{"lease", reusedName, plans["successor"], check.ErrLease},
		{"lease", waitsForDead, plans["death"], sim.ErrDeadlock},
		{"memory", shortLease, plans["time"], check.ErrLease},
		{"memory", lateRelease, plans["time"], check.ErrLease},
		{"memory", noFence, plans["time"], check.ErrLease},
		{"memory", reusedName, plans["successor"], check.ErrLease},
		{"memory", waitsForDead, plans["death"], sim.ErrDeadlock},
	} {
		t.Run(k.toy+"/"+k.bug.String(), func(t *testing.T) {
			t.Parallel()
			total := int64(0)
			if k.plan.Ticks == 1 {
				total = int64(k.plan.Ranks * k.plan.Acquires)
				if r, err := check.Run(toyPlan(k.plan, k.toy, none, total), sim.Exhaustive(sim.Unbounded)); err != nil || r.Failure != nil {
					t.Fatal(err, r.Failure)
				}
			}
			p := toyPlan(k.plan, k.toy, k.bug, total)
			r, err := check.Run(p, sim.Exhaustive(sim.Unbounded))
			if err != nil {
				t.Fatal(err)
			}
			if !is(r.Failure, k.want) {
				t.Fatalf("found %v in %d states, want %v", r.Failure, r.States, k.want)
			}
			t.Logf("%d states, %d executions: %v", r.States, r.Stats.Executions+r.Stats.Cut, r.Failure)
		})
	}
}

// TestCheckRecovery: the toys pass, and with a bug they do not; noFence of the lease toy shows in
// what the lock counts alone.
func TestCheckRecovery(t *testing.T) {
	for name := range toys {
		for b := none; b < bugs; b++ {
			if b == noFence && name == "lease" {
				continue
			}
			t.Run(name+"/"+b.String(), func(t *testing.T) {
				t.Parallel()
				err := locktest.CheckRecovery(toyPlan(check.Plan{}, name, b, 0).Info, check.Short, tick)
				if (err == nil) != (b == none) {
					t.Error(err)
				}
			})
		}
	}
	mutex := lookup(t, "dmcs")
	if err := locktest.CheckRecovery(mutex, check.Short, tick); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// TestToysOpenedOnce: with a clock, deaths and successors a search by memo trees is that by the
// ranks' own code.
func TestToysOpenedOnce(t *testing.T) {
	plan := check.Plan{Ranks: 2, Acquires: 1, Ticks: 2, Crashes: 1, Rejoins: 1, Guard: true}
	for name := range toys {
		for b := none; b < bugs; b++ {
			t.Run(name+"/"+b.String(), func(t *testing.T) {
				t.Parallel()
				once, anew, err := check.OpenedOnce(toyPlan(plan, name, b, 0), func() sim.Scheduler {
					x := sim.Exhaustive(sim.Unbounded)
					x.Limit = 6000
					return x
				})
				if err != nil {
					t.Fatal(err)
				}
				same(t, once, anew)
			})
		}
	}
}

func report(t *testing.T, p check.Plan, f *sim.Failure) {
	t.Helper()
	if f == nil {
		t.Fatal("the search did not come to its end")
	}
	var b strings.Builder
	if _, err := check.Report(&b, p, f); err != nil {
		fmt.Fprintln(&b, f, err)
	}
	t.Fatal(b.String())
}
