package rma

import (
	"testing"
	"unsafe"
)

// onNode is a Comm that knows its place and nothing else.
type onNode struct {
	Comm
	node Node
}

func (onNode) Rank() int    { return 1 }
func (onNode) Size() int    { return 6 }
func (c onNode) Node() Node { return c.node }

// TestTableOfNearWords: in a job on several nodes the table leads to the words that the classes
// and the node allow, also where ranks of the node are not consecutive and beyond the table; and
// what Peek reads at once is near or flag words.
func TestTableOfNearWords(t *testing.T) {
	spec := Spec{Name: "w", Regions: []Region{
		{Count: 3, Words: []Word{{Name: "N", Class: Near}, {Name: "F", Class: Flag}}},
		{Count: 2000, Words: []Word{{Name: "A", Class: Far}, {Name: "N", Class: Near}, {Name: "P", Class: Plain}}},
	}}
	const stride = 8 * 8192
	mem := make([]int64, 4*8192)
	for _, mates := range [][]int{{1, 2, 3}, {1, 3, 4}, {0, 1}} {
		for _, reads := range []bool{false, true} {
			w := New(Config{
				Comm: onNode{node: Node{Count: 2, Ranks: mates}}, Spec: spec,
				Base: unsafe.Pointer(&mem[0]), Stride: stride, Caps: Caps{CPUReads: reads},
			})
			short := 0
			for target := range 6 {
				for disp := range spec.Words() + 2 {
					for _, a := range []access{reading, writing, updating} {
						got, want := w.shared(target, disp, a), w.sharedFar(target, disp, a)
						if got != want {
							t.Fatalf("ranks %v: word %d of rank %d, access %d: %v, want %v", mates, disp, target, a, got, want)
						}
						if got != nil {
							short++
						}
					}
				}
			}
			if short == 0 || len(w.may) != tableWords {
				t.Errorf("ranks %v: %d words are near, the table has %d", mates, short, len(w.may))
			}
			if len(w.own) != 6 || &w.own[0] != (*int64)(w.shared(1, 0, reading)) {
				t.Errorf("ranks %v: Peek reads %d words at once, want 6", mates, len(w.own))
			}
			w.far = 1
			if w.shared(1, 0, reading) != nil {
				t.Error("a word is reached past pending operations")
			}
			w.far = 0
			w.fail(ErrDisp)
			if w.shared(1, 0, reading) != nil {
				t.Error("a word is reached after an error")
			}
		}
	}
}
