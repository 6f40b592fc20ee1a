package rmarw

import (
	"fmt"

	"github.com/rmalock/rmalock/internal/queuetree"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/topo"
)

// Thresholds are the parameters of RMA-RW (rma-rw, table 2) for the levels of one topology.
// A zero field, and a zero entry of TL, stand for the default, which Fill puts there.
type Thresholds struct {
	// TDC is T_DC: how many ranks share a physical counter.
	TDC TDC
	// TL is T_L,i by level, from the machine in: TL[level] for the paper's level+1. It
	// is the most times that the lock passes between the parts of an element of the
	// level before it leaves the element, or, at the machine, before readers get it.
	// From 1, which is no preference for near ranks.
	TL []int
	// TR is T_R: the most readers that enter by one counter before a waiting writer. With a
	// barging root a writer does not wait for it.
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

// maxTW bounds T_W, so that the bounds of overtaking can be counted.
const maxTW = 1 << 40

// Defaults are the thresholds for the levels of t when nothing is set: Fill of zero Thresholds.
func Defaults(t *topo.Topology) Thresholds {
	th, err := Thresholds{}.Fill(t)
	if err != nil {
		panic(err) // the defaults fit every topology
	}
	return th
}

// Fill puts defaults in place of zero fields, and of zero entries of TL. They are those that
// section 6 of rma-rw advises, but for T_DC on one node:
//
//   - T_DC is one counter per node where ranks are on several nodes: "placing one counter
//     per compute node results in a reasonable balance between reader throughput and writer
//     latency". On one node it is one counter per core, and at most 16.
//   - T_L,i is larger at levels "with higher inter-component communication costs, such as
//     racks", with a product T_W of 1,000 as far as rounding allows.
//   - For T_R section 6 has no number. The default is 4,096, since T_R of 1,000 and
//     2,000 cost section 5.2.3 throughput beyond 512 processes. From 64 counters
//     on it is 64 times their number: what a mode change costs grows with the counters,
//     and the readers of each make up for it.
//
// An error wraps lock.ErrConfig and names the field that is impossible.
func (th Thresholds) Fill(t *topo.Topology) (Thresholds, error) {
	c, err := NewCounters(t, th.TDC)
	if err != nil {
		return Thresholds{}, err
	}
	th.TDC = c.TDC()
	if th.TL, err = queuetree.FillTL("rmarw", t, th.TL); err != nil {
		return Thresholds{}, err
	}
	w := int64(1)
	for _, n := range th.TL {
		if w > maxTW/int64(n) {
			return Thresholds{}, fmt.Errorf("rmarw: Config: T_W, the product of T_L, is more than %d: %w", maxTW, lock.ErrConfig)
		}
		w *= int64(n)
	}
	if th.TR == 0 {
		th.TR = min(max(4096, 64*int64(c.Len())), MaxTR)
	}
	if th.TR < 1 || th.TR > MaxTR {
		return Thresholds{}, fmt.Errorf("rmarw: Config: T_R is %d, want 1 to %d, or 0 for the default: %w", th.TR, MaxTR, lock.ErrConfig)
	}
	return th, nil
}
