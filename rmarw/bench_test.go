package rmarw_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rmarw"
)

// BenchmarkUncontended is an acquire and a release of a lock that no other rank wants, of
// eight ranks on one node with as many counters as the name says. With asymmetric ones the root is
// the barging leaf, with symmetric ones the queue.
func BenchmarkUncontended(b *testing.B) {
	for _, dc := range dcs {
		for _, counters := range []int{1, 2, 8} {
			for _, mode := range []lock.Mode{lock.Shared, lock.Exclusive} {
				b.Run(fmt.Sprintf("%v/counters=%d/%v", dc, counters, mode), func(b *testing.B) {
					b.ReportAllocs()
					uncontended(b, dc, counters, mode)
				})
			}
		}
	}
}

func uncontended(b *testing.B, dc rmarw.DC, counters int, mode lock.Mode) {
	l, _ := on(b, dc, "node:1 rank:8", 20, 4096, fmt.Sprint(8/counters))
	err := inproc.Run(8, func(c rma.Comm) error {
		t, err := l.Open(c, 1, 0)
		if err != nil {
			return err
		}
		if err := c.Barrier(); err != nil { // all counters have their phase
			return err
		}
		if c.Rank() == 0 {
			ctx := context.Background()
			for b.Loop() {
				if err := t.Lock(ctx, 0, mode); err != nil {
					return err
				}
				if err := t.Unlock(0, mode); err != nil {
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
