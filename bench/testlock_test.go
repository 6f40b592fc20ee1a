package bench_test

import (
	"context"
	"errors"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// settings are those that testrw was opened with, in virtual time.
var settings []lock.Setting

var errOpen = errors.New("open failed on purpose")

// Locks to test the measurement with: testrw has a shared mode and works,
// testopen does not exclude, testblind lets readers in at any time, testfail fails to open at rank 1.
func init() {
	lock.Register(lock.Info{Name: "testrw", Shared: true, Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		w, err := c.Allocate(rma.CounterSpec("testrw", n))
		return &table{w: w, n: n, works: true}, err
	}, Params: []lock.Param{{Name: "wait"}, {Name: "start"}}, OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
		if s.Topology != nil {
			settings = append(settings, s) // one run at a time, without bands
		}
		w, err := c.Allocate(rma.CounterSpec("testrw", s.Locks))
		return &table{w: w, n: s.Locks, works: true}, err
	}})
	lock.Register(lock.Info{Name: "testmemory", Shared: true, Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		spec := rma.CounterSpec("testmemory", n)
		spec.Hosts = rma.MemoryNodes
		w, err := c.Allocate(spec)
		return &table{w: w, n: n, works: true, spread: true}, err
	}})
	lock.Register(lock.Info{Name: "testopen", Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		w, err := c.Allocate(rma.CounterSpec("testopen", n))
		return &table{w: w, n: n}, err
	}})
	lock.Register(lock.Info{Name: "testblind", Shared: true, Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		w, err := c.Allocate(rma.CounterSpec("testblind", n))
		return blind{&table{w: w, n: n, works: true}}, err
	}})
	lock.Register(lock.Info{Name: "testfail", Open: func(c rma.Comm, n, home int) (lock.Table, error) {
		if c.Rank() == 1 {
			return nil, errOpen
		}
		return &table{n: n}, nil
	}})
}

// table keeps the words of its locks at rank 0, or at their homes: the number of readers, or -1 for a
// writer. Readers and writers spin.
type table struct {
	w     *rma.Window
	n     int
	works bool

	spread bool // a lock's word is at its home
}

func (t *table) Hosts() rma.Hosts {
	if t.spread {
		return rma.MemoryNodes
	}
	return rma.Ranks
}

// host is where a lock's word is.
func (t *table) host(id int) int {
	if t.spread {
		return t.Home(id)
	}
	return 0
}

func (t *table) Len() int                { return t.n }
func (t *table) Home(id int) int         { return id % t.w.Size() }
func (t *table) Mutex(id int) lock.Mutex { return &mutex{t, id} }
func (t *table) Free() error             { return t.w.Free() }

func (t *table) Lock(_ context.Context, id int, mode lock.Mode) error {
	for try := 0; ; try++ {
		got, err := t.TryLock(id, mode)
		if got || err != nil {
			return err
		}
		if err := t.w.Backoff(t.host(id), id, 0, try); err != nil {
			return err
		}
	}
}

func (t *table) TryLock(id int, mode lock.Mode) (bool, error) {
	if !t.works {
		return true, nil
	}
	before := int64(0)
	if mode == lock.Shared {
		var err error
		if before, err = t.w.FetchAndOpFlush(0, t.host(id), id, rma.NoOp); err != nil || before < 0 {
			return false, err
		}
		seen, err := t.w.CompareAndSwapFlush(before+1, before, t.host(id), id)
		return seen == before, err
	}
	seen, err := t.w.CompareAndSwapFlush(-1, 0, t.host(id), id)
	return seen == 0, err
}

func (t *table) Unlock(id int, mode lock.Mode) error {
	switch {
	case !t.works:
		return nil
	case mode == lock.Shared:
		return t.w.AccumulateFlush(-1, t.host(id), id, rma.Sum)
	}
	return t.w.AccumulateFlush(1, t.host(id), id, rma.Sum)
}

// blind is a table whose readers do not see writers.
type blind struct{ *table }

func (b blind) Lock(ctx context.Context, id int, mode lock.Mode) error {
	if mode == lock.Shared {
		return nil
	}
	return b.table.Lock(ctx, id, mode)
}

func (b blind) Unlock(id int, mode lock.Mode) error {
	if mode == lock.Shared {
		return nil
	}
	return b.table.Unlock(id, mode)
}

type mutex struct {
	t  *table
	id int
}

func (m *mutex) Lock(ctx context.Context) error  { return m.t.Lock(ctx, m.id, lock.Exclusive) }
func (m *mutex) Unlock() error                   { return m.t.Unlock(m.id, lock.Exclusive) }
func (m *mutex) TryLock() (bool, error)          { return m.t.TryLock(m.id, lock.Exclusive) }
func (m *mutex) RLock(ctx context.Context) error { return m.t.Lock(ctx, m.id, lock.Shared) }
func (m *mutex) RUnlock() error                  { return m.t.Unlock(m.id, lock.Shared) }
func (m *mutex) TryRLock() (bool, error)         { return m.t.TryLock(m.id, lock.Shared) }
