package remote_test

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/remote"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// A client replaces a block behind a pointer. The old block gets another use when no reader can
// see it.
func Example() {
	err := inproc.Job{Nodes: 1, PerNode: 1, MemoryNodes: 1}.Run(func(c rma.Comm) error {
		h, err := remote.New(c, remote.Config{
			Name: "example", Words: 1 << 12, Classes: remote.Sizes(4, 64),
			Regions: []rma.Region{{Count: 1, Words: []rma.Word{{Name: "HEAD", Class: rma.Far}}}},
		})
		if err != nil {
			return err
		}
		w := h.Window()
		for version := range int64(3) {
			if err := h.Enter(); err != nil {
				return err
			}
			ref, err := h.Alloc(5)
			if err != nil {
				return err
			}
			w.PutBulk([]int64{version, 10, 20, 30, 40}, ref.Node(), ref.Disp())
			if err := w.Flush(ref.Node()); err != nil {
				return err
			}
			old, err := w.FetchAndOpFlush(int64(ref), 0, 0, rma.Replace)
			if err != nil {
				return err
			}
			if old != 0 {
				h.Free(remote.Ref(old), 5)
			}
			if err := h.Leave(); err != nil {
				return err
			}
		}
		fmt.Println("blocks of", h.Size(5), "words")
		return errors.Join(h.Close(), h.Unmap())
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: blocks of 8 words
}
