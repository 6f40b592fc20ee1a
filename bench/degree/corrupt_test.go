package degree_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rmalock/rmalock/bench/degree"
	"github.com/rmalock/rmalock/rma"
)

// corrupting is a Comm on whose first hashtable one Add of the timed phase adds one
// more than it should.
type corrupting struct {
	rma.Comm
	adds *atomic.Int64
}

func (c corrupting) Allocate(spec rma.Spec) (*rma.Window, error) {
	w, err := c.Comm.Allocate(spec)
	if err != nil || !strings.HasPrefix(spec.Name, "dht") {
		return w, err
	}
	return rma.Decorate(w, func(t rma.Transport) rma.Transport { return corrupter{t, c.adds} }), nil
}

type corrupter struct {
	rma.Transport
	adds *atomic.Int64
}

func (c corrupter) Issue(o rma.Operation) {
	if (o.Kind == rma.KindFetchAndOp || o.Kind == rma.KindPut) && c.adds.Add(1) == 1000 {
		o.Operand++
	}
	c.Transport.Issue(o)
}

// One wrong count is found and named.
func TestCorruptedCountIsFound(t *testing.T) {
	for _, name := range []string{degree.Atomic, "dmcs"} {
		for _, m := range machines {
			t.Run(name+"/"+m.String(), func(t *testing.T) {
				var adds atomic.Int64
				r := agreed(t, m, func(c rma.Comm) (*degree.Result, error) {
					// No heap elements: the operations above are then Adds alone.
					return degree.Run(corrupting{c, &adds}, degree.Config{Source: rmat(t, 6), Lock: name, Slots: 1 << 16})
				})
				if r.Verified || r.Differences != 1 || !strings.HasPrefix(r.FirstDifference, "vertex ") {
					t.Fatalf("verified: %v, %d differences, first: %q", r.Verified, r.Differences, r.FirstDifference)
				}
				var b strings.Builder
				if err := r.WriteText(&b); err != nil {
					t.Fatal(err)
				}
				if want := "\nNOT verified: first difference of 1: " + r.FirstDifference + "\n"; !strings.HasSuffix(b.String(), want) {
					t.Errorf("the report does not end in %q:\n%s", want, b.String())
				}
			})
		}
	}
}

// changing is a source whose whole is not what its shares are: the table has a
// vertex too many, one too few, and wrong counts.
type changing struct{}

func (changing) Edges(rank, size int, f func(u, v int64) error) error {
	if size > 1 {
		if rank > 0 {
			return nil
		}
		return f(1, 2)
	}
	return f(2, 3)
}
func (changing) Estimate() (int64, int64) { return 1, 2 }
func (changing) String() string           { return "changing" }

func TestDifferencesInBothDirections(t *testing.T) {
	r := agreed(t, machine{1, 2}, func(c rma.Comm) (*degree.Result, error) {
		return degree.Run(c, degree.Config{Source: changing{}, Lock: degree.Atomic})
	})
	if want := "vertex 1 is in the table with degree 1, and in no edge"; r.Verified || r.Differences != 2 || r.FirstDifference != want {
		t.Errorf("%d differences, first: %q; want 2, %q", r.Differences, r.FirstDifference, want)
	}
	if r.Vertices != 2 {
		t.Errorf("%d vertices in the table, want 2", r.Vertices)
	}
}
