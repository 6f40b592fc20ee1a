package remote

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// TestCost: what each call costs in remote operations, as the package comment has it, and
// nothing more.
func TestCost(t *testing.T) {
	err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		h, err := New(c, Config{Name: "heap", Words: 1 << 14, Classes: []int{4}, Chunk: 128})
		if err != nil {
			return err
		}
		kinds := ""
		h.w = rma.Decorate(h.w, func(t rma.Transport) rma.Transport {
			return altered{t, func(_ *Heap, o *rma.Operation) bool { kinds += o.Kind.String() + " "; return true }, h}
		})
		var refs []Ref
		alloc := func() error {
			ref, err := h.Alloc(4)
			refs = append(refs, ref)
			return err
		}
		release := func() error {
			h.Free(refs[0], 4)
			refs = refs[1:]
			return nil
		}
		for _, k := range []struct {
			name string
			do   func() error
			want string
		}{
			{"Alloc of a new client", alloc, "Get FetchAndOp "},
			{"Enter", h.Enter, "Put Get "},
			{"Leave", h.Leave, "Put "},
			{"Alloc", alloc, ""},
			{"Free", release, ""},
			{"a list for the pool", func() error { return h.giveList(0) }, ""},
		} {
			kinds = ""
			if k.name == "a list for the pool" {
				h.put(0, refs[0])
				k.want = "Get PutBulk CompareAndSwap "
			}
			if err := k.do(); err != nil {
				return err
			}
			if kinds != k.want {
				return fmt.Errorf("%s costs %s, want %s", k.name, kinds, k.want)
			}
		}
		h.plain.spanLeft = 0
		kinds = ""
		if err := alloc(); err != nil || kinds != "Get GetBulk CompareAndSwap " {
			return fmt.Errorf("Alloc from the pool costs %s, %w", kinds, err)
		}
		for range 20 {
			if err := errors.Join(alloc(), release()); err != nil {
				return err
			}
		}
		kinds = ""
		if err := h.advance(false); err != nil || kinds != "Get GetBulk CompareAndSwap " {
			return fmt.Errorf("an advance costs %s, %w", kinds, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAllocations: a client that works on and on allocates no memory of its own.
func TestAllocations(t *testing.T) {
	err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		h, err := New(c, Config{Name: "heap", Words: 1 << 14, Classes: []int{4, 8}})
		if err != nil {
			return err
		}
		round := func() {
			err = errors.Join(err, h.Enter())
			for range 8 {
				ref, aerr := h.Alloc(6)
				if aerr != nil {
					err = aerr
					return
				}
				h.Free(ref, 6)
			}
			err = errors.Join(err, h.Leave())
		}
		for range 100 {
			round()
		}
		if n := testing.AllocsPerRun(200, round); n != 0 {
			return fmt.Errorf("%v allocations in a section", n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
