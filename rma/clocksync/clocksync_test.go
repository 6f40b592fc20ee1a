package clocksync

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/inproc"
)

// skewed is a Comm whose clock is ahead of the true one.
type skewed struct {
	rma.Comm
	ahead int64
}

func (s *skewed) Now() int64 { return s.Comm.Now() + s.ahead }

// TestSyncOfSkewedClocks: nodes whose clocks differ by seconds have one time, within the
// bounds that they state.
func TestSyncOfSkewedClocks(t *testing.T) {
	err := inproc.RunNodes(4, 2, func(c rma.Comm) error {
		node := int64(c.Node().Index)
		s := &skewed{Comm: c, ahead: node * node * -7_000_000_001}
		k, err := syncAs(s, node)
		if err != nil {
			return err
		}
		before := c.Now()
		now, bound := k.Now(), k.Bound()
		after := c.Now()
		if now < before-bound || now > after+bound {
			return fmt.Errorf("rank %d reads %d between %d and %d, with a bound of %d", c.Rank(), now, before, after, bound)
		}
		if (node == 0) != (bound == 0) {
			return fmt.Errorf("rank %d of node %d states a bound of %d", c.Rank(), node, bound)
		}
		s.ahead += 1e9 // a second later
		if grown := k.Bound() - bound; node > 0 && (grown < 100_000 || grown > 110_000_000) {
			return fmt.Errorf("in a second the bound grows by %d ns, want 100 us or little more", grown)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSyncInOneProcess asks nothing: all ranks read one clock.
func TestSyncInOneProcess(t *testing.T) {
	err := inproc.RunNodes(3, 2, func(c rma.Comm) error {
		k, err := Sync(c)
		if err != nil {
			return err
		}
		if k.Bound() != 0 || k.Offset() != 0 {
			return fmt.Errorf("bound %d, offset %d, want 0 and 0", k.Bound(), k.Offset())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
