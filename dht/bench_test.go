package dht_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/dht"
	"github.com/rmalock/rmalock/rma"
)

// Nothing allocates: near or far, in the slot or in a chain.
func TestNoAllocations(t *testing.T) {
	each(t, func(t *testing.T, way way) {
		for _, m := range []machine{{1, 1}, {2, 1}} {
			err := way.with(m, dht.Config{Slots: 2, Heap: 4000, Volumes: 1}, nil, func(c rma.Comm, table *dht.Table) error {
				if c.Rank() < c.Size()-1 {
					return nil
				}
				key := int64(0)
				var err error
				for name, f := range map[string]func(){
					"Add":    func() { _, err = table.Add(key%8, 1) },
					"Lookup": func() { _, _, err = table.Lookup(key % 9) },
					"Insert": func() { _, err = table.Insert(key%500, key<<55) },
				} {
					n := testing.AllocsPerRun(1000, func() {
						if err == nil {
							key++
							f()
						}
					})
					if err != nil || n != 0 {
						return fmt.Errorf("%s allocates %v times, error %v", name, n, err)
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%dx%d: %v", m.nodes, m.perNode, err)
			}
		}
	})
}

func Benchmark(b *testing.B) {
	for _, way := range ways {
		for name, f := range map[string]func(t *dht.Table, k int64) error{
			"Add":    func(t *dht.Table, k int64) error { _, err := t.Add(k&1023, 1); return err },
			"Lookup": func(t *dht.Table, k int64) error { _, _, err := t.Lookup(k & 1023); return err },
			"Insert": func(t *dht.Table, k int64) error { _, err := t.Insert(k&1023, k); return err },
		} {
			b.Run(way.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				slots, heap := dht.Fit(1024, 2)
				err := way.with(machine{1, 2}, dht.Config{Slots: slots, Heap: heap}, nil, func(c rma.Comm, t *dht.Table) error {
					if c.Rank() > 0 {
						return nil
					}
					k := int64(0)
					for b.Loop() {
						k++
						if err := f(t, k); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
