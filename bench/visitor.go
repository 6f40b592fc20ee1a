package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// The words that a lock guards in mode clients.
const (
	counter   = iota // raised by exclusive holders, in verify
	accessed         // by Visit.Accesses, last, since there may be none
	mostWords        // of a lock
)

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
	shared   bool    // the lock has a shared mode
	visits   int64   // since begin
	acquires int64   // in them
	measured bool    // begin was called
	gapNs    float64 // mean time between arrivals; 0 for a closed loop
	arrival  float64 // ns, of the next visit; 0 before the first
	acquired []int64 // ns, when each lock of a sampled visit was acquired
}

// newVisitor opens the locks on the Comm locks, which may count operations, and the data on
// c. Collective.
func newVisitor(c, locks rma.Comm, lck *Lock, cfg *Config) (*visitor, error) {
	table, err := lck.open(locks, cfg, cfg.Locks)
	if err = agree(c, cfg, err); err != nil {
		return nil, err
	}
	v := &visitor{c: c, cfg: cfg, table: table, ctx: context.Background(), shared: lck.Shared, byLock: lockSamples{}}
	if cfg.virtual != nil {
		v.byLock = cfg.virtual.byLock
	}
	if cfg.Rate > 0 {
		v.gapNs = float64(c.Size()) / cfg.Rate * 1e9
	}
	if v.data, err = newGuarded(c, table, mostWords); err != nil {
		return nil, err
	}
	node, ranks := c.Node(), lock.HostsOf(table) == rma.Ranks
	v.rng = choices(c, cfg)
	v.client, err = cfg.Workload.Client(Site{
		Rank: c.Rank(), Ranks: c.Size(), Locks: table.Len(), Readers: cfg.Readers, Rand: choices(c, cfg),
		Local: func(id int) bool { return ranks && node.Has(table.Home(id)) },
	})
	return v, agree(c, cfg, err)
}

func (v *visitor) active() bool { return true }

// begin ends the warm-up. Arrivals of an open loop begin anew.
func (v *visitor) begin() {
	v.visits, v.acquires, v.arrival, v.measured = 0, 0, 0, true
}

func (v *visitor) taken(int64) (int64, lockSamples) { return v.acquires, v.byLock }

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
		if err := v.lock(); err != nil {
			return err
		}
		if err := v.work(); err != nil {
			return err
		}
		if err := v.release(); err != nil {
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
	v.acquired = append(v.acquired[:0], v.c.Now())
	for _, a := range v.next.Locks {
		if err := v.table.Lock(v.ctx, a.Lock, a.Mode); err != nil {
			return t, err
		}
		v.acquired = append(v.acquired, v.c.Now())
	}
	got := v.acquired[len(v.acquired)-1]
	if err := v.work(); err != nil {
		return t, err
	}
	if v.next.Accesses > 0 || v.next.Inside > 0 {
		t.inside = v.c.Now() - got
	}
	if err := v.release(); err != nil {
		return t, err
	}
	t.now = v.c.Now()
	t.ns = t.now - begin - t.inside
	if v.measured {
		for i, a := range v.next.Locks {
			v.byLock.record(a.Lock, v.acquired[i+1]-v.acquired[i])
		}
	}
	v.pause(v.next.Think.Nanoseconds())
	return t, nil
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

// lock acquires the visit's locks.
func (v *visitor) lock() error {
	for _, a := range v.next.Locks {
		if err := v.table.Lock(v.ctx, a.Lock, a.Mode); err != nil {
			return err
		}
	}
	return nil
}

// release releases the locks, the last one first.
func (v *visitor) release() error {
	for i := len(v.next.Locks) - 1; i >= 0; i-- {
		a := v.next.Locks[i]
		if err := v.table.Unlock(a.Lock, a.Mode); err != nil {
			return err
		}
	}
	return nil
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
	compute(v.c, v.cfg, v.next.Inside.Nanoseconds())
	return nil
}

// verify checks that the locks exclude, in visits after the measured ones: exclusive holders
// raise the locks' counters without atomics, so that increments are lost if two of them are in;
// for shared holders the counters must not change. Collective.
func (v *visitor) verify() error {
	v.gapNs = 0
	made := samples{} // increments by lock
	var wrong error
	for range min(max(v.visits/10, 10), 1000) {
		v.draw()
		if err := v.lock(); err != nil {
			return err
		}
		for _, a := range v.next.Locks {
			n, err := v.touch(a)
			if errors.Is(err, ErrExclusion) {
				wrong = err // the ranks go on together
			} else if err != nil {
				return err
			}
			made[int64(a.Lock)] += n
		}
		if err := v.release(); err != nil {
			return err
		}
	}
	if err := agree(v.c, v.cfg, wrong); err != nil {
		return err
	}
	return agree(v.c, v.cfg, v.compare(made))
}

// increments are those of one lock's counter.
type increments struct {
	lock int
	made int64
}

// compare compares counters with the increments of all ranks. There may be many locks of which
// few were acquired, so it goes by lock, and each rank looks at some.
func (v *visitor) compare(made samples) error {
	all, err := rma.Combine(v.c, made.encode(), func(all [][]byte) ([]increments, error) {
		sum := samples{}
		for _, b := range all {
			if err := sum.merge(b); err != nil {
				return nil, err
			}
		}
		out := make([]increments, 0, len(sum))
		for lock, n := range sum {
			out = append(out, increments{int(lock), n})
		}
		slices.SortFunc(out, func(a, b increments) int { return cmp.Compare(a.lock, b.lock) })
		return out, nil
	})
	if err != nil {
		return err
	}
	for i := v.c.Rank(); i < len(all); i += v.c.Size() {
		host, disp := v.data.word(all[i].lock, counter)
		found, err := v.data.w.GetFlush(host, disp)
		if err != nil {
			return err
		}
		if found != all[i].made {
			return fmt.Errorf("%d increments of a counter were made under lock %d of %q and it holds %d: %w",
				all[i].made, all[i].lock, v.cfg.Lock, found, ErrExclusion)
		}
	}
	return nil
}

// touch reads a lock's counter, waits for 1 to 4 us, and raises it, or reads it again if the
// lock is shared. It returns the number of increments.
func (v *visitor) touch(a Acquire) (made int64, err error) {
	host, disp := v.data.word(a.Lock, counter)
	before, err := v.data.w.GetFlush(host, disp)
	if err != nil {
		return 0, err
	}
	compute(v.c, v.cfg, 1000+v.rng.Int64N(3001))
	if a.Mode == lock.Exclusive || !v.shared {
		return 1, v.data.w.PutFlush(before+1, host, disp)
	}
	after, err := v.data.w.GetFlush(host, disp)
	if err == nil && after != before {
		err = fmt.Errorf("the counter of lock %d went from %d to %d while lock %q was shared: %w", a.Lock, before, after, v.cfg.Lock, ErrExclusion)
	}
	return 0, err
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
