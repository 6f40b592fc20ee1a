package inproc_test

import (
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// BenchmarkNear is one operation and its Flush on node memory, in the blocking form and
// in the issued one.
func BenchmarkNear(b *testing.B) {
	for _, bench := range []struct {
		name string
		f    func(w *rma.Window)
	}{
		{"FetchAndOpFlush", func(w *rma.Window) { _, _ = w.FetchAndOpFlush(1, 1, 0, rma.Sum) }},
		{"FetchAndOp", func(w *rma.Window) { _ = w.Value(w.FetchAndOp(1, 1, 0, rma.Sum)); _ = w.Flush(1) }},
		{"Accumulate", func(w *rma.Window) { w.Accumulate(1, 1, 0, rma.Sum); _ = w.Flush(1) }},
		{"CompareAndSwap", func(w *rma.Window) { _ = w.Value(w.CompareAndSwap(0, 0, 1, 1)); _ = w.FlushAll() }},
		{"GetFlush", func(w *rma.Window) { _, _ = w.GetFlush(1, 0) }},
		{"Get", func(w *rma.Window) { _ = w.Value(w.Get(1, 0)); _ = w.FlushAll() }},
		{"Put", func(w *rma.Window) { w.Put(1, 1, 0); _ = w.FlushAll() }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			err := inproc.Run(2, func(c rma.Comm) error {
				w, err := c.Allocate(rma.CounterSpec("bench", 2))
				if err != nil {
					return err
				}
				if c.Rank() == 0 {
					for b.Loop() {
						bench.f(w)
					}
				}
				return w.Free()
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
