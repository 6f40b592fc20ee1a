package declock_test

import (
	"errors"
	"testing"

	"github.com/rmalock/rmalock/declock"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// skewed is a Comm whose clock is ahead.
type skewed struct {
	rma.Comm
	ahead int64
}

func (s skewed) Now() int64       { return s.Comm.Now() + s.ahead }
func (s skewed) Unwrap() rma.Comm { return s.Comm }

// TestClocksFollow: a node whose clock is behind by 5 ms does not pass a rank of another node for
// as long. Node 0 has ranks 0 and 1, which take the lock all the time; rank 2 is on node 1.
func TestClocksFollow(t *testing.T) {
	for _, policy := range []declock.Policy{declock.TaskFair, declock.PhaseFair} {
		entries, most := 0, 0
		_, err := sim.Timed{Node: []int{0, 0, 1}, MemoryNodes: 1, Model: sim.Uneven(1)}.Run(func(c rma.Comm) error {
			if c.Rank() == 2 {
				c = skewed{c, 5_000_000}
			}
			l, err := declock.New(c, declock.Config{Policy: policy, Lease: -1, Held: 1})
			if err != nil {
				return err
			}
			rounds := 3000
			if c.Rank() == 2 {
				rounds = 20
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			for i := range rounds {
				before := entries
				if err := l.Lock(background, 0, lock.Exclusive); err != nil {
					return err
				}
				if c.Rank() == 2 && i > 0 { // the first one shows its stamp
					most = max(most, entries-before)
				}
				entries++
				c.Sleep(1000)
				if err := l.Unlock(0, lock.Exclusive); err != nil {
					return err
				}
			}
			return errors.Join(c.Barrier(), l.Free())
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v: %d entries before a rank that waits", policy, most)
		if most > 20 {
			t.Errorf("policy %v: %d entries of node 0 come before a rank of node 1, want 20 at most", policy, most)
		}
	}
}
