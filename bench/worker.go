package bench

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// A runner is one rank at a mode.
type runner interface {
	active() bool // whether this rank takes the lock
	begin()       // ends the warm-up
	leave() error // lock.Leave of the locks
	run(n int) error
	sample() (timing, error) // run(1), timed
	// taken is the number of acquires since begin, in so many runs, of attempts that failed, and
	// the times by lock, nil where they are not kept.
	taken(runs int64) (acquires, aborts int64, byLock lockSamples)
	// verify checks the data that the workload has changed. Collective.
	verify() error
	free() error // collective
}

// timing says, in ns, how long an acquire took.
type timing struct {
	ns     int64 // in acquire and release
	inside int64 // in the critical section
	now    int64 // the time at the end of the release
}

// open opens the workload: locks on counted, data on c. Collective.
func open(c, counted rma.Comm, lck *Lock, cfg *Config) (runner, error) {
	switch cfg.Mode {
	case DHT:
		return newDHTWorker(c, counted, lck, cfg)
	case Clients:
		if s, ok := cfg.structured(); ok {
			return newOperator(c, counted, lck, s, cfg)
		}
		return newVisitor(c, counted, lck, cfg)
	}
	return newWorker(c, counted, lck, cfg)
}

// choices is a rank's source of random choices.
func choices(c rma.Comm, cfg *Config) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(c.Rank()), 0x9E3779B97F4A7C15^cfg.Seed))
}

// agree is rma.Agree. In virtual time it does nothing: an error of one rank ends the run.
func agree(c rma.Comm, cfg *Config, err error) error {
	if cfg.virtual != nil {
		return err
	}
	return rma.Agree(c, err)
}

// worker is one rank at all workloads but dht and clients.
type worker struct {
	c     rma.Comm
	cfg   *Config
	table lock.Table
	m     lock.Mutex   // lock 0
	rw    lock.RWMutex // the same, where it has a shared mode
	data  *guarded     // a word for each lock
	rng   *rand.Rand
	ctx   context.Context

	plain   bool   // one lock, exclusive, nothing to do but acquire and release
	readers uint64 // of 1<<63 acquires
	id      int    // lock that is held
	mode    lock.Mode
	writes  int64 // increments of counters so far
	lost    int64 // leases that ran out while the rank held the lock
}

// newWorker opens the locks on the Comm locks, which may count operations, and the data on
// c. Collective.
func newWorker(c, locks rma.Comm, lck *Lock, cfg *Config) (*worker, error) {
	table, err := lck.open(locks, cfg, cfg.Locks)
	if err = agree(c, cfg, err); err != nil {
		return nil, err
	}
	data, err := newGuarded(c, table, 1)
	if err != nil {
		return nil, err
	}
	w := &worker{
		c: c, cfg: cfg, table: table, m: table.Mutex(0), data: data, ctx: context.Background(),
		rng:     choices(c, cfg),
		readers: uint64(math.Round(cfg.Readers * (1 << 63))),
	}
	if lck.Shared {
		w.rw = w.m.(lock.RWMutex)
	}
	w.plain = cfg.Locks == 1 && cfg.Readers == 0 && (cfg.Mode == Latency || cfg.Mode == LB || cfg.Mode == ECSB)
	return w, nil
}

// free closes the windows. Collective.
func (w *worker) free() error {
	if err := w.table.Free(); err != nil {
		return err
	}
	return w.data.w.Free()
}

func (w *worker) begin() {}

func (w *worker) taken(runs int64) (acquires, aborts int64, byLock lockSamples) {
	return runs, 0, nil
}

func (w *worker) active() bool {
	return (w.cfg.Mode != Latency || w.c.Rank() == 0) && !lock.Serves(w.table)
}

func (w *worker) leave() error { return lock.Leave(w.table) }

// run acquires and releases n times.
func (w *worker) run(n int) error {
	if w.plain {
		m, ctx := w.m, w.ctx
		for range n {
			if err := m.Lock(ctx); err != nil && !told(err) {
				return err
			}
			if err := m.Unlock(); err != nil && !w.leaseLost(err) {
				return err
			}
		}
		return nil
	}
	for range n {
		if err := w.acquire(); err != nil {
			return err
		}
		if err := w.inside(); err != nil {
			return err
		}
		if err := w.release(); err != nil {
			return err
		}
		w.after()
	}
	return nil
}

func (w *worker) sample() (t timing, err error) {
	begin := w.c.Now()
	if err = w.acquire(); err != nil {
		return t, err
	}
	if w.cfg.Mode == SOB || w.cfg.Mode == WCSB {
		got := w.c.Now()
		if err = w.inside(); err != nil {
			return t, err
		}
		t.inside = w.c.Now() - got
	}
	if err = w.release(); err != nil {
		return t, err
	}
	t.now = w.c.Now()
	t.ns = t.now - begin - t.inside
	w.after()
	return t, nil
}

// told says that an error of a Lock is no failure: the lock is held, and data here is never half
// written.
func told(err error) bool { return errors.Is(err, lock.ErrOwnerDied) }

// leaseLost says that an error of an Unlock is a lease that ran out, and counts it: on a busy
// machine a rank stops for longer than that.
func (w *worker) leaseLost(err error) bool {
	lost := errors.Is(err, lock.ErrLeaseLost)
	if lost {
		w.lost++
	}
	return lost
}

func (w *worker) acquire() error {
	if err := w.take(); err != nil && !told(err) {
		return err
	}
	return nil
}

func (w *worker) take() error {
	w.mode = lock.Exclusive
	if w.readers > 0 && w.rng.Uint64()>>1 < w.readers {
		w.mode = lock.Shared
	}
	if w.cfg.Locks > 1 {
		w.id = w.rng.IntN(w.cfg.Locks)
		return w.table.Lock(w.ctx, w.id, w.mode)
	}
	if w.mode == lock.Shared && w.rw != nil {
		return w.rw.RLock(w.ctx)
	}
	return w.m.Lock(w.ctx)
}

func (w *worker) release() error {
	if err := w.letGo(); err != nil && !w.leaseLost(err) {
		return err
	}
	return nil
}

func (w *worker) letGo() error {
	if w.cfg.Locks > 1 {
		return w.table.Unlock(w.id, w.mode)
	}
	if w.mode == lock.Shared && w.rw != nil {
		return w.rw.RUnlock()
	}
	return w.m.Unlock()
}

// inside is the work in the critical section: readers read, writers write.
func (w *worker) inside() error {
	switch w.cfg.Mode {
	case SOB:
		home, disp := w.data.word(w.id, 0)
		if w.mode == lock.Shared {
			_, err := w.data.w.GetFlush(home, disp)
			return err
		}
		return w.data.w.PutFlush(int64(w.c.Rank()), home, disp)
	case WCSB:
		home, disp := w.data.word(w.id, 0)
		v, err := w.data.w.GetFlush(home, disp)
		if err != nil {
			return err
		}
		w.spin()
		if w.mode == lock.Exclusive {
			w.writes++
			return w.data.w.PutFlush(v+1, home, disp)
		}
	}
	return nil
}

// after is the work after the release.
func (w *worker) after() {
	if w.cfg.Mode == WARB {
		w.spin()
	}
}

// spin computes for 1 to 4 us.
func (w *worker) spin() { compute(w.c, w.cfg, 1000+w.rng.Int64N(3001)) }

// compute keeps the processor for a time.
func compute(c rma.Comm, cfg *Config, ns int64) {
	switch {
	case ns <= 0:
	case cfg.virtual != nil:
		c.Sleep(ns) // virtual time advances by ns; the simulator runs other ranks meanwhile
	default:
		for end := c.Now() + ns; c.Now() < end; {
		}
	}
}

// verify checks the counters of wcsb, unless a rank has lost a lease: increments may then be lost,
// too. Collective.
func (w *worker) verify() error {
	if w.cfg.Mode != WCSB {
		return nil
	}
	lost, err := w.c.Allgather([]int64{w.lost})
	if err != nil {
		return err
	}
	for _, n := range lost {
		if n > 0 {
			return nil
		}
	}
	return w.data.verify(w.c, w.writes, w.cfg.Lock)
}
