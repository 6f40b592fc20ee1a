package rmatest

import (
	"slices"

	"github.com/rmalock/rmalock/rma"
)

// targets are the ranks to try operations on: all in a small job, otherwise some
// of each distance. Near words are for node-mates only.
func (p *Probe) targets(c rma.Class) []int {
	return slices.DeleteFunc(targetsOf(p.Rank(), p.Size()), func(r int) bool {
		return c == rma.Near && !p.Node().Has(r)
	})
}

func targetsOf(rank, size int) []int {
	var out []int
	for _, step := range []int{0, 1, size - 1, size / 2, 2, 3, 5, 7} {
		if r := (rank + step) % size; !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// classes is a window of n words of each class.
func classes(n int) rma.Spec {
	return rma.Spec{Name: "classes", Regions: []rma.Region{
		rma.Far:   {Count: n, Words: []rma.Word{{Name: "FAR", Class: rma.Far}}},
		rma.Near:  {Count: n, Words: []rma.Word{{Name: "NEAR", Class: rma.Near}}},
		rma.Flag:  {Count: n, Words: []rma.Word{{Name: "FLAG", Class: rma.Flag}}},
		rma.Plain: {Count: n, Words: []rma.Word{{Name: "PLAIN", Class: rma.Plain}}},
	}}
}

// everyClass calls f with each class and the displacement of its first word in a
// window of classes(n).
func everyClass(n int, f func(c rma.Class, base int)) {
	for c := range rma.Classes {
		f(c, int(c)*n)
	}
}
