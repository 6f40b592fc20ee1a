package inproc_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// BenchmarkNear is one operation and its Flush on a word of a node-mate, in the blocking
// form and in the issued one, in a job on one node and in a job on two.
func BenchmarkNear(b *testing.B) {
	for _, bench := range []struct {
		name string
		f    func(w *rma.Window)
	}{
		{"FetchAndOpFlush", func(w *rma.Window) { _, _ = w.FetchAndOpFlush(1, 1, 0, rma.Sum) }},
		{"FetchAndOp", func(w *rma.Window) { _ = w.Value(w.FetchAndOp(1, 1, 0, rma.Sum)); _ = w.Flush(1) }},
		{"Accumulate", func(w *rma.Window) { w.Accumulate(1, 1, 0, rma.Sum); _ = w.Flush(1) }},
		{"CompareAndSwapFlush", func(w *rma.Window) { _, _ = w.CompareAndSwapFlush(0, 0, 1, 1) }},
		{"CompareAndSwap", func(w *rma.Window) { _ = w.Value(w.CompareAndSwap(0, 0, 1, 1)); _ = w.FlushAll() }},
		{"GetFlush", func(w *rma.Window) { _, _ = w.GetFlush(1, 0) }},
		{"Get", func(w *rma.Window) { _ = w.Value(w.Get(1, 0)); _ = w.FlushAll() }},
		{"PutFlush", func(w *rma.Window) { _ = w.PutFlush(1, 1, 0) }},
		{"Put", func(w *rma.Window) { w.Put(1, 1, 0); _ = w.FlushAll() }},
		{"Peek", func(w *rma.Window) { w.Peek(0) }},
	} {
		for nodes := 1; nodes <= 2; nodes++ {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, bench.name), func(b *testing.B) {
				b.ReportAllocs()
				near(b, nodes, bench.f)
			})
		}
	}
}

func near(b *testing.B, nodes int, f func(w *rma.Window)) {
	spec := rma.Spec{Name: "bench", Regions: []rma.Region{
		{Words: []rma.Word{{Name: "W", Class: rma.Near}, {Name: "V", Class: rma.Near}}, Count: 1},
		{Words: []rma.Word{{Name: "FLAG", Class: rma.Flag}}, Count: 1},
	}}
	err := inproc.RunNodes(nodes, 2, func(c rma.Comm) error {
		w, err := c.Allocate(spec)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			for b.Loop() {
				f(w)
			}
		}
		return w.Free()
	})
	if err != nil {
		b.Fatal(err)
	}
}
