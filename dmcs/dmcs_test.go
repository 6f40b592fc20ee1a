package dmcs_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
)

func TestLock(t *testing.T) { locktest.RunInproc(t, "dmcs") }

// pairs locks and unlocks lock 0 of a new table n times on each of some ranks of
// inproc, all at once.
func pairs(ranks, n int) error {
	return inproc.Run(ranks, func(c rma.Comm) error {
		t, err := dmcs.New(c, dmcs.Config{})
		if err != nil {
			return err
		}
		m := t.Mutex(0)
		ctx := context.Background()
		for range n {
			if err := m.Lock(ctx); err != nil {
				return err
			}
			if err := m.Unlock(); err != nil {
				return err
			}
		}
		return t.Free()
	})
}

// TestNoAllocations: neither an uncontended pair allocates nor one with a queue.
func TestNoAllocations(t *testing.T) {
	if rmatest.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, ranks := range []int{1, 4} {
		var done atomic.Bool
		err := inproc.Run(ranks, func(c rma.Comm) error {
			l, err := dmcs.New(c, dmcs.Config{})
			if err != nil {
				return err
			}
			m := l.Mutex(0)
			pair := func() { err = errors.Join(err, m.Lock(background), m.Unlock()) }
			if err := c.Barrier(); err != nil {
				return err
			}
			if c.Rank() == 0 {
				if n := testing.AllocsPerRun(1000, pair); n != 0 {
					err = errors.Join(err, fmt.Errorf("%v allocations per Lock and Unlock with %d ranks", n, ranks))
				}
				done.Store(true)
			}
			for !done.Load() && err == nil {
				pair()
			}
			return errors.Join(err, l.Free())
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkUncontended is a Lock and an Unlock of a lock that no other rank wants.
func BenchmarkUncontended(b *testing.B) {
	b.ReportAllocs()
	err := inproc.Run(2, func(c rma.Comm) error {
		t, err := dmcs.New(c, dmcs.Config{})
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			m := t.Mutex(0)
			ctx := context.Background()
			for b.Loop() {
				if err := m.Lock(ctx); err != nil {
					return err
				}
				if err := m.Unlock(); err != nil {
					return err
				}
			}
		}
		return t.Free()
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkContended is a Lock and an Unlock of a lock that all ranks want.
func BenchmarkContended(b *testing.B) {
	for _, ranks := range []int{2, 8} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			b.ReportAllocs()
			if err := pairs(ranks, (b.N+ranks-1)/ranks); err != nil {
				b.Fatal(err)
			}
		})
	}
}
