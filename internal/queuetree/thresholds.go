package queuetree

import (
	"fmt"
	"math"
	"strings"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/topo"
)

// product is T_W, the product of the default T_L,i, as far as rounding allows: the one that
// section 5.2.2 of rma-rw keeps while it varies its factors.
const product = 1000

// shares of the logarithm of the product.
var shares = map[topo.Zone]float64{topo.WholeMachine: 3, topo.AboveNodes: 5, topo.AtNode: 4, topo.InsideNode: 2}

// DefaultTL derives T_L,i for the levels of a topology, from the machine in, by section 6 of
// rma-rw. T_L,i is larger "with components with higher inter-component communication costs,
// such as racks". Of the product's logarithm a level above the nodes gets 5 shares, the node
// 4, the machine 3 and a level inside the node 2. Each is rounded to one of 2, 5, 10, 20, 50,
// 100 and so on, and the machine gets what the others leave of the product. For machine and
// node that is 20 and 50, the setting with the best throughput of those in section 5.2.2;
// for racks too it is 5, 20 and 10.
//
// The paper asks for "several performance tests before fixing final numbers"; these are what
// to start from.
func DefaultTL(t *topo.Topology) []int {
	tl := make([]int, len(t.Levels()))
	sum := 0.0
	for i := range tl {
		sum += shares[t.Zone(i)]
	}
	rest := product
	for i := 1; i < len(tl); i++ {
		tl[i] = nice(math.Pow(product, shares[t.Zone(i)]/sum))
		rest /= tl[i]
	}
	tl[0] = max(rest, 1)
	return tl
}

// nice is the nearest of 2, 5, 10, 20, 50 and so on, by ratio.
func nice(x float64) int {
	best := 2
	for n, k := 2, 0; float64(n) < 10*x; k++ {
		if math.Abs(math.Log(float64(n)/x)) < math.Abs(math.Log(float64(best)/x)) {
			best = n
		}
		if k%3 == 0 {
			n = n / 2 * 5 // 2 5 10
		} else {
			n *= 2
		}
	}
	return best
}

// FillTL puts defaults in place of zeros, and of nil. lockName stands before an error, which
// wraps lock.ErrConfig and names the level whose T_L is impossible.
func FillTL(lockName string, t *topo.Topology, tl []int) ([]int, error) {
	levels, out := t.Levels(), DefaultTL(t)
	if len(tl) == 0 {
		return out, nil
	}
	if len(tl) != len(levels) {
		var names []string
		for _, l := range levels {
			names = append(names, l.Name)
		}
		return nil, fmt.Errorf("%s: Config: T_L has %d values, want one per level from the outermost in: %s: %w",
			lockName, len(tl), strings.Join(names, ", "), lock.ErrConfig)
	}
	for i, n := range tl {
		if n < 0 || n > MaxTL {
			return nil, fmt.Errorf("%s: Config: T_L of level %s is %d, want 1 to %d, or 0 for the default: %w",
				lockName, levels[i].Name, n, MaxTL, lock.ErrConfig)
		}
	}
	for i, n := range tl {
		if n > 0 {
			out[i] = n
		}
	}
	return out, nil
}
