package topo

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
)

// Thresholds are the parameters of RMA-MCS and RMA-RW (rma-rw, table 2) for the
// levels of one topology. A zero field means its default.
type Thresholds struct {
	// TDC is T_DC: how many ranks share a physical counter.
	TDC TDC
	// TL is T_L,i by level, from the machine in: TL[level] for the paper's level+1. It
	// is the most times that the lock passes between the parts of an element of the
	// level before it leaves the element, or, at the machine, before readers get it.
	// RMA-MCS, which has no readers, has no use for that of the machine. From 1,
	// which is no preference for near ranks.
	TL []int
	// TR is T_R: the most readers that enter by one counter before a waiting writer.
	TR int64
}

// TW is T_W, the product of TL (rma-rw, section 3.2.3): the most times in a row
// that writers get the lock while readers wait.
func (th Thresholds) TW() int64 {
	w := int64(1)
	for _, n := range th.TL {
		w *= int64(n)
	}
	return w
}

// maxThreshold bounds T_W and T_R, which the locks count up to in words that hold
// other values too, among them Listing 6's INT64_MAX/2.
const maxThreshold = 1 << 40

// Defaults derives thresholds for the levels of t by section 6 of rma-rw:
//
//   - T_DC is one counter per node: "placing one counter per compute node results in
//     a reasonable balance between reader throughput and writer latency".
//   - T_W is the product of T_L,i, "as indicated in table 2", and 1,000 as far as
//     rounding allows, the product that section 5.2.2 keeps while it varies its
//     factors.
//   - T_L,i is larger "with components with higher inter-component communication
//     costs, such as racks": of the product's logarithm a level above the nodes gets
//     5 shares, the node 4, the machine 3 and a level inside the node 2, each rounded
//     to one of 2, 5, 10, 20, 50, 100 and so on; the machine gets what the others
//     leave of 1,000. For machine and node that is 20 and 50, the setting with the
//     best throughput of those in section 5.2.2; for racks too it is 5, 20 and 10.
//   - For T_R section 6 has no number. The default is 4,096, since T_R of 1,000 and
//     2,000 cost section 5.2.3 throughput beyond 512 processes, and from 64 counters
//     on 64 times their number: what a mode change costs grows with the counters,
//     and the readers of each make up for it.
//
// The paper asks for "several performance tests before fixing final numbers"; these
// are what to start from.
func (t *Topology) Defaults() Thresholds {
	th := Thresholds{TL: t.locality()}
	d, err := t.whole().settle(th.TDC)
	if err != nil {
		panic(err) // the zero TDC fits every topology
	}
	th.TDC = d
	th.TR = t.readers(d)
	return th
}

// readers is the default of T_R.
func (t *Topology) readers(d TDC) int64 {
	counters := len(t.whole().stretches(d)) - 1
	return max(4096, 64*int64(counters))
}

// product is T_W as far as rounding allows.
const product = 1000

// shares of the logarithm of the product.
var shares = map[zone]float64{wholeMachine: 3, aboveNode: 5, atNode: 4, insideNode: 2}

// locality is the default of T_L,i.
func (t *Topology) locality() []int {
	sum := 0.0
	for i := range t.levels {
		sum += shares[t.zone(i)]
	}
	tl := make([]int, len(t.levels))
	rest := product
	for i := 1; i < len(tl); i++ {
		tl[i] = nice(math.Pow(product, shares[t.zone(i)]/sum))
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

// Fill puts defaults in place of zero fields, and of zero entries of TL. An error
// wraps ErrTopology and names the field that is impossible.
func (t *Topology) Fill(th Thresholds) (Thresholds, error) {
	fail := func(format string, args ...any) (Thresholds, error) {
		return Thresholds{}, fmt.Errorf("topo: %s: %w", fmt.Sprintf(format, args...), ErrTopology)
	}
	var err error
	if th.TDC, err = t.whole().settle(th.TDC); err != nil {
		return Thresholds{}, err
	}
	if len(th.TL) == 0 {
		th.TL = t.locality()
	}
	if len(th.TL) != len(t.levels) {
		return fail("T_L has %d values, want one per level from the outermost in: %s", len(th.TL), t.names())
	}
	th.TL = slices.Clone(th.TL)
	w := int64(1)
	for i, given := range th.TL {
		if given == 0 {
			th.TL[i] = t.locality()[i]
		}
		if given < 0 {
			return fail("T_L of level %s is %d, want at least 1", t.levels[i].name, given)
		}
		if w > maxThreshold/int64(th.TL[i]) {
			return fail("T_W, the product of T_L, is more than %d", maxThreshold)
		}
		w *= int64(th.TL[i])
	}
	switch {
	case th.TR == 0:
		th.TR = t.readers(th.TDC)
	case th.TR < 0 || th.TR > maxThreshold:
		return fail("T_R is %d, want from 1 to %d", th.TR, maxThreshold)
	}
	return th, nil
}

// WriteThresholds prints what a lock on the levels of t has to do with: for each
// level T_L, the number of elements and of their ranks, and which ranks host their
// queues' tails; T_W and T_R; and T_DC with its counters. Zero fields of th are
// defaults, as in Fill.
func (t *Topology) WriteThresholds(w io.Writer, th Thresholds) error {
	th, err := t.Fill(th)
	if err != nil {
		return err
	}
	c, err := t.Counters(th.TDC)
	if err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "level\tT_L\telements\tranks each\ttails at ranks")
	for i := range t.levels {
		l := &t.levels[i]
		var hosts []int
		for e := range l.count {
			hosts = append(hosts, t.Host(i, e))
		}
		slices.Sort(hosts)
		fmt.Fprintf(tw, "%s\t%d\t%d\t%s\t%s\n", l.name, th.TL[i], len(l.count), span(l.count), rankList(hosts))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	sizes := make([]int32, c.Len())
	for k := range sizes {
		sizes[k] = int32(len(c.part(k)))
	}
	hosts := c.Hosts()
	slices.Sort(hosts)
	plural := "s"
	if c.Len() == 1 {
		plural = ""
	}
	_, err = fmt.Fprintf(w, "T_W %d, T_R %d\nT_DC %s: %d counter%s for %s ranks each, at %s\n",
		th.TW(), th.TR, th.TDC, c.Len(), plural, span(sizes), RanksText(hosts))
	return err
}

// span is "4", or "2-7" of numbers that differ.
func span(ns []int32) string {
	lo, hi := slices.Min(ns), slices.Max(ns)
	if lo == hi {
		return strconv.Itoa(int(lo))
	}
	return fmt.Sprintf("%d-%d", lo, hi)
}
