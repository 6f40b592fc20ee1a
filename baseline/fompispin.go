package baseline

import (
	"context"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Spin is foMPI-Spin, the simple spin lock of rma-rw, section 5.
//
//	word  class  whose memory     values
//	L     far    the lock's home  0 free, 1 held
//
// Lock is CAS(L, 0 to 1) until it returned 0, Unlock is Accumulate(L, -1): 1+1
// remote operations, and one CAS per further try, all at the home. Its shared mode
// is the exclusive one.
type Spin struct {
	table
	put bool // a release is a Put
}

var _ lock.Checked = (*Spin)(nil)

// NewSpin opens a table of foMPI-Spin locks. Collective; all ranks pass the same
// Config.
func NewSpin(c rma.Comm, cfg Config) (*Spin, error) { return openSpin(c, "fompi-spin", cfg, false) }

// NewRDMASpin opens a table of the spin locks that alock compares with (section 6): those of
// NewSpin, with a release by Put(L, 0), the WRITE of InfiniBand. No try changes L before it. Where
// writes and atomics of the network on one word exclude each other (Caps.AtomicPut is false), the
// window makes a loop of CompareAndSwap of it.
//
// The paper's lock has no regard to where a rank is: ranks of the home's node use the network card
// too, as any rank does with a word of class Far.
func NewRDMASpin(c rma.Comm, cfg Config) (*Spin, error) { return openSpin(c, "rdma-spin", cfg, true) }

func openSpin(c rma.Comm, name string, cfg Config, put bool) (*Spin, error) {
	if err := cfg.validate(name, c.Size()); err != nil {
		return nil, err
	}
	w, err := c.Allocate(rma.Spec{Name: name, Regions: []rma.Region{
		{Count: perRank(cfg.Locks, c.Size()), Words: []rma.Word{{Name: "L", Class: rma.Far}}},
	}})
	if err != nil {
		return nil, err
	}
	return &Spin{table{name: name, c: c, w: w, size: c.Size(), locks: cfg.Locks, home: cfg.Home, backoff: cfg.Backoff, retries: cfg.Retries, random: seed(c)}, put}, nil
}

func init() {
	lock.Register(lock.Info{
		Name:  "fompi-spin",
		Title: "foMPI-Spin, a spin lock on one word",
		Fair:  "none",
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return NewSpin(c, Config{Locks: n, Home: home})
		},
	})
	lock.Register(lock.Info{
		Name:  "rdma-spin",
		Title: "the RDMA spin lock of ALock's evaluation: foMPI-Spin with a release by Put",
		Fair:  "none",
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return NewRDMASpin(c, Config{Locks: n, Home: home})
		},
	})
}

// Promise is the same for both modes.
func (t *Spin) Promise(lock.Mode) lock.Promise {
	return t.paced(lock.Promise{Bypass: lock.Unbounded, Acquire: 1, Release: 1})
}

// Lock takes lock id, in exclusive mode whatever the mode.
func (t *Spin) Lock(ctx context.Context, id int, _ lock.Mode) error {
	m := t.mutex(id)
	return m.Lock(ctx)
}

// TryLock takes lock id if it is free.
func (t *Spin) TryLock(id int, _ lock.Mode) (bool, error) {
	m := t.mutex(id)
	return m.TryLock()
}

// Unlock frees lock id.
func (t *Spin) Unlock(id int, _ lock.Mode) error {
	m := t.mutex(id)
	return m.Unlock()
}

// Mutex is a handle on lock id. Handles on the same lock are interchangeable.
func (t *Spin) Mutex(id int) lock.Mutex {
	m := t.mutex(id)
	return &m
}

func (t *Spin) mutex(id int) spinMutex {
	home, disp := t.word(id)
	return spinMutex{t: t, id: id, home: home, disp: disp}
}

type spinMutex struct {
	t          *Spin
	id         int
	home, disp int
}

func (m *spinMutex) Lock(ctx context.Context) error {
	k, err := m.t.held.claim(m.t.name, m.id, lock.Exclusive)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		last, err := m.t.w.CompareAndSwapFlush(1, 0, m.home, m.disp)
		if err == nil && last == 0 {
			return nil
		}
		if err == nil {
			err = m.t.pause(ctx, m.id, blocker{m.home, m.disp, last}, try)
		}
		if err != nil {
			m.t.held.unclaim(k)
			return err
		}
	}
}

func (m *spinMutex) TryLock() (bool, error) {
	k, err := m.t.held.claim(m.t.name, m.id, lock.Exclusive)
	if err != nil {
		return false, err
	}
	last, err := m.t.w.CompareAndSwapFlush(1, 0, m.home, m.disp)
	if got := err == nil && last == 0; got {
		return true, nil
	}
	m.t.held.unclaim(k)
	return false, err
}

func (m *spinMutex) Unlock() error {
	m.t.held.unclaim(m.t.held.claimed(m.id, lock.Exclusive))
	if m.t.put {
		return m.t.w.PutFlush(0, m.home, m.disp)
	}
	return m.t.w.AccumulateFlush(-1, m.home, m.disp, rma.Sum)
}
