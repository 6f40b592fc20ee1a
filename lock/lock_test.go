package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// noted is an RWMutex that notes its calls and fails on demand.
type noted struct {
	calls []string
	err   error
}

func (n *noted) note(call string) error {
	n.calls = append(n.calls, call)
	return n.err
}

func (n *noted) Lock(ctx context.Context) error {
	return n.note(fmt.Sprint("Lock ", ctx.Done() == nil))
}
func (n *noted) RLock(ctx context.Context) error {
	return n.note(fmt.Sprint("RLock ", ctx.Done() == nil))
}
func (n *noted) Unlock() error           { return n.note("Unlock") }
func (n *noted) RUnlock() error          { return n.note("RUnlock") }
func (n *noted) TryLock() (bool, error)  { return true, n.note("TryLock") }
func (n *noted) TryRLock() (bool, error) { return true, n.note("TryRLock") }

// TestLockers: the adapters pass the calls on, with a context that cannot end.
func TestLockers(t *testing.T) {
	m := &noted{}
	for _, l := range []sync.Locker{lock.Locker(m), lock.RLocker(m)} {
		l.Lock()
		l.Unlock() //nolint:staticcheck // nothing is guarded: the calls are what is tested
	}
	if want := []string{"Lock true", "Unlock", "RLock true", "RUnlock"}; !slices.Equal(m.calls, want) {
		t.Errorf("calls %q, want %q", m.calls, want)
	}
}

// TestLockersPanic: sync.Locker has no other way to tell of an error, and the panic's
// value still wraps it.
func TestLockersPanic(t *testing.T) {
	m := &noted{err: fmt.Errorf("cable: %w", rma.ErrTransport)}
	for _, c := range []struct {
		what string
		f    func()
	}{
		{"lock: Locker: cable", lock.Locker(m).Lock},
		{"lock: Locker: cable", lock.Locker(m).Unlock},
		{"lock: RLocker: cable", lock.RLocker(m).Lock},
		{"lock: RLocker: cable", lock.RLocker(m).Unlock},
	} {
		func() {
			defer func() {
				err, ok := recover().(error)
				if !ok || !errors.Is(err, rma.ErrTransport) || !strings.HasPrefix(err.Error(), c.what) {
					t.Errorf("panic with %v, want an error %q that wraps ErrTransport", err, c.what)
				}
			}()
			c.f()
		}()
	}
}

// TestLockerGuards: a sync.Locker of a real lock guards a plain variable.
func TestLockerGuards(t *testing.T) {
	const ranks, each = 4, 200
	n := 0
	err := inproc.Run(ranks, func(c rma.Comm) error {
		tab, err := dmcs.New(c, dmcs.Config{})
		if err != nil {
			return err
		}
		l := lock.Locker(tab.Mutex(0))
		for range each {
			l.Lock()
			n++
			l.Unlock()
		}
		return tab.Free()
	})
	if err != nil || n != ranks*each {
		t.Errorf("%d visits, %v, want %d", n, err, ranks*each)
	}
}

func open(rma.Comm, int, int) (lock.Table, error) { return nil, errors.ErrUnsupported }

func init() {
	lock.Register(lock.Info{Name: "zeta", Title: "the last", Open: open})
	lock.Register(lock.Info{Name: "alpha", Title: "the first", Shared: true, Fair: "none", Open: open})
}

func TestRegistry(t *testing.T) {
	var names []string
	for _, i := range lock.All() {
		names = append(names, i.Name)
	}
	if want := []string{"alpha", "dmcs", "rmarw", "zeta"}; !slices.Equal(names, want) {
		t.Errorf("the registry lists %q, want %q", names, want)
	}
	i, err := lock.Lookup("alpha")
	if err != nil || i.Title != "the first" || !i.Shared || i.Fair != "none" || i.Open == nil {
		t.Errorf("Lookup found %+v, %v", i, err)
	}
	_, err = lock.Lookup("beta")
	if !errors.Is(err, lock.ErrConfig) || !strings.Contains(err.Error(), `no lock is called "beta"; there are: alpha, dmcs, rmarw, zeta`) {
		t.Errorf("Lookup of an unknown lock: %v", err)
	}
	for _, c := range []struct {
		text string
		info lock.Info
	}{
		{"lock: Register without name or Open", lock.Info{Open: open}},
		{"lock: Register without name or Open", lock.Info{Name: "x"}},
		{"lock: Register of alpha twice", lock.Info{Name: "alpha", Open: open}},
	} {
		func() {
			defer func() {
				if got := recover(); got != c.text {
					t.Errorf("panic %v, want %q", got, c.text)
				}
			}()
			lock.Register(c.info)
		}()
	}
}

func TestModes(t *testing.T) {
	if lock.Exclusive.String() != "exclusive" || lock.Shared.String() != "shared" {
		t.Errorf("modes are called %v and %v", lock.Exclusive, lock.Shared)
	}
}
