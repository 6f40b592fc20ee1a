package netmodel_test

import (
	"fmt"
	"log"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim/netmodel"
)

// Two ranks on two nodes add to one word of rank 2, on a third.
func Example() {
	m, err := netmodel.Load("cx3")
	if err != nil {
		log.Fatal(err)
	}
	n, err := netmodel.New(m, netmodel.Placement{Node: []int{0, 1, 2}})
	if err != nil {
		log.Fatal(err)
	}
	const kind, words, word = rma.KindFetchAndOp, 1, 42
	_, a := n.Issue(0, 0, 2, kind, words, true)
	_, b := n.Issue(0, 1, 2, kind, words, true)
	a, b = n.Serve(a, 0, 2, kind, words, word), n.Serve(b, 1, 2, kind, words, word)
	fmt.Println("effects:", a, b)
	fmt.Println("seen:", n.Reply(a, 0, 2, kind, words), n.Reply(b, 1, 2, kind, words))
	p := m.Params()[0]
	fmt.Printf("%s = %g %s (%g to %g), %s: %.22s...\n", p.Name, p.Value, p.Unit, p.Low, p.High, p.Mark, p.Source)
	// Output:
	// effects: 1355 1725
	// seen: 2200 2570
	// rttNs.READ = 1790 ns (1760 to 1880), S: C3: min 1.76, p99 1.88...
}
