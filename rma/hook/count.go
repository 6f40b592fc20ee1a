package hook

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

// Count counts in t what the caller does on windows of the Comm that it returns.
// Every rank has a Tally of its own; [Tally.Total] adds them up.
func Count(c rma.Comm, t *Tally) rma.Comm {
	return decorate(c, func(s handleID, below rma.Transport) rma.Transport {
		return &counter{Transport: below, id: s, t: t}
	})
}

// counter is the Transport of Count.
type counter struct {
	rma.Transport
	id handleID
	t  *Tally
}

func (c *counter) Issue(o rma.Operation) {
	c.t.n[o.Kind][c.id.distance(o.Target)]++
	c.Transport.Issue(o)
}

func (c *counter) Flush(target int, r *rma.Results) (int, error) {
	if target < 0 {
		c.t.flushAlls++
	} else {
		c.t.n[rowFlush][c.id.distance(target)]++
	}
	return c.Transport.Flush(target, r)
}

func (c *counter) Await(q rma.Waiting) (int, int64, error) {
	c.t.n[rowAwait][c.id.distance(q.Words[0].Target)]++
	return c.Transport.Await(q)
}

func (c *counter) Backoff(target, disp int, seen int64, try int) error {
	c.t.n[rowBackoff][c.id.distance(target)]++
	return c.Transport.Backoff(target, disp, seen, try)
}

// The rows of a Tally after those of the kinds of operations.
const (
	rowFlush = int(rma.Kinds) + iota
	rowAwait
	rowBackoff
	rows
)

// A Tally is what one rank did. It belongs to the rank's goroutine, like a window.
//
// Counted are steps that the window accepted. A Flush with nothing pending is no
// step: it does nothing. An Await is one step however often its backend polls; one of two
// words counts by the first.
type Tally struct {
	n         [rows][Distances]int64
	flushAlls int64
}

// Ops is the number of operations of a kind on ranks at a distance. A bulk
// operation is one.
func (t *Tally) Ops(k rma.Kind, d Distance) int64 { return t.n[k][d] }

// Flushes is the number of Flushes of ranks at a distance.
func (t *Tally) Flushes(d Distance) int64 { return t.n[rowFlush][d] }

// FlushAlls is the number of FlushAlls, which Flushes does not count.
func (t *Tally) FlushAlls() int64 { return t.flushAlls }

// Awaits is the number of Awaits on words at a distance.
func (t *Tally) Awaits(d Distance) int64 { return t.n[rowAwait][d] }

// Backoffs is the number of Backoffs on words at a distance: of tries that failed.
func (t *Tally) Backoffs(d Distance) int64 { return t.n[rowBackoff][d] }

// Remote is the number of operations on other ranks, node-mates included.
func (t *Tally) Remote() int64 {
	sum := int64(0)
	for k := range rma.Kinds {
		sum += t.n[k][Mate] + t.n[k][Far]
	}
	return sum
}

// Reset sets all counts to 0.
func (t *Tally) Reset() { *t = Tally{} }

// Snapshot is a copy.
func (t *Tally) Snapshot() Tally { return *t }

// Sub is what was done since an earlier Snapshot.
func (t *Tally) Sub(earlier Tally) Tally {
	d := *t
	for i := range d.n {
		for j := range d.n[i] {
			d.n[i][j] -= earlier.n[i][j]
		}
	}
	d.flushAlls -= earlier.flushAlls
	return d
}

// Total is the sum of the Tallies of all ranks. Collective.
func (t *Tally) Total(c rma.Comm) (Tally, error) {
	var b []byte
	for i := range t.n {
		for _, n := range t.n[i] {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(t.flushAlls))
	return rma.Combine(c, b, func(all [][]byte) (Tally, error) {
		var sum Tally
		for _, b := range all {
			next := func() int64 {
				n := int64(binary.LittleEndian.Uint64(b))
				b = b[8:]
				return n
			}
			for i := range sum.n {
				for d := range sum.n[i] {
					sum.n[i][d] += next()
				}
			}
			sum.flushAlls += next()
		}
		return sum, nil
	})
}

// String is a table of the rows that are not zero.
func (t *Tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-15s%9v%9v%9v\n", "", Own, Mate, Far)
	for i, row := range t.n {
		if row != ([Distances]int64{}) {
			fmt.Fprintf(&b, "%-15s%9d%9d%9d\n", rowName(i), row[Own], row[Mate], row[Far])
		}
	}
	if t.flushAlls != 0 {
		fmt.Fprintf(&b, "%-15s%27d\n", "FlushAll", t.flushAlls)
	}
	return b.String()
}

func rowName(i int) string {
	switch i {
	case rowFlush:
		return "Flush"
	case rowAwait:
		return "Await"
	case rowBackoff:
		return "Backoff"
	}
	return rma.Kind(i).String()
}
