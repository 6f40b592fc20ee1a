package alock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/rmalock/rmalock/alock"
	"github.com/rmalock/rmalock/lock/locktest"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
)

var background = context.Background()

func TestLock(t *testing.T) {
	for _, name := range []string{"alock", "alock-rw"} {
		t.Run(name, func(t *testing.T) { locktest.RunInproc(t, name) })
	}
}

// TestNoAllocations: no pair of ranks of one cohort or of two allocates, with a queue or without.
func TestNoAllocations(t *testing.T) {
	if rmatest.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, job := range []inproc.Job{{Nodes: 2, PerNode: 1}, {Nodes: 1, PerNode: 4}, {Nodes: 2, PerNode: 2}} {
		var done atomic.Bool
		err := job.Run(func(c rma.Comm) error {
			l, err := alock.New(c, alock.Config{})
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
					err = errors.Join(err, fmt.Errorf("%v allocations per Lock and Unlock on %d nodes of %d ranks", n, job.Nodes, job.PerNode))
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

// BenchmarkUncontended is a Lock and an Unlock of a lock that no other rank wants, of a local rank.
func BenchmarkUncontended(b *testing.B) {
	for _, nodes := range []int{1, 2} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			b.ReportAllocs()
			err := inproc.RunNodes(nodes, 1, func(c rma.Comm) error {
				t, err := alock.New(c, alock.Config{})
				if err != nil {
					return err
				}
				if c.Rank() == 0 {
					m := t.Mutex(0)
					for b.Loop() {
						if err := m.Lock(background); err != nil {
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
		})
	}
}
