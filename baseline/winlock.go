package baseline

import (
	"context"
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// WinLock is MPI_Win_lock and MPI_Win_unlock as a lock: what the MPI library has,
// whatever its protocol. Open MPI's osc/sm has a fair reader-writer ticket lock,
// its osc/rdma the one of [Undo], MPICH a queue at the target that active messages
// serve.
//
// MPI has one lock per rank, so a table has at most as many locks as the Comm has
// ranks. Two locks at one rank would be one, and a rank that took both would wait for
// itself.
//
// MPI can neither try nor give up: TryLock, and Lock with a context that can end,
// return an error that wraps errors.ErrUnsupported and leave the lock unchanged.
// What a waiter costs, and what happens when a rank dies, is the library's affair.
type WinLock struct {
	e    rma.Epochs
	size int
	n    int
	home int
	held held
}

var _ lock.Table = (*WinLock)(nil)

const winLock = "mpi-win-lock"

// NewWinLock opens a table on the transport's own locks. Collective; all ranks pass
// the same Config, without Backoff. On a backend other than rma/mpi the error wraps
// errors.ErrUnsupported.
func NewWinLock(c rma.Comm, cfg Config) (*WinLock, error) {
	if err := cfg.validate(winLock, c.Size()); err != nil {
		return nil, err
	}
	if cfg.Backoff != (Backoff{}) {
		return nil, fmt.Errorf("baseline: %s: Config.Backoff is %v, but the MPI library waits as it likes: %w", winLock, cfg.Backoff, lock.ErrConfig)
	}
	if cfg.Locks > c.Size() {
		return nil, fmt.Errorf("baseline: %s: Config.Locks is %d, but MPI has one lock per rank and there are %d ranks; ask for at most %d: %w",
			winLock, cfg.Locks, c.Size(), c.Size(), lock.ErrConfig)
	}
	l, ok := rma.AsEpochLocker(c)
	if !ok {
		return nil, fmt.Errorf("baseline: %s: the transport (%s) has no locks of its own; this lock needs the mpi backend: %w",
			winLock, c.Describe(), errors.ErrUnsupported)
	}
	e, err := l.OpenEpochs()
	if err != nil {
		return nil, fmt.Errorf("baseline: %s: %w", winLock, err)
	}
	return &WinLock{e: e, size: c.Size(), n: cfg.Locks, home: cfg.Home}, nil
}

func init() {
	lock.Register(lock.Info{
		Name:   winLock,
		Title:  "MPI_Win_lock of the MPI library",
		Shared: true,
		Fair:   "the MPI library's",
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return NewWinLock(c, Config{Locks: n, Home: home})
		},
	})
}

// Len is the number of locks.
func (t *WinLock) Len() int { return t.n }

// Home is the rank whose lock this is.
func (t *WinLock) Home(id int) int {
	if uint(id) >= uint(t.n) {
		panic(fmt.Sprintf("baseline: lock %d of a table of %d", id, t.n))
	}
	return (t.home + id) % t.size
}

// Free closes the transport's locks. Collective. To free a table with a held lock is
// misuse.
func (t *WinLock) Free() error { return t.e.Free() }

// Lock takes lock id: MPI_Win_lock. The context must be one that cannot end.
func (t *WinLock) Lock(ctx context.Context, id int, mode lock.Mode) error {
	home := t.Home(id)
	if ctx.Done() != nil {
		return fmt.Errorf("baseline: %s: lock %d: MPI_Win_lock cannot give up; pass context.Background(): %w", winLock, id, errors.ErrUnsupported)
	}
	k, err := t.held.claim(winLock, id, mode)
	if err != nil {
		return err
	}
	if err := t.e.Lock(home, mode == lock.Exclusive); err != nil {
		t.held.unclaim(k)
		return err
	}
	return nil
}

// TryLock is not in MPI: it returns an error that wraps errors.ErrUnsupported.
func (t *WinLock) TryLock(id int, _ lock.Mode) (bool, error) {
	t.Home(id)
	return false, fmt.Errorf("baseline: %s: lock %d: MPI cannot try MPI_Win_lock: %w", winLock, id, errors.ErrUnsupported)
}

// Unlock frees lock id: MPI_Win_unlock.
func (t *WinLock) Unlock(id int, mode lock.Mode) error {
	home := t.Home(id)
	t.held.unclaim(t.held.claimed(id, mode))
	return t.e.Unlock(home)
}

// Mutex is a handle on lock id, a lock.RWMutex. Handles on the same lock are
// interchangeable.
func (t *WinLock) Mutex(id int) lock.Mutex {
	t.Home(id)
	return &winMutex{t, id}
}

type winMutex struct {
	t  *WinLock
	id int
}

var _ lock.RWMutex = (*winMutex)(nil)

func (m *winMutex) Lock(ctx context.Context) error  { return m.t.Lock(ctx, m.id, lock.Exclusive) }
func (m *winMutex) RLock(ctx context.Context) error { return m.t.Lock(ctx, m.id, lock.Shared) }
func (m *winMutex) TryLock() (bool, error)          { return m.t.TryLock(m.id, lock.Exclusive) }
func (m *winMutex) TryRLock() (bool, error)         { return m.t.TryLock(m.id, lock.Shared) }
func (m *winMutex) Unlock() error                   { return m.t.Unlock(m.id, lock.Exclusive) }
func (m *winMutex) RUnlock() error                  { return m.t.Unlock(m.id, lock.Shared) }
