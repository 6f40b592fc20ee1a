package baseline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// panics reports an error unless f panics with the text.
func panics(want string, f func()) (err error) {
	defer func() {
		if got := recover(); got != want {
			err = fmt.Errorf("panic %v, want %q", got, want)
		}
	}()
	f()
	return nil
}

const (
	locked   = "baseline: lock of a lock that this rank holds"
	unlocked = "baseline: unlock of unlocked lock"
)

func TestMisusePanics(t *testing.T) {
	ctx := context.Background()
	for _, name := range onWindow {
		err := inproc.Run(1, func(c rma.Comm) error {
			tab, err := open(t, c, name, Config{Locks: 2})
			if err != nil {
				return err
			}
			m := tab.Mutex(1)
			err = errors.Join(
				panics(unlocked, func() { m.Unlock() }),
				m.Lock(ctx),
				panics(locked, func() { m.Lock(ctx) }),
				panics(locked, func() { tab.TryLock(1, lock.Shared) }),
				panics(unlocked, func() { tab.Unlock(0, lock.Exclusive) }),
				panics("baseline: lock 2 of a table of 2", func() { tab.Lock(ctx, 2, lock.Shared) }),
				panics("baseline: lock -1 of a table of 2", func() { tab.Mutex(-1) }),
			)
			if name != "fompi-spin" {
				err = errors.Join(err, panics(unlocked, func() { tab.Unlock(1, lock.Shared) }))
			}
			err = errors.Join(err, m.Unlock(), panics(unlocked, func() { m.Unlock() }))
			rw, ok := tab.(*RW)
			if !ok {
				return errors.Join(err, tab.Free())
			}
			err = errors.Join(err, tab.Lock(ctx, 0, lock.Shared),
				panics(unlocked, func() { tab.Unlock(0, lock.Exclusive) }))
			if rw.variant != Local {
				err = errors.Join(err, panics(locked, func() { rw.LockAll(ctx) }))
			} else if e := rw.LockAll(ctx); !errors.Is(e, errors.ErrUnsupported) {
				err = errors.Join(err, fmt.Errorf("LockAll without its word: %v", e))
			}
			err = errors.Join(err, tab.Unlock(0, lock.Shared), panics(unlocked, func() { rw.UnlockAll() }))
			if rw.variant != Local {
				err = errors.Join(err, rw.LockAll(ctx),
					panics(locked, func() { rw.LockAll(ctx) }),
					panics(locked, func() { tab.Lock(ctx, 0, lock.Shared) }),
					panics(locked, func() { tab.TryLock(0, lock.Exclusive) }),
					panics(unlocked, func() { tab.Unlock(0, lock.Shared) }),
					rw.UnlockAll())
			}
			return errors.Join(err, atRest(c, tab), tab.Free())
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTooManyHeld(t *testing.T) {
	for _, name := range onWindow {
		err := inproc.Run(1, func(c rma.Comm) error {
			tab, err := open(t, c, name, Config{Locks: MaxHeld + 1})
			if err != nil {
				return err
			}
			for id := range MaxHeld {
				if err := tab.Lock(context.Background(), id, lock.Exclusive); err != nil {
					return err
				}
			}
			if err := tab.Lock(context.Background(), MaxHeld, lock.Exclusive); !errors.Is(err, lock.ErrTooManyHeld) {
				return fmt.Errorf("lock %d: %v", MaxHeld, err)
			}
			if _, err := tab.TryLock(MaxHeld, lock.Exclusive); !errors.Is(err, lock.ErrTooManyHeld) {
				return fmt.Errorf("try %d: %v", MaxHeld, err)
			}
			for id := range MaxHeld {
				if err := tab.Unlock(id, lock.Exclusive); err != nil {
					return err
				}
			}
			return errors.Join(atRest(c, tab), tab.Free())
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	bad := []struct {
		cfg  Config
		says string
	}{
		{Config{Locks: -1}, "Config.Locks"},
		{Config{Home: 1}, "Config.Home"},
		{Config{Home: -1}, "Config.Home"},
		{Config{Backoff: Backoff{MaxNs: 1}}, "Config.Backoff"},
		{Config{Backoff: Backoff{BaseNs: 2, MaxNs: 1}}, "Config.Backoff"},
		{Config{Backoff: Backoff{BaseNs: -1, MaxNs: 1}}, "Config.Backoff"},
	}
	for _, name := range onWindow {
		for _, b := range bad {
			err := inproc.Run(1, func(c rma.Comm) error {
				_, err := open(t, c, name, b.cfg)
				if !errors.Is(err, lock.ErrConfig) || !strings.Contains(err.Error(), b.says) {
					return fmt.Errorf("%s: %+v: %v", name, b.cfg, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

func TestBackoff(t *testing.T) {
	b := Backoff{BaseNs: 1000, MaxNs: 6000}
	for try, want := range []int64{1000, 2000, 4000, 6000, 6000} {
		if got := b.pauseNs(try); got != want {
			t.Errorf("after try %d: %d ns, want %d", try, got, want)
		}
	}
	for _, try := range []int{62, 63, 1 << 40} {
		if got := b.pauseNs(try); got != 6000 {
			t.Errorf("after try %d: %d ns, want 6000", try, got)
		}
	}
	if got := b.String(); got != "exp(1000 ns, 6000 ns)" {
		t.Error(got)
	}
	if got := (Backoff{}).String(); got != "none" {
		t.Error(got)
	}
	err := inproc.Run(1, func(c rma.Comm) error {
		tab, err := NewSpin(c, Config{Backoff: b})
		if err != nil {
			return err
		}
		if tab.Backoff() != b {
			return fmt.Errorf("the table tells %v", tab.Backoff())
		}
		return tab.Free()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestHomes(t *testing.T) {
	for _, name := range onWindow {
		err := inproc.Run(3, func(c rma.Comm) error {
			tab, err := open(t, c, name, Config{Locks: 7, Home: 2})
			if err != nil {
				return err
			}
			if tab.Len() != 7 {
				return fmt.Errorf("Len is %d", tab.Len())
			}
			for id := range 7 {
				if got := tab.Home(id); got != (2+id)%3 {
					return fmt.Errorf("lock %d is at %d", id, got)
				}
			}
			return tab.Free()
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
