package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"

	"github.com/rmalock/rmalock/internal/handle"
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
	h := p.newMonitor()
	x, ok := s.(*sim.ExhaustiveSearch)
	h.states = ok
	s, err := p.atPace(s, h)
	if err != nil {
		return Result{}, err
	}
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
	return p.search().Replay(schedule, p.body(p.newMonitor()))
}

func (p *Plan) search() sim.Search {
	return sim.Search{
		Node: p.nodes(), MemoryNodes: p.MemoryNodes, Faults: p.Faults, MaxSteps: p.MaxSteps, CPUFar: p.CPUFar,
		Ticks: p.Ticks, TickNs: p.TickNs, Crashes: p.Crashes, Rejoins: p.Rejoins, MaxDelay: p.MaxDelay,
	}
}

func (p *Plan) newMonitor() *monitor {
	h := &monitor{
		occupancy: newOccupancy(p.Ranks), promises: make([][]lock.Promise, p.Ranks), doors: make([][]func(), p.Ranks),
		tickNs: cmp.Or(p.TickNs, sim.DefaultTickNs),
	}
	h.hazards = p.hazards()
	h.calm, h.prompt, h.mostForced = p.Pace == Forced || p.Pace == Timely, p.Prompt, p.Recover
	h.visiting = make([]visiting, p.Ranks)
	return h
}

// client is one rank in an execution.
type client struct {
	p        *Plan
	m        *monitor
	s        *sim.Comm
	table    lock.Table
	data     *rma.Window // two words that the lock guards, or nil
	leases   bool        // a holder may lose the lock: its Unlock says so
	wrote    int64       // exclusive visits
	position Position
	class    uint64           // of ranks that may change places, once it is known
	snapshot *handle.Snapshot // of what it has opened, if it is opened once for all executions
}

// allExecutions are the types of what a Disturb keeps for all executions.
var allExecutions = []reflect.Type{reflect.TypeFor[Verdict](), reflect.TypeFor[recording]()}

// open opens the lock and, if there is any, what it guards.
func (k *client) open(c rma.Comm) error {
	over := c
	if k.p.Alike {
		over = &nameless{over, k}
	}
	if k.p.Stands {
		over = &atClock{over, k}
	}
	if k.p.Disturb != nil {
		over = k.p.Disturb(over, func() Position { return k.position })
	}
	var err error
	if k.table, err = k.p.open(over); err != nil {
		return err
	}
	k.leases = k.p.Info.Recovers || leases(k.table, k.p.Info.Shared)
	if k.p.Guard {
		spec := rma.DataSpec("guarded", 2)
		if k.leases { // a holder that is taken for dead may still write
			spec.Regions[0].Words[0].Class = rma.Plain
		}
		k.data, err = c.Allocate(spec)
	}
	return err
}

// leases reports whether a table promises leases in some mode. A lock may have them and yet not
// recover: the readers' alone, say.
func leases(t lock.Table, shared bool) bool {
	k, ok := t.(lock.Checked)
	return ok && (k.Promise(lock.Exclusive).Lease > 0 || shared && k.Promise(lock.Shared).Lease > 0)
}

// body is what every rank runs.
func (p *Plan) body(h *monitor) func(rma.Comm) error {
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
		if rma.Generation(c) > 0 { // it opens the lock itself
			k = &client{}
		}
		if k.snapshot != nil {
			k.snapshot.Restore()
			k.wrote, k.position = 0, Position{}
		} else {
			*k = client{p: p, m: h}
			k.s, _ = sim.Of(c)
			if err := k.open(c); err != nil {
				return err
			}
			if as, ok := handle.TakeSnapshot(allExecutions, k.table, k.data); ok && !p.reopen && k.s.Generation() == 0 {
				k.snapshot = as
				k.s.Keep()
				k.s.Memoise(h)
			}
		}
		if c.Rank() == 0 {
			k.s.Start(start)
			if p.hazards() {
				h.s = k.s
				k.s.Watch(h)
			}
		}
		if p.Alike {
			if k.class == 0 {
				k.class = k.classOf(scripts[c.Rank()])
			}
			k.s.Alike(k.class)
		}
		if err := k.s.Begin(); err != nil {
			return err
		}
		if p.Alike {
			k.s.Extra(h.hashOfNone)
			k.s.ExtraOf(h.hashOf)
		} else {
			k.s.Extra(h.hash)
		}
		h.promised(k.s, k.table, scripts)
		script := scripts[c.Rank()]
		if lock.Serves(k.table) {
			script = nil
		}
		for i, v := range script {
			k.position.Visit = i
			k.stands(0)
			if err := k.visit(v); err != nil {
				return err
			}
		}
		if err := k.leave(h.states); err != nil {
			return err
		}
		k.s.Home(func() uint64 { return uint64(k.wrote) })
		if err := k.s.End(); err != nil {
			return err
		}
		return k.rest()
	}
}

// classOf is a number that ranks have in common which may change places (Plan.Alike).
func (k *client) classOf(script []visit) uint64 {
	x := handle.Fingerprint(k.table)*31 + b2u(lock.Serves(k.table))
	for _, v := range script {
		x = scatter(x) + uint64(v.mode)<<32 + uint64(v.patience)<<1 + b2u(v.try)
	}
	return x
}

// nameless is the Comm of a lock whose ranks may change places (Plan.Alike).
type nameless struct {
	rma.Comm
	k *client
}

func (c *nameless) asked() {
	if p := c.k.position.Phase; p != Outside && p != Inside {
		c.k.s.Effect(func() { c.k.s.Fail(fmt.Errorf("%w: the lock asks in an %v which rank it is", sim.ErrAlike, p)) })
	}
}

func (c *nameless) Rank() int {
	c.asked()
	return c.Comm.Rank()
}

func (c *nameless) Node() rma.Node {
	c.asked()
	return c.Comm.Node()
}

func (c *nameless) Split(color, key int) (rma.Comm, error) {
	c.asked()
	return c.Comm.Split(color, key)
}

func (c *nameless) Allgather(words []int64) ([]int64, error) {
	c.asked()
	return c.Comm.Allgather(words)
}

// stands says that all that the rank knows is in its handle, at a place of its code: states of a
// search that differ by what it has learnt on the way are one.
func (k *client) stands(place uint64) {
	if k.m.states {
		k.s.Home(func() uint64 {
			return ((handle.Fingerprint(k.table)*31+uint64(k.position.Visit))*31+uint64(k.wrote))*31 + place
		})
	}
}

// atClock is the Comm of a lock that keeps in its handle all that it knows when it reads the clock
// (Plan.Stands). Where it stands is its calls.
type atClock struct {
	rma.Comm
	k *client
}

func (c *atClock) Now() int64 {
	if c.k.position.Phase != Outside && c.k.position.Phase != Inside && !c.k.s.Repeats() {
		var calls [32]uintptr
		place := uint64(0)
		for _, pc := range calls[:runtime.Callers(2, calls[:])] {
			place = place*31 + uint64(pc)
		}
		c.k.stands(place)
	}
	return c.Comm.Now()
}

// leave is lock.Leave: a rank that serves is in it from the beginning. Between two requests it
// is where it was before but for its handle.
func (k *client) leave(states bool) error {
	s, ok := lock.AsServer(k.table)
	for more := ok; more; {
		if states {
			k.s.Home(func() uint64 { return handle.Fingerprint(k.table) })
		}
		var err error
		if more, err = s.Serve(); err != nil {
			return err
		}
	}
	return nil
}

// visit acquires and releases the lock.
func (k *client) visit(v visit) error {
	if k.p.Tries {
		k.s.Sleep(0) // other ranks may come first
		k.s.Effect(func() { k.m.begins(k.s, v.try) })
		defer k.s.Effect(func() { k.m.ends(k.s) })
	}
	before := k.s.Counts()
	if k.p.Pace == Timely {
		k.s.Effect(func() { k.m.visits(k.s, true) })
		defer k.s.Effect(func() { k.m.visits(k.s, false) })
	}
	if k.m.hazards && (!k.p.Stands || k.m.bounded(k.s.WorldRank())) { // where timed is asked
		k.s.Effect(func() { k.m.began[k.s.WorldRank()] = k.s.Clock() })
	}
	k.position.Phase, k.position.Mode = Acquiring, v.mode
	if v.try {
		k.position.Phase = Trying
	} else if v.patience == 0 {
		k.s.Effect(func() { k.m.wants(k.s, v.mode) })
	}
	in, err := k.acquire(v)
	told := errors.Is(err, lock.ErrOwnerDied)
	if k.p.Info.Recovers && told {
		in, err = true, nil
	}
	k.position.Phase = Outside
	if err != nil || !in {
		k.s.Mark("does not get the lock")
		k.s.Effect(func() { k.m.refused(k.s, v, err) })
		return err
	}
	k.position.Phase = Inside
	k.s.Effect(func() { k.m.enters(k.s, v.mode, told) })
	if !v.try && v.patience == 0 { // the promise is about queueing
		k.cost("Lock", before, v.mode, func(p lock.Promise) int { return p.Acquire })
	}
	if k.p.Disturb == nil { // what it has done to the rank's operations is not in the handle
		k.stands(1)
	}
	if err := k.useGuarded(v.mode); err != nil {
		return err
	}
	k.s.Effect(func() { k.m.leaves(k.s, v.mode) })
	before = k.s.Counts()
	k.position.Phase = Releasing
	err = k.table.Unlock(0, v.mode)
	k.position.Phase = Outside
	if k.leases {
		lost := errors.Is(err, lock.ErrLeaseLost)
		if lost {
			err = nil
		}
		k.s.Effect(func() { k.m.released(k.s, lost) })
	}
	k.cost("Unlock", before, v.mode, func(p lock.Promise) int { return p.Release })
	return err
}

// acquire acquires the lock. It reports false if a try fails or a context ends first.
func (k *client) acquire(v visit) (in bool, err error) {
	switch {
	case v.try:
		k.s.Mark("tries to take the lock, %v", v.mode)
		in, err = k.table.TryLock(0, v.mode)
		if errors.Is(err, errors.ErrUnsupported) {
			k.s.Effect(func() { k.m.at[k.s.WorldRank()].alone = false })
			return false, nil
		}
		return in, err
	case v.patience > 0:
		k.s.Mark("wants the lock for a while, %v", v.mode)
		c := &endingContext{context.Background(), k, 0}
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

// endingContext is a context that ends after left checks of Err.
type endingContext struct {
	context.Context
	k    *client
	left int
}

// set sets left here and in the monitor, since the rank's behaviour depends on it.
func (p *endingContext) set(left int) {
	p.left = left
	p.k.s.Effect(func() { p.k.m.at[p.k.s.WorldRank()].patience = left })
}

var ended = make(chan struct{})

func (p *endingContext) Done() <-chan struct{} { return ended }

func (p *endingContext) Err() error {
	if p.set(max(0, p.left-1)); p.left > 0 {
		return nil
	}
	return context.DeadlineExceeded
}

// cost compares the remote operations of an acquire or a release with the lock's promise.
func (k *client) cost(what string, before sim.Counts, mode lock.Mode, of func(lock.Promise) int) {
	promise := k.m.promises[k.s.WorldRank()]
	if promise == nil || k.p.uncounted || k.p.Stands {
		return
	}
	after := k.s.Counts()
	if after.Backoffs != before.Backoffs || after.Late != before.Late {
		return
	}
	n, most := after.Others()-before.Others(), of(promise[mode])
	if n <= most || most == lock.Unbounded {
		return
	}
	err := fmt.Errorf("%w: %s (%v) of rank %d made %d, at most %d are promised", ErrCost, what, mode, k.s.WorldRank(), n, most)
	k.s.Effect(func() {
		if !k.m.timed(k.s, k.s.WorldRank()) {
			k.s.Fail(err)
		}
	})
}

// useGuarded lets a step pass for other ranks, and reads, and as writer changes, the words
// that the lock guards.
func (k *client) useGuarded(mode lock.Mode) error {
	if k.data == nil {
		k.s.Sleep(0)
		return nil
	}
	home := k.s.Size() - 1
	a := k.data.Get(home, 0)
	b := k.data.Get(home, 1)
	if err := k.data.Flush(home); err != nil {
		return err
	}
	if x, y := k.data.Value(a), k.data.Value(b); x != y {
		k.s.Effect(func() { k.m.unequal(k.s, mode, x, y) })
	}
	if mode == lock.Shared {
		return nil
	}
	k.wrote++
	v := k.data.Value(a)
	k.writes(writing)
	k.data.Put(v+1, home, 0)
	k.data.Put(v+1, home, 1)
	err := k.data.Flush(home)
	k.writes(written)
	return err
}

// writes notes how far the writer is with what the lock guards, where it may die in between.
func (k *client) writes(how progress) {
	if k.p.hazards() {
		k.s.Effect(func() { k.m.writes[k.s.WorldRank()] = how })
	}
}

// rest checks the lock when all ranks have finished.
func (k *client) rest() error {
	sum, err := k.s.Allgather([]int64{k.wrote})
	if err != nil {
		return err
	}
	if k.data != nil && k.s.Rank() == k.s.Size()-1 && !k.m.disturbed {
		want := int64(0)
		for _, n := range sum {
			want += n
		}
		if got := k.data.Peek(0); got != want {
			return fmt.Errorf("%w: the word is %d after %d exclusive visits", ErrGuarded, got, want)
		}
	}
	if err := k.counted(); err != nil {
		return err
	}
	if promises, ok := k.table.(lock.Checked); ok && !k.m.died {
		if err := promises.Idle(); err != nil {
			return fmt.Errorf("%w: %w", ErrIdle, err)
		}
	}
	return nil
}
