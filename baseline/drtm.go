package baseline

import (
	"context"
	"fmt"
	"time"

	"github.com/rmalock/rmalock/internal/values"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/clocksync"
)

// DrTM is the lease lock of DrTM, with which dslr compares (section 6.1): CAS for both modes,
// and a lease for readers.
//
//	word  class  whose memory                   fields
//	LOCK  far    the home: memory node or rank  X, owner, end: nanoseconds of rank 0's clock
//
// A writer swaps a word that is 0, or whose lease has ended, for X and itself, and Unlock swaps
// it for 0. A reader swaps a word that is 0, or whose lease has ended, for the end of a lease of
// its own; while a lease lasts other readers join it, with no operation but the CAS that showed
// it to them. Unlock of a reader makes no operation: its lease runs out.
//
// So a reader's Unlock returns lock.ErrLeaseLost if the lease may have ended: a writer may have
// been in, and what the reader has read is worth nothing. That is DrTM's check before a
// transaction commits.
//
// 1+1 remote operations exclusively, 1+0 shared, one more to take over a lease that has ended,
// and a CAS for each try of a rank that waits. It is not fair. A writer waits for the last
// lease even if the readers have gone. A writer that dies keeps its lock for ever.
//
// # Clocks
//
// Ranks compare their clocks with the ends of leases. Those of several nodes differ by a little:
// within Delta of an end a rank takes the lease neither for valid nor for ended.
//
// # Where it differs
//
// The layout is that of the code of dslr's authors, with nanoseconds for microseconds; the papers
// print none. That code has no Delta and no check before commit, and DrTM's own takes over a
// lease that is merely not valid.
type DrTM struct {
	table
	clock          *clocksync.Clock
	leaseNs, delta int64 // delta 0: the error that the clock states
	me             int64
	ends           [MaxHeld]int64 // of the lease, of each lock held in shared mode
}

var _ lock.Checked = (*DrTM)(nil)

// DrTMConfig of a table of DrTM's locks. Times are in nanoseconds.
type DrTMConfig struct {
	Config
	// LeaseNs is how long a reader's lease lasts; 0 means 400,000, as in DrTM's code.
	LeaseNs int64
	// DeltaNs is the most by which clocks differ. 0 means what rma/clocksync found when the table
	// was opened, and 0.01 % of the time since: where nodes have clocks of their own, and none but
	// this module compares them, leases are worth nothing after some seconds. DrTM has 200,000.
	DeltaNs int64
}

var drtm = struct{ x, owner, end rma.Field }{
	x:     rma.Field{Name: "X", Shift: 63, Bits: 1},
	owner: rma.Field{Name: "owner", Shift: 55, Bits: 8},
	end:   rma.Field{Name: "end", Shift: 0, Bits: 55},
}

const drtmName = "drtm"

// NewDrTM opens a table of DrTM's locks. Collective; all ranks pass the same Config. It compares
// the nodes' clocks, so that it does not go with clients that come and go.
func NewDrTM(c rma.Comm, cfg DrTMConfig) (*DrTM, error) {
	if cfg.LeaseNs == 0 {
		cfg.LeaseNs = int64(400 * time.Microsecond)
	}
	if cfg.LeaseNs < 0 || cfg.DeltaNs < 0 || cfg.DeltaNs >= cfg.LeaseNs {
		return nil, fmt.Errorf("baseline: %s: LeaseNs is %d and DeltaNs %d, want a lease longer than that: %w", drtmName, cfg.LeaseNs, cfg.DeltaNs, lock.ErrConfig)
	}
	t, err := openWords(c, drtmName, cfg.Config, rma.Word{Name: "LOCK", Class: rma.Far, Fields: []rma.Field{drtm.x, drtm.owner, drtm.end}})
	if err != nil {
		return nil, err
	}
	clock, err := clocksync.Sync(c)
	if err != nil {
		return nil, err
	}
	// Of more than 256 ranks some have one number: it is for people, as one rank at a time has X.
	me := drtm.owner.With(drtm.x.Mask(), int64(c.Rank()))
	return &DrTM{table: t, clock: clock, leaseNs: cfg.LeaseNs, delta: cfg.DeltaNs, me: me}, nil
}

func init() {
	lock.Register(lock.Info{
		Name:   drtmName,
		Title:  "the lease lock of DrTM, CAS for both modes and leases for readers",
		Shared: true,
		Fair:   "none; a writer waits for leases that have no reader",
		Params: []lock.Param{
			{Name: "LEASE", Help: "how long a reader's lease lasts, as in 400us, the default"},
			{Name: "DELTA", Help: "the most by which clocks differ, as in 200us; default what rma/clocksync finds"},
			paramR, paramL, paramRetries,
		},
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return NewDrTM(c, DrTMConfig{Config: Config{Locks: n, Home: home}})
		},
		OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
			var cfg DrTMConfig
			base, err := parse(drtmName, s, Full, func(param, value string) (err error) {
				if param == "LEASE" {
					cfg.LeaseNs, err = values.Time(value)
				} else {
					cfg.DeltaNs, err = values.Time(value)
				}
				return err
			})
			if err != nil {
				return nil, err
			}
			cfg.Config = base
			return NewDrTM(c, cfg)
		},
	})
}

// Promise has no bound on entries of others. A reader that joins a lease has what is left of it.
func (t *DrTM) Promise(mode lock.Mode) lock.Promise {
	if mode == lock.Shared {
		p := t.paced(unfair(2, 0))
		p.Lease = 1
		return p
	}
	return t.paced(unfair(2, 1))
}

// Idle checks that the handle holds nothing and that no word has an owner. Leases last.
func (t *DrTM) Idle() error { return t.idle(func(v int64) bool { return v >= 0 }) }

// skew is the most by which the clock differs from rank 0's.
func (t *DrTM) skew() int64 {
	if t.delta > 0 {
		return t.delta
	}
	return t.clock.Bound()
}

// valid reports whether a lease lasts for sure, ended whether it has ended for sure.
func (t *DrTM) valid(end int64) bool { return t.clock.Now() < end-t.skew() }
func (t *DrTM) ended(end int64) bool { return t.clock.Now() > end+t.skew() }

// Lock takes lock id.
func (t *DrTM) Lock(ctx context.Context, id int, mode lock.Mode) error {
	at := t.at(id)
	k, err := t.held.claim(t.name, id, mode)
	if err != nil {
		return err
	}
	if t.clock.Bound() >= t.leaseNs && t.delta == 0 {
		t.held.unclaim(k)
		return fmt.Errorf("baseline: %s: lock %d: clocks differ by up to %d ns and a lease lasts %d; set DELTA, or open the table anew: %w",
			t.name, id, t.clock.Bound(), t.leaseNs, lock.ErrConfig)
	}
	for try := 0; ; try++ {
		got, v, err := t.try(k, at, mode)
		if !got && err == nil {
			err = t.pause(ctx, id, blocker{at.target, at.disp, v}, try)
		}
		if got || err != nil {
			_, err = t.taken(k, true, err)
			return err
		}
	}
}

// try is a CAS on a word that is free, and one on a lease that has ended. It returns what the
// word held last.
func (t *DrTM) try(k int, at place, mode lock.Mode) (got bool, v int64, err error) {
	for from := int64(0); ; from = v {
		to := t.me
		if mode == lock.Shared {
			to = t.clock.Now() + t.leaseNs
		}
		v, err = t.cas(at, from, to)
		switch {
		case err != nil:
			return false, v, err
		case v == from && mode == lock.Shared:
			t.ends[k] = to
			return t.valid(to), to, nil
		case v == from:
			return true, v, nil
		case v < 0 || v == 0: // a writer has it, or it is free by now
			return false, v, nil
		case mode == lock.Shared && t.valid(v):
			t.ends[k] = v // joins the lease
			return true, v, nil
		case from != 0 || !t.ended(v):
			return false, v, nil
		}
	}
}

// TryLock takes lock id if it is free. A lock that readers have left is free when their lease has
// ended.
func (t *DrTM) TryLock(id int, mode lock.Mode) (bool, error) {
	at := t.at(id)
	k, err := t.held.claim(t.name, id, mode)
	if err != nil {
		return false, err
	}
	got, _, err := t.try(k, at, mode)
	return t.taken(k, got, err)
}

// Unlock releases lock id. Of a reader it returns lock.ErrLeaseLost if its lease may have ended.
func (t *DrTM) Unlock(id int, mode lock.Mode) error {
	at := t.at(id)
	k := t.held.claimed(id, mode)
	t.held.unclaim(k)
	if mode == lock.Exclusive {
		_, err := t.cas(at, t.me, 0)
		return err
	}
	end := t.ends[k]
	t.ends[k] = 0
	if !t.valid(end) {
		return fmt.Errorf("baseline: %s: lock %d: %w", t.name, id, lock.ErrLeaseLost)
	}
	return nil
}

// Mutex is a handle on lock id, a lock.RWMutex.
func (t *DrTM) Mutex(id int) lock.Mutex {
	t.word(id)
	return &handle{t, id}
}
