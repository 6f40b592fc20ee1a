package dmcs_test

import (
	"context"
	"testing"

	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

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
func BenchmarkContended(b *testing.B) {
	for _, n := range []int{2, 8} {
		b.Run("x", func(b *testing.B) {
			err := inproc.Run(n, func(c rma.Comm) error {
				t, err := dmcs.New(c, dmcs.Config{})
				if err != nil {
					return err
				}
				m := t.Mutex(0)
				ctx := context.Background()
				for range b.N / n {
					if err := m.Lock(ctx); err != nil {
						return err
					}
					if err := m.Unlock(); err != nil {
						return err
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
