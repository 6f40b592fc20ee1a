package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// A Result is what a check found.
type Result struct {
	Stats   sim.Stats
	States  int  // that Exhaustive saw
	Whole   bool // Exhaustive came to its end
	Most    int  // entries that a waiting rank saw
	Failure *sim.Failure
}

// Run checks a plan under the schedules of s.
func Run(p Plan, s sim.Scheduler) (Result, error) {
	if err := p.validate(); err != nil {
		return Result{}, err
	}
	h := p.hall()
	x, ok := s.(*sim.Exhaustion)
	h.states = ok
	stats, f := p.search().Run(s, p.body(h))
	r := Result{Stats: stats, Most: h.most, Failure: f}
	if ok {
		r.States, r.Whole = x.States(), !x.Left && f == nil
	}
	return r, nil
}

// Replay runs a plan under one schedule and returns its trace, and what went wrong.
func Replay(p Plan, schedule string) ([]sim.Event, *sim.Failure, error) {
	if err := p.validate(); err != nil {
		return nil, nil, err
	}
	return p.search().Replay(schedule, p.body(p.hall()))
}

func (p *Plan) search() sim.Search {
	return sim.Search{Node: p.nodes(), Faults: p.Faults, MaxSteps: p.MaxSteps}
}

func (p *Plan) hall() *hall {
	return &hall{present: newPresent(p.Ranks), promises: make([][]lock.Promise, p.Ranks), doors: make([][]func(), p.Ranks)}
}

// client is one rank's part in an execution.
type client struct {
	p     *Plan
	h     *hall
	s     *sim.Comm
	table lock.Table
	data  *rma.Window // two words that the lock guards, or nil
	wrote int64       // exclusive visits
	at    Moment
	as    *snapshot // of what it has opened, if it is opened once for all executions
}

// open opens the lock and, if there is any, what it guards.
func (k *client) open(c rma.Comm) error {
	over := c
	if k.p.Disturb != nil {
		over = k.p.Disturb(c, func() Moment { return k.at })
	}
	var err error
	if k.table, err = k.p.open(over); err != nil {
		return err
	}
	if k.p.Guard {
		k.data, err = c.Allocate(rma.DataSpec("guarded", 2))
	}
	return err
}

// body is what every rank runs.
func (p *Plan) body(h *hall) func(rma.Comm) error {
	all := make([]client, p.Ranks)
	scripts := make([][]visit, p.Ranks)
	for r := range scripts {
		scripts[r] = p.visits(r)
	}
	start := func() {
		h.reset()
		if p.Tick != nil {
			p.Tick()
		}
	}
	return func(c rma.Comm) error {
		k := &all[c.Rank()]
		if k.as != nil {
			k.as.restore()
			k.wrote, k.at = 0, Moment{}
		} else {
			*k = client{p: p, h: h}
			k.s, _ = sim.Of(c)
			if err := k.open(c); err != nil {
				return err
			}
			if as, ok := photograph(k.table, k.data); ok && !p.reopen {
				k.as = as
				k.s.Keep()
				k.s.Recall(h)
			}
		}
		if c.Rank() == 0 {
			k.s.Start(start)
		}
		if err := k.s.Begin(); err != nil {
			return err
		}
		k.s.Extra(h.hash)
		h.promised(k.s, k.table, scripts)
		for i, v := range scripts[c.Rank()] {
			if h.states {
				k.s.Home(func() uint64 { return (fingerprint(k.table)*31+uint64(i))*31 + uint64(k.wrote) })
			}
			k.at.Visit = i
			if err := k.visit(v); err != nil {
				return err
			}
		}
		k.s.Home(func() uint64 { return uint64(k.wrote) })
		if err := k.s.End(); err != nil {
			return err
		}
		return k.rest()
	}
}

// visit takes the lock and lets it go.
func (k *client) visit(v visit) error {
	if k.p.Tries {
		k.s.Sleep(1) // it may want nothing for a while
		k.s.Act(func() { k.h.begins(k.s, v.try) })
		defer k.s.Act(func() { k.h.ends(k.s) })
	}
	before := k.s.Counts()
	k.at.Phase, k.at.Mode = Acquiring, v.mode
	if v.try {
		k.at.Phase = Trying
	} else if v.patience == 0 {
		k.s.Act(func() { k.h.wants(k.s, v.mode) })
	}
	in, err := k.acquire(v)
	k.at.Phase = Outside
	if err != nil || !in {
		k.s.Mark("does not get the lock")
		k.s.Act(func() { k.h.refused(k.s, v, err) })
		return err
	}
	k.at.Phase = Inside
	k.s.Act(func() { k.h.enters(k.s, v.mode) })
	if !v.try && v.patience == 0 { // the promise is about queueing
		k.cost("Lock", before, v.mode, func(p lock.Promise) int { return p.Acquire })
	}
	if err := k.look(v.mode); err != nil {
		return err
	}
	k.s.Act(func() { k.h.leaves(k.s, v.mode) })
	before = k.s.Counts()
	k.at.Phase = Releasing
	err = k.table.Unlock(0, v.mode)
	k.at.Phase = Outside
	k.cost("Unlock", before, v.mode, func(p lock.Promise) int { return p.Release })
	return err
}

// acquire wants the lock. It does not get it if it does not wait long enough.
func (k *client) acquire(v visit) (in bool, err error) {
	switch {
	case v.try:
		k.s.Mark("tries to take the lock, %v", v.mode)
		in, err = k.table.TryLock(0, v.mode)
		if errors.Is(err, errors.ErrUnsupported) {
			k.s.Act(func() { k.h.alone[k.s.World()] = false })
			return false, nil
		}
		return in, err
	case v.patience > 0:
		k.s.Mark("wants the lock for a while, %v", v.mode)
		c := &patience{context.Background(), k, 0}
		c.set(v.patience)
		err = k.table.Lock(c, 0, v.mode)
		c.set(0)
		if errors.Is(err, lock.ErrDeadline) || errors.Is(err, errors.ErrUnsupported) {
			return false, nil
		}
	default:
		k.s.Mark("wants the lock, %v", v.mode)
		err = k.table.Lock(context.Background(), 0, v.mode)
	}
	return err == nil, err
}

// patience is a context that ends when it has been looked at so often.
type patience struct {
	context.Context
	k    *client
	left int
}

// set tells the check too: what a rank does next depends on it.
func (p *patience) set(left int) {
	p.left = left
	p.k.s.Act(func() { p.k.h.patience[p.k.s.World()] = left })
}

var ended = make(chan struct{})

func (p *patience) Done() <-chan struct{} { return ended }

func (p *patience) Err() error {
	if p.set(max(0, p.left-1)); p.left > 0 {
		return nil
	}
	return context.DeadlineExceeded
}

// cost compares what an acquire or a release did with what the lock promises.
func (k *client) cost(what string, before sim.Counts, mode lock.Mode, of func(lock.Promise) int) {
	promise := k.h.promises[k.s.World()]
	if promise == nil || k.p.uncounted {
		return
	}
	after := k.s.Counts()
	if after.Backoffs != before.Backoffs {
		return
	}
	if n, most := after.Others()-before.Others(), of(promise[mode]); n > most && most != lock.Unbounded {
		k.s.Fail(fmt.Errorf("%w: %s (%v) of rank %d made %d, at most %d are promised", ErrCost, what, mode, k.s.World(), n, most))
	}
}

// look is what a holder does: it lets others come, and changes or reads what the
// lock guards.
func (k *client) look(mode lock.Mode) error {
	if k.data == nil {
		k.s.Sleep(1)
		return nil
	}
	home := k.s.Size() - 1
	a := k.data.Get(home, 0)
	b := k.data.Get(home, 1)
	if err := k.data.Flush(home); err != nil {
		return err
	}
	if x, y := k.data.Value(a), k.data.Value(b); x != y {
		k.s.Fail(fmt.Errorf("%w: rank %d (%v) read %d and %d, which every writer makes equal", ErrGuarded, k.s.World(), mode, x, y))
	}
	if mode == lock.Shared {
		return nil
	}
	k.wrote++
	v := k.data.Value(a)
	k.data.Put(v+1, home, 0)
	k.data.Put(v+1, home, 1)
	return k.data.Flush(home)
}

// rest checks the lock when all are through.
func (k *client) rest() error {
	sum, err := k.s.Allgather([]int64{k.wrote})
	if err != nil {
		return err
	}
	if k.data != nil && k.s.Rank() == k.s.Size()-1 {
		want := int64(0)
		for _, n := range sum {
			want += n
		}
		if got := k.data.Peek(0); got != want {
			return fmt.Errorf("%w: the word is %d after %d exclusive visits", ErrGuarded, got, want)
		}
	}
	if promises, ok := k.table.(lock.Checked); ok {
		if err := promises.Idle(); err != nil {
			return fmt.Errorf("%w: %w", ErrIdle, err)
		}
	}
	return nil
}
