package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// The words that a lock guards in mode clients.
const (
	counter   = iota // raised by exclusive holders, in verify
	accessed         // by Visit.Accesses, last, since there may be none
	mostWords        // of a lock
)

// A worded workload wants words of data at each lock: Visit.Words.
type worded interface{ words() int }

// visitor is one rank in mode clients.
type visitor struct {
	c      rma.Comm
	cfg    *Config
	table  lock.Table
	data   *guarded
	client Client
	rng    *rand.Rand // of arrivals
	ctx    context.Context
	byLock lockSamples

	next     Visit
	buf      []int64 // of Visit.Words
	shared   bool    // the lock has a shared mode
	visits   int64   // since begin
	acquires int64   // in them
	aborts   int64   // of them
	measured bool    // begin was called
	gapNs    float64 // mean time between arrivals; 0 for a closed loop
	arrival  float64 // ns, of the next visit; 0 before the first
	acquired []int64 // ns, when each lock of a sampled visit was acquired
	lost     []bool  // which locks of the last release other ranks had taken over

	leaving  int64            // ns, when the release of a sampled visit began
	releases samples          // ps in Unlock of all locks of a visit
	before   map[string]int64 // counts of the table at begin
}

// newVisitor opens the locks on the Comm locks, which may count operations, and the data on
// c. Collective.
func newVisitor(c, locks rma.Comm, lck *Lock, cfg *Config) (*visitor, error) {
	table, err := lck.open(locks, cfg, cfg.Locks)
	if err = agree(c, cfg, err); err != nil {
		return nil, err
	}
	v := &visitor{c: c, cfg: cfg, table: table, ctx: context.Background(), shared: lck.Shared, byLock: lockSamples{}, releases: samples{}}
	if cfg.virtual != nil {
		v.byLock, v.releases = cfg.virtual.byLock, cfg.virtual.releases
	}
	if cfg.Rate > 0 {
		v.gapNs = float64(c.Size()) / cfg.Rate * 1e9
	}
	each := mostWords
	if w, ok := cfg.Workload.(worded); ok {
		each += w.words()
		v.buf = make([]int64, w.words())
	}
	if v.data, err = newGuarded(c, table, each); err != nil {
		return nil, err
	}
	node, ranks := c.Node(), lock.HostsOf(table) == rma.Ranks
	v.rng = choices(c, cfg)
	v.client, err = cfg.Workload.Client(Site{
		Rank: c.Rank(), Ranks: c.Size(), Locks: table.Len(), Homes: v.data.homes(c), Readers: cfg.Readers, Rand: choices(c, cfg),
		Local: func(id int) bool { return ranks && node.Has(table.Home(id)) },
	})
	return v, agree(c, cfg, err)
}

func (v *visitor) active() bool { return !lock.Serves(v.table) }

func (v *visitor) leave() error { return lock.Leave(v.table) }

// begin ends the warm-up. Arrivals of an open loop begin anew.
func (v *visitor) begin() {
	v.visits, v.acquires, v.aborts, v.arrival, v.measured = 0, 0, 0, 0, true
	v.before = v.tableCounts()
}

func (v *visitor) taken(int64) (acquires, aborts int64, byLock lockSamples) {
	return v.acquires, v.aborts, v.byLock
}

func (v *visitor) free() error {
	if err := v.table.Free(); err != nil {
		return err
	}
	return v.data.w.Free()
}

// run makes n visits. The clock is read where the workload waits.
func (v *visitor) run(n int) error {
	for range n {
		v.draw()
		v.arrive()
		if _, err := v.visit(false); err != nil {
			return err
		}
		v.pause(v.next.Think.Nanoseconds())
	}
	return nil
}

func (v *visitor) sample() (t timing, err error) {
	v.draw()
	begin := v.arrive()
	if begin == 0 {
		begin = v.c.Now()
	}
	if t.inside, err = v.visit(true); err != nil {
		return t, err
	}
	t.now = v.c.Now()
	t.ns = t.now - begin - t.inside
	if v.measured {
		for i, a := range v.next.Locks {
			v.byLock.record(a.Lock, v.acquired[i+1]-v.acquired[i])
		}
		if v.next.Words == 0 { // the clock is not read between the words and the release
			v.releases.record(1000*(t.now-v.leaving), 1)
		}
		v.cfg.virtual.visited(t.now)
	}
	v.pause(v.next.Think.Nanoseconds())
	return t, nil
}

// visit makes the visit that was drawn, from its first Lock to its last Unlock, until it
// succeeds. With timed it notes when it acquired each lock, and returns the time between
// acquire and release, of the attempt that succeeded.
func (v *visitor) visit(timed bool) (insideNs int64, err error) {
	for failures := 0; ; failures++ {
		held, err := v.attempt(timed)
		if err != nil {
			return 0, err
		}
		all := held == len(v.next.Locks)
		if all {
			if timed {
				v.leaving = v.acquired[held]
			}
			if err := v.work(); err != nil {
				return 0, err
			}
			if timed && (v.next.Accesses > 0 || v.next.Inside > 0) {
				now := v.c.Now()
				insideNs, v.leaving = now-v.leaving, now
			}
		}
		if all && v.next.Fails > failures {
			err = v.abandon()
			all = false
		} else {
			var lost bool
			lost, err = v.release(held)
			all = all && !lost
		}
		if all || err != nil {
			return insideNs, err
		}
		v.aborts++
		v.restart(failures)
	}
}

// draw draws the next visit.
func (v *visitor) draw() {
	v.next.Locks = v.next.Locks[:0]
	v.client.Next(&v.next)
	v.visits++
	v.acquires += int64(len(v.next.Locks))
}

// arrive waits, in an open loop, for the time at which the visit was to begin, and returns it:
// if the visit before took longer, it is past. Gaps between arrivals are exponential. In a
// closed loop the result is 0.
func (v *visitor) arrive() int64 {
	if v.gapNs == 0 {
		return 0
	}
	now := v.c.Now()
	if v.arrival == 0 {
		v.arrival = float64(now)
	}
	v.arrival += v.gapNs * v.rng.ExpFloat64()
	at := int64(math.Ceil(v.arrival))
	v.pause(at - now)
	return at
}

// attempt acquires the visit's locks, and returns how many it has: fewer where one of them had
// it give way.
func (v *visitor) attempt(timed bool) (held int, err error) {
	if timed {
		v.acquired = append(v.acquired[:0], v.c.Now())
	}
	for i, a := range v.next.Locks {
		err := v.take(a)
		switch {
		case err == nil || errors.Is(err, lock.ErrOwnerDied): // data here is never half written
		case errors.Is(err, lock.ErrGiveWay):
			return i, nil
		default:
			return i, err
		}
		if timed {
			v.acquired = append(v.acquired, v.c.Now())
		}
	}
	return len(v.next.Locks), nil
}

// take acquires one lock, for as many leases as the visit wants.
func (v *visitor) take(a Acquire) error {
	if v.next.Leases > 1 {
		if t, ok := tableAs[leaser](v.table); ok {
			return t.LockFor(v.ctx, a.Lock, a.Mode, v.next.Leases)
		}
	}
	return v.table.Lock(v.ctx, a.Lock, a.Mode)
}

// A leaser is a table with leases of several slots.
type leaser interface {
	LockFor(ctx context.Context, id int, mode lock.Mode, slots int) error
}

// An abandoner is a table whose locks a rank may keep as if it had died with them.
type abandoner interface{ Abandon(id int) }

// tableAs is a table, or one that it unwraps to, as another type.
func tableAs[T any](t lock.Table) (T, bool) {
	for {
		if as, ok := t.(T); ok {
			return as, true
		}
		u, ok := t.(interface{ Unwrap() lock.Table })
		if !ok {
			var none T
			return none, false
		}
		t = u.Unwrap()
	}
}

// release releases the first of the visit's locks, the last one of them first, and reports
// whether other ranks had taken one over.
func (v *visitor) release(held int) (lost bool, err error) {
	v.lost = v.lost[:0]
	for range v.next.Locks {
		v.lost = append(v.lost, false)
	}
	for i := held - 1; i >= 0; i-- {
		a := v.next.Locks[i]
		err := v.table.Unlock(a.Lock, a.Mode)
		if errors.Is(err, lock.ErrLeaseLost) {
			v.lost[i], lost = true, true
		} else if err != nil {
			return lost, err
		}
	}
	return lost, nil
}

// abandon keeps the visit's locks as a client that dies does.
func (v *visitor) abandon() error {
	t, ok := tableAs[abandoner](v.table)
	if !ok {
		return fmt.Errorf("lock %q has no method Abandon, so that no visit can fail and keep its locks: %w", v.cfg.Lock, ErrConfig)
	}
	for _, a := range v.next.Locks {
		t.Abandon(a.Lock)
	}
	return nil
}

// The pause after a visit that failed is random, up to a bound that doubles: appendix A.3 of
// dslr.
const (
	restartFirst = 10_000     // ns
	restartLast  = 10_000_000 // ns
)

// restart pauses before another attempt.
func (v *visitor) restart(failures int) {
	v.pause(v.rng.Int64N(int64(min(restartFirst<<min(failures, 20), restartLast)) + 1))
}

// work is what is done with the locks held.
func (v *visitor) work() error {
	for _, a := range v.next.Locks {
		host, disp := v.data.word(a.Lock, accessed)
		for range v.next.Accesses {
			var err error
			if a.Mode == lock.Shared {
				_, err = v.data.w.GetFlush(host, disp)
			} else {
				err = v.data.w.PutFlush(int64(v.c.Rank()), host, disp)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := v.transfer((*rma.Window).GetBulk, false); err != nil {
		return err
	}
	compute(v.c, v.cfg, v.next.Inside.Nanoseconds())
	return v.transfer((*rma.Window).PutBulk, true)
}

// transfer reads or writes the visit's words at each lock, or at exclusive ones.
func (v *visitor) transfer(do func(w *rma.Window, b []int64, host, disp int), exclusive bool) error {
	if v.next.Words == 0 {
		return nil
	}
	for _, a := range v.next.Locks {
		if exclusive && (a.Mode == lock.Shared || a.Reads) {
			continue
		}
		host, disp := v.data.word(a.Lock, mostWords)
		do(v.data.w, v.buf[:v.next.Words], host, disp)
		if err := v.data.w.Flush(host); err != nil {
			return err
		}
	}
	return nil
}

// pause lets time pass with nothing to do: asleep as long as that is sure to end in time, then
// with the processor left to other ranks of the process.
func (v *visitor) pause(ns int64) {
	const slack = 2_000_000 // by which a Sleep may be late
	switch {
	case ns <= 0:
		return
	case v.cfg.virtual != nil:
		v.c.Sleep(ns)
		return
	}
	end := v.c.Now() + ns
	if ns > slack {
		v.c.Sleep(ns - slack)
	}
	for v.c.Now() < end {
		runtime.Gosched()
	}
}
