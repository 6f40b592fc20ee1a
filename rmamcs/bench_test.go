package rmamcs_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rmamcs"
	"github.com/rmalock/rmalock/topo"
)

// BenchmarkUncontended is a Lock and an Unlock of a lock that no other rank wants.
func BenchmarkUncontended(b *testing.B) { uncontended(b, rmamcs.MCS) }

// BenchmarkUncontendedBarging is the same with a barging leaf.
func BenchmarkUncontendedBarging(b *testing.B) { uncontended(b, rmamcs.Barging) }

func uncontended(b *testing.B, leaf rmamcs.Leaf) {
	for _, machine := range []string{"rank:4", "numa:2 rank:2", "socket:2 numa:2 rank:1"} {
		t, err := topo.Parse(machine)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("N=%d", len(t.Levels())), func(b *testing.B) {
			b.ReportAllocs()
			err := inproc.Run(4, func(c rma.Comm) error {
				l, err := rmamcs.New(c, rmamcs.Config{Topology: t, Leaf: leaf})
				if err != nil {
					return err
				}
				if c.Rank() == 0 {
					m := l.Mutex(0)
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
				return l.Free()
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
