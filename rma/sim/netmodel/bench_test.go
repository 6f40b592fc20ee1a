package netmodel

import (
	"testing"

	"github.com/rmalock/rmalock/rma"
)

// What one operation costs the simulator. Ranks take turns, 64 on each node, and go
// for words of all nodes.
func Benchmark(b *testing.B) {
	for _, x := range []struct {
		machine string
		kind    rma.Kind
		ranks   int
	}{
		{"aries", rma.KindPut, 64}, {"aries", rma.KindFetchAndOp, 64}, {"aries", rma.KindFetchAndOp, 4096},
		{"aries", rma.KindFetchAndOp, 65536}, {"cx3", rma.KindFetchAndOp, 4096},
		{"cx6", rma.KindGet, 4096}, {"cx6", rma.KindCompareAndSwap, 64}, {"cx6", rma.KindCompareAndSwap, 65536},
	} {
		b.Run(x.machine+"/"+x.kind.String()+"/"+name(x.ranks), func(b *testing.B) {
			m, err := Load(x.machine)
			if err != nil {
				b.Fatal(err)
			}
			p := Placement{Node: make([]int, x.ranks)}
			for r := range p.Node {
				p.Node[r] = r / 16
			}
			groups := make([]int, x.ranks/16)
			for n := range groups {
				groups[n] = n / 4
			}
			p.Groups = [][]int{groups}
			n := network(b, m, p)
			now, r, i := int64(0), 0, uint64(0)
			op := func() {
				i++
				to := int(mix(i) % uint64(x.ranks))
				_, at := n.Issue(now, r, to, x.kind, 1, true)
				at = n.Serve(at, r, to, x.kind, 1, i&1023)
				n.Reply(at, r, to, x.kind, 1)
				now += 500
				if r++; r == x.ranks {
					r = 0
				}
			}
			for range 2 * x.ranks { // the first operation of a rank notes its connections
				op()
			}
			b.ReportAllocs()
			for b.Loop() {
				op()
			}
		})
	}
}

func name(ranks int) string {
	switch ranks {
	case 64:
		return "64ranks"
	case 4096:
		return "4096ranks"
	}
	return "65536ranks"
}

// Nothing on the way of an operation allocates.
func TestNoAllocation(t *testing.T) {
	for _, name := range Names() {
		n := network(t, load1(t, name), at(8, 8))
		kinds := []rma.Kind{Send}
		for k := range rma.Kinds {
			kinds = append(kinds, k)
		}
		op := func() {
			for _, k := range kinds {
				_, a := n.Issue(1000, 3, 12, k, 9, true)
				n.Reply(n.Serve(a, 3, 12, k, 9, 5), 3, 12, k, 9)
			}
		}
		op() // notes the connections
		if allocs := testing.AllocsPerRun(100, op); allocs != 0 {
			t.Errorf("%s: %g allocations", name, allocs)
		}
	}
}
