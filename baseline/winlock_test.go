package baseline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// epochComm is a Comm whose transport has a lock per rank: a sync.RWMutex, known to
// all ranks of a test.
type epochComm struct {
	rma.Comm
	locks []sync.RWMutex
	fail  error // of Epochs.Lock
}

type testEpochs struct {
	c    *epochComm
	mode map[int]bool // target: exclusive
}

func (c *epochComm) OpenEpochs() (rma.Epochs, error) {
	return &testEpochs{c, map[int]bool{}}, c.Barrier()
}

func (e *testEpochs) Lock(target int, exclusive bool) error {
	if e.c.fail != nil {
		return e.c.fail
	}
	if exclusive {
		e.c.locks[target].Lock()
	} else {
		e.c.locks[target].RLock()
	}
	e.mode[target] = exclusive
	return nil
}

func (e *testEpochs) Unlock(target int) error {
	if e.mode[target] {
		e.c.locks[target].Unlock()
	} else {
		e.c.locks[target].RUnlock()
	}
	return nil
}

func (e *testEpochs) Free() error { return e.c.Barrier() }

func TestWinLock(t *testing.T) {
	const ranks, rounds = 4, 200
	locks := make([]sync.RWMutex, ranks)
	var in [ranks]inside
	err := inproc.Run(ranks, func(c rma.Comm) error {
		tab, err := NewWinLock(&epochComm{Comm: c, locks: locks}, Config{Locks: ranks, Home: 1})
		if err != nil {
			return err
		}
		ctx := context.Background()
		for i := range rounds {
			id := (i + c.Rank()) % ranks
			m := tab.Mutex(id).(lock.RWMutex)
			if i%3 == 0 {
				err = errors.Join(m.Lock(ctx), in[id].write(), m.Unlock())
			} else {
				err = errors.Join(m.RLock(ctx), in[id].read(), m.RUnlock())
			}
			if err != nil {
				return err
			}
		}
		// Two ids are two ranks' locks: both can be held at once.
		if c.Rank() == 0 {
			err = errors.Join(tab.Lock(ctx, 0, lock.Exclusive), tab.Lock(ctx, 1, lock.Exclusive),
				panics(locked, func() { tab.Lock(ctx, 1, lock.Shared) }),
				panics(unlocked, func() { tab.Unlock(1, lock.Shared) }),
				tab.Unlock(0, lock.Exclusive), tab.Unlock(1, lock.Exclusive),
				panics(unlocked, func() { tab.Unlock(1, lock.Exclusive) }))
		}
		if tab.Len() != ranks || tab.Home(0) != 1 || tab.Home(3) != 0 {
			err = errors.Join(err, fmt.Errorf("%d locks, lock 0 at %d, lock 3 at %d", tab.Len(), tab.Home(0), tab.Home(3)))
		}
		return errors.Join(err, tab.Free())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWinLockCannotTry: what MPI does not have is refused and changes nothing.
func TestWinLockCannotTry(t *testing.T) {
	err := inproc.Run(1, func(c rma.Comm) error {
		tab, err := NewWinLock(&epochComm{Comm: c, locks: make([]sync.RWMutex, 1)}, Config{})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		m := tab.Mutex(0).(lock.RWMutex)
		_, e1 := m.TryLock()
		_, e2 := m.TryRLock()
		for i, err := range []error{e1, e2, m.Lock(ctx), m.RLock(ctx)} {
			if !errors.Is(err, errors.ErrUnsupported) {
				return fmt.Errorf("case %d: %v", i, err)
			}
		}
		return errors.Join(m.Lock(context.Background()), m.Unlock(), tab.Free())
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWinLockRefuses(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		cfg  Config
		bare bool // a transport without locks
		is   error
		says string
	}{
		{"more locks than ranks", Config{Locks: 3}, false, lock.ErrConfig, "one lock per rank and there are 2 ranks"},
		{"back-off", Config{Backoff: Backoff{BaseNs: 1, MaxNs: 2}}, false, lock.ErrConfig, "Config.Backoff"},
		{"another backend", Config{Locks: 2}, true, errors.ErrUnsupported, "needs the mpi backend"},
	} {
		err := inproc.Run(2, func(comm rma.Comm) error {
			if !c.bare {
				comm = &epochComm{Comm: comm}
			}
			_, err := NewWinLock(comm, c.cfg)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				return fmt.Errorf("%s: %v", c.name, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	err := inproc.Run(1, func(comm rma.Comm) error {
		tab, err := NewWinLock(&epochComm{Comm: comm, fail: broken}, Config{})
		if err != nil {
			return err
		}
		for range 2 { // the second is no "lock of a lock that this rank holds"
			if err := tab.Lock(context.Background(), 0, lock.Shared); !errors.Is(err, broken) {
				return fmt.Errorf("a transport that fails: %v", err)
			}
		}
		return tab.Free()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRegistered: every lock of the package can be opened by its name.
func TestRegistered(t *testing.T) {
	for _, name := range append([]string{winLock}, onWindow...) {
		name, _, _ := strings.Cut(name, ",")
		info, err := lock.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		err = inproc.Run(2, func(c rma.Comm) error {
			comm := c
			if name == winLock {
				comm = &epochComm{Comm: c, locks: make([]sync.RWMutex, 2)}
			}
			tab, err := info.Open(comm, 2, 1)
			if err != nil {
				return err
			}
			_, rw := tab.Mutex(0).(lock.RWMutex)
			if tab.Len() != 2 || tab.Home(0) != 1 || rw != info.Shared {
				return fmt.Errorf("%d locks, lock 0 at %d, shared mode %v", tab.Len(), tab.Home(0), rw)
			}
			return tab.Free()
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
