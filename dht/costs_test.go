package dht

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/dmcs"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// Operations cost what the package comment says. There is one slot, and one for key
// 0; further keys are in the heap.
func TestCosts(t *testing.T) {
	const wide = 1 << 62
	type step struct {
		name string
		do   func(t *Table) error
		want string // kinds in the order of issue
	}
	insert := func(key, value int64) func(t *Table) error {
		return func(t *Table) error { _, err := t.Insert(key, value); return err }
	}
	add := func(key, addend int64) func(t *Table) error {
		return func(t *Table) error { _, err := t.Add(key, addend); return err }
	}
	lookup := func(key int64) func(t *Table) error {
		return func(t *Table) error { _, _, err := t.Lookup(key); return err }
	}
	const create = "FetchAndOp PutBulk CompareAndSwap "
	atomics := []step{
		{"Lookup, absent", lookup(1), "GetBulk "},
		{"Insert, slot free", insert(1, 5), "CompareAndSwap GetBulk CompareAndSwap "},
		{"Insert, in the slot", insert(1, 5), "CompareAndSwap GetBulk "},
		{"Lookup, in the slot", lookup(1), "GetBulk "},
		{"Add, in the slot", add(1, 5), "GetBulk FetchAndOp "},
		{"Insert, slot taken", insert(2, 5), "CompareAndSwap GetBulk " + create},
		{"Lookup, first of the chain", lookup(2), "GetBulk GetBulk "},
		{"Add, slot taken", add(3, 5), "GetBulk GetBulk " + create},
		{"Add, second of the chain", add(2, 5), "GetBulk GetBulk GetBulk FetchAndOp "},
		{"Insert beyond 63 bits, key 0's slot", insert(0, wide), "GetBulk " + create},
		{"Lookup beyond 63 bits", lookup(0), "GetBulk Get "},
		{"Insert, heap full", insert(9, 5), "CompareAndSwap GetBulk GetBulk GetBulk FetchAndOp Accumulate Get "},
	}
	locked := []step{
		{"Lookup, absent", lookup(1), "GetBulk "},
		{"Insert, slot free", insert(1, 5), "GetBulk PutBulk "},
		{"Insert, in the slot", insert(1, 5), "GetBulk "},
		{"Add, in the slot", add(1, 5), "GetBulk Put "},
		{"Insert, slot taken", insert(2, 5), "GetBulk Get PutBulk Put Put "},
		{"Add, slot taken", add(3, wide), "GetBulk GetBulk Get PutBulk Put Put "},
		{"Add, second of the chain", add(2, 5), "GetBulk GetBulk GetBulk Put "},
		{"Insert beyond 63 bits, key 0's slot", insert(0, wide), "GetBulk PutBulk "},
		{"Insert, slot taken", insert(4, 5), "GetBulk GetBulk GetBulk Get PutBulk Put Put "},
		{"Insert, heap full", insert(9, 5), "GetBulk GetBulk GetBulk GetBulk Get "},
	}
	for name, steps := range map[string][]step{"atomics": atomics, "locks": locked} {
		err := inproc.Run(1, func(c rma.Comm) error {
			kinds := ""
			before := func(o rma.Operation) { kinds += o.Kind.String() + " " }
			cfg := Config{Slots: 1, Heap: 3}
			if name == "locks" {
				locks, err := dmcs.New(c, dmcs.Config{})
				if err != nil {
					return err
				}
				cfg.Locks = locks
			}
			table, err := New(intruded{c, &before}, cfg)
			if err != nil {
				return err
			}
			for _, s := range steps {
				kinds = ""
				if err := s.do(table); err != nil && !errors.Is(err, ErrFull) {
					return err
				}
				if kinds != s.want {
					return fmt.Errorf("%s costs %s; want %s", s.name, kinds, s.want)
				}
			}
			return table.Free()
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
