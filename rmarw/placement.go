package rmarw

import (
	"slices"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

// Counters places the physical counters of a distributed counter (DC): the map
// c(p) of rma-rw, section 3.2.1, which here is Of. Readers count at Of; writers visit all.
// Ranks in the order of the tree, in which those of an element are together whatever their
// numbers, are cut into stretches. Each stretch has a counter, which its first rank hosts.
// Where ranks follow on from one element to the next, that is Listing 6's p = 0, T_DC,
// 2*T_DC and so on.
//
// It takes 4 bytes per rank and per counter, does not change, and may be used by
// many goroutines.
type Counters struct {
	spec  TDC
	t     *topo.Topology // never a view
	index []int32        // rank -> its counter
	start []int32        // counter -> place of its first rank in the order of the tree; and the end
}

// NewCounters places the physical counters of a topology. All levels of the topology that t
// is a view of may be named. Ranks of one process that ask for the same get one and the
// same Counters.
//
// An element with fewer ranks than Each has a counter per rank; the last stretch
// may be shorter than the others. An error wraps lock.ErrConfig and names the field
// that is impossible.
func NewCounters(t *topo.Topology, d TDC) (*Counters, error) {
	t = t.Whole()
	if d == (TDC{}) {
		d = *topo.Derive(t, d, func() *TDC { d := defaultTDC(t); return &d })
	}
	d, err := d.settle(t)
	if err != nil {
		return nil, err
	}
	return topo.Derive(t, d, func() *Counters { return newCounters(t, d) }), nil
}

// newCounters is NewCounters, given a TDC that is settled.
func newCounters(t *topo.Topology, d TDC) *Counters {
	c := &Counters{spec: d, t: t, index: make([]int32, t.Size()), start: stretches(t, d)}
	for k := range c.Len() {
		for i := c.start[k]; i < c.start[k+1]; i++ {
			c.index[t.InOrder(int(i))] = int32(k)
		}
	}
	return c
}

// stretches cuts the order of ranks, given a TDC that is settled.
func stretches(t *topo.Topology, d TDC) []int32 {
	var start []int32
	size := t.Size()
	if d.Ranks > 0 {
		for at := 0; at < size; at += d.Ranks {
			start = append(start, int32(at))
		}
		return append(start, int32(size))
	}
	level, _ := t.Find(d.Level)
	for at, nth := 0, 0; at < size; nth++ {
		n := t.Count(level, t.Element(t.InOrder(at), level))
		if d.Every > 0 {
			if nth%d.Every == 0 {
				start = append(start, int32(at))
			}
		} else {
			k := min(d.Each, n)
			for i := range k {
				start = append(start, int32(at+n*i/k))
			}
		}
		at += n
	}
	return append(start, int32(size))
}

// TDC is what was asked for, with all that was left out filled in.
func (c *Counters) TDC() TDC { return c.spec }

// Immutable tells package check that Counters never change.
func (c *Counters) Immutable() {}

// Len is the number of physical counters, which a writer visits.
func (c *Counters) Len() int { return len(c.start) - 1 }

// Of is c(p): the rank that hosts the counter of a rank. Two loads.
func (c *Counters) Of(rank int) int { return c.Host(int(c.index[rank])) }

// Index is the number of the counter of a rank, from 0 to Len()-1.
func (c *Counters) Index(rank int) int { return int(c.index[rank]) }

// Host is the rank that hosts a counter. No rank hosts two, and each is one of the
// ranks that its counter counts.
func (c *Counters) Host(counter int) int { return c.t.InOrder(int(c.start[counter])) }

// Hosts lists the hosts of the counters, in a slice of the caller's.
func (c *Counters) Hosts() []int {
	out := make([]int, c.Len())
	for k := range out {
		out[k] = c.Host(k)
	}
	return out
}

// Ranks lists the ranks that a counter counts in ascending order, in a slice of the
// caller's.
func (c *Counters) Ranks(counter int) []int {
	var out []int
	for i := c.start[counter]; i < c.start[counter+1]; i++ {
		out = append(out, c.t.InOrder(int(i)))
	}
	slices.Sort(out)
	return out
}

// Within reports whether every rank is in the same element of a level as the host
// of its counter; at level "node", a reader then never leaves its node. Where the
// topology, view or not, has no such level, it is false.
func (c *Counters) Within(level string) bool {
	i, ok := c.t.Find(level)
	if !ok {
		return false
	}
	for r := range c.index {
		if c.t.Element(r, i) != c.t.Element(c.Of(r), i) {
			return false
		}
	}
	return true
}

// Near reports whether all ranks that a counter counts are in a node, so that words
// which only they change may be near words.
func (c *Counters) Near(counter int, n rma.Node) bool {
	for i := c.start[counter]; i < c.start[counter+1]; i++ {
		if !n.Has(c.t.InOrder(int(i))) {
			return false
		}
	}
	return true
}

// HostOf is Host for one of many locks that share the counters, numbered from 0: each
// next lock has its counter at the next rank of those it counts, and round again.
func (c *Counters) HostOf(counter, lock int) int {
	return c.t.InOrder(int(c.start[counter]) + lock%c.Count(counter))
}

// Count is the number of ranks that a counter counts.
func (c *Counters) Count(counter int) int { return int(c.start[counter+1] - c.start[counter]) }
